#include "engine/journal/format.h"

#include <charconv>
#include <cstdio>

#include "core/crc32c.h"
#include "engine/journal/canary.h"

namespace delayq::journal {

namespace {

/// The header as stored on disk.
struct SegmentHeaderBytes {
  std::array<char, 8> magic;
  uint16_t version;
  uint16_t stream;
  uint32_t nonce;
  uint32_t number;
  uint32_t epoch;
  uint64_t first_lsn;
  int64_t created_ms;
  uint64_t previous_size;
  uint32_t previous;
  std::array<uint32_t, 2> directory;  ///< low half first
  uint32_t crc;
};
static_assert(sizeof(SegmentHeaderBytes) == kSegmentHeaderSize);

constexpr std::string_view kNamePrefix = "segment-";
constexpr size_t kNameDigits = 10;

}  // namespace

void SegmentHeader::encode(std::span<std::byte, kSegmentHeaderSize> out) const {
  SegmentHeaderBytes bytes{kSegmentMagic, version,    stream,        nonce,    number, epoch,
                           first_lsn,     created_ms, previous_size, previous, {},     0};
  std::memcpy(bytes.directory.data(), &directory, sizeof directory);
  bytes.crc = crc32c(0, &bytes, offsetof(SegmentHeaderBytes, crc));
  std::memcpy(out.data(), &bytes, sizeof bytes);
}

std::optional<SegmentHeader> SegmentHeader::decode(std::span<const std::byte, kSegmentHeaderSize> in) {
  SegmentHeaderBytes bytes;
  std::memcpy(&bytes, in.data(), sizeof bytes);
  if (bytes.magic != kSegmentMagic) return std::nullopt;
  if (bytes.crc != crc32c(0, &bytes, offsetof(SegmentHeaderBytes, crc))) return std::nullopt;
  uint64_t directory = 0;
  std::memcpy(&directory, bytes.directory.data(), sizeof directory);
  return SegmentHeader{bytes.version,   bytes.stream,     bytes.nonce,    bytes.number,        bytes.epoch,
                       bytes.first_lsn, bytes.created_ms, bytes.previous, bytes.previous_size, directory};
}

std::string segment_name(uint32_t number) {
  std::array<char, 32> text{};
  const int size = std::snprintf(text.data(), text.size(), "%s%010u", kNamePrefix.data(), number);
  return {text.data(), static_cast<size_t>(size)};
}

std::optional<uint32_t> parse_segment_name(std::string_view name) {
  if (!name.starts_with(kNamePrefix) || name.size() != kNamePrefix.size() + kNameDigits) return std::nullopt;
  name.remove_prefix(kNamePrefix.size());
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc{} || end != name.data() + name.size() || number == 0) return std::nullopt;
  return number;
}

void seal_record(std::span<std::byte> record, uint32_t nonce, RecordType type, Lsn lsn) {
  RecordHeader header;
  header.size = static_cast<uint32_t>(record.size() - kRecordHeaderSize);
  header.lsn_and_type = lsn | static_cast<uint64_t>(type) << 56;
  std::memcpy(record.data(), &header, sizeof header);
  header.crc = crc32c(nonce, record.data() + sizeof header.crc, record.size() - sizeof header.crc);
  std::memcpy(record.data(), &header.crc, sizeof header.crc);
}

std::optional<RecordView> read_record(std::span<const std::byte> bytes, uint32_t nonce) {
  if (bytes.size() < kRecordHeaderSize) return std::nullopt;
  RecordHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.size > kMaxPayload || header.size > bytes.size() - kRecordHeaderSize) return std::nullopt;
  if (header.lsn() == 0 || header.lsn() > kMaxLsn) return std::nullopt;
  const size_t whole = kRecordHeaderSize + header.size;
  const bool is_intact =
      header.crc == crc32c(nonce, bytes.data() + sizeof header.crc, whole - sizeof header.crc);
  if (!is_intact && !is_planted(Canary::kWrongCrc)) return std::nullopt;
  return RecordView{header.type(), header.lsn(), bytes.subspan(kRecordHeaderSize, header.size)};
}

std::optional<JobView> parse_job(std::span<const std::byte> payload) {
  JobView view;
  if (payload.size() < sizeof view.fixed) return std::nullopt;
  std::memcpy(&view.fixed, payload.data(), sizeof view.fixed);
  std::string_view rest = as_text(payload.subspan(sizeof view.fixed));
  const size_t strings =
      size_t{view.fixed.topic_size} + view.fixed.id_size + view.fixed.group_size + view.fixed.options_size;
  if (rest.size() < strings || static_cast<size_t>(view.fixed.state.state) >= kJobStateCount)
    return std::nullopt;
  const auto next = [&rest](size_t size) {
    const std::string_view part = rest.substr(0, size);
    rest.remove_prefix(size);
    return part;
  };
  view.topic = next(view.fixed.topic_size);
  view.id = next(view.fixed.id_size);
  view.group = next(view.fixed.group_size);
  view.options = next(view.fixed.options_size);
  view.body = rest;
  return view;
}

std::optional<OutcomeView> parse_outcome(std::span<const std::byte> payload) {
  OutcomeView view{};
  if (payload.size() < sizeof view.state) return std::nullopt;
  std::memcpy(&view.state, payload.data(), sizeof view.state);
  if (static_cast<size_t>(view.state.state) >= kJobStateCount) return std::nullopt;
  view.text = as_text(payload.subspan(sizeof view.state));
  return view;
}

std::optional<SettingsView> parse_settings(std::span<const std::byte> payload) {
  if (payload.empty()) return std::nullopt;
  const std::string_view all = as_text(payload.subspan(1));
  const auto topic_size = std::to_integer<size_t>(payload[0]);
  if (all.size() < topic_size) return std::nullopt;
  return SettingsView{all.substr(0, topic_size), all.substr(topic_size)};
}

}  // namespace delayq::journal
