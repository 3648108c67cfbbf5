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
  const uint32_t most = header.type() == RecordType::kGroup ? kMaxGroupPayload : kMaxPayload;
  if (header.size > most || header.size > bytes.size() - kRecordHeaderSize) return std::nullopt;
  if (header.lsn() == 0 || header.lsn() > kMaxLsn) return std::nullopt;
  const size_t whole = kRecordHeaderSize + header.size;
  const bool is_intact =
      header.crc == crc32c(nonce, bytes.data() + sizeof header.crc, whole - sizeof header.crc);
  if (!is_intact && !is_planted(Canary::kWrongCrc)) return std::nullopt;
  return RecordView{header.type(), header.lsn(), bytes.subspan(kRecordHeaderSize, header.size)};
}

std::span<const GroupedRecord> read_group(const RecordView& group, uint32_t nonce,
                                          std::array<GroupedRecord, kMostInGroup>& room) {
  size_t count = 0;
  std::span<const std::byte> rest = group.payload;
  while (!rest.empty()) {
    const auto record = count == room.size() ? std::nullopt : read_record(rest, nonce);
    if (!record || record->lsn != group.lsn + count + 1) return {};
    const bool is_for_segments = record->type == RecordType::kMark || record->type == RecordType::kHole ||
                                 record->type == RecordType::kGroup;
    if (is_for_segments) return {};
    room[count++] = {*record, static_cast<uint32_t>(group.size() - rest.size())};
    rest = rest.subspan(record->size());
  }
  return std::span(room).first(count);
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

std::optional<ScheduleView> parse_schedule(std::span<const std::byte> payload) {
  ScheduleView view;
  if (payload.size() < sizeof view.fixed) return std::nullopt;
  std::memcpy(&view.fixed, payload.data(), sizeof view.fixed);
  const std::string_view all = as_text(payload.subspan(sizeof view.fixed));
  const size_t name_size = view.fixed.name_size;
  if (all.size() < name_size || all.size() - name_size < view.fixed.progress_size) return std::nullopt;
  if (name_size == 0 || view.fixed.revision == 0) return std::nullopt;
  view.name = all.substr(0, name_size);
  view.progress = all.substr(name_size, view.fixed.progress_size);
  view.definition = all.substr(name_size + view.fixed.progress_size);
  return view;
}

size_t payload_size(const ScheduleView& schedule) {
  return sizeof schedule.fixed + schedule.name.size() + schedule.progress.size() + schedule.definition.size();
}

void write_payload(std::span<std::byte> payload, const ScheduleView& schedule) {
  SchedulePayload fixed = schedule.fixed;
  fixed.name_size = static_cast<uint8_t>(schedule.name.size());
  fixed.progress_size = static_cast<uint32_t>(schedule.progress.size());
  std::byte* out = payload.data();
  std::memcpy(out, &fixed, sizeof fixed);
  out += sizeof fixed;
  for (const std::string_view part : {schedule.name, schedule.progress, schedule.definition}) {
    if (!part.empty()) std::memcpy(out, part.data(), part.size());
    out += part.size();
  }
}

std::optional<TurnedView> parse_turned(std::span<const std::byte> payload) {
  TurnedView view;
  if (payload.size() < sizeof view.fixed) return std::nullopt;
  std::memcpy(&view.fixed, payload.data(), sizeof view.fixed);
  if (view.fixed.revision == 0) return std::nullopt;
  view.progress = as_text(payload.subspan(sizeof view.fixed));
  return view;
}

size_t payload_size(const TurnedView& turned) { return sizeof turned.fixed + turned.progress.size(); }

void write_payload(std::span<std::byte> payload, const TurnedView& turned) {
  std::memcpy(payload.data(), &turned.fixed, sizeof turned.fixed);
  if (turned.progress.empty()) return;
  std::memcpy(payload.data() + sizeof turned.fixed, turned.progress.data(), turned.progress.size());
}

}  // namespace delayq::journal
