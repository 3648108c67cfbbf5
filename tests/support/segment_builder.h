#pragma once

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "engine/journal/disk.h"
#include "engine/journal/format.h"
#include "tests/support/job_spec.h"

namespace delayq::support {

/// Writes journal segments record by record, so that a test can build any directory. Records get consecutive
/// numbers unless a test sets the next number.
class SegmentBuilder {
 public:
  explicit SegmentBuilder(uint32_t number, journal::Lsn first_lsn = 1,
                          uint16_t stream = journal::kHeadStream) {
    header_.number = number;
    header_.stream = stream;
    header_.first_lsn = first_lsn;
    header_.nonce = 0x5eed0000 + number;
    header_.epoch = 1;
    header_.created_ms = to_unix_ms(kStart);
    next_lsn_ = first_lsn;
    bytes_.resize(journal::kSegmentHeaderSize);
    mark();
  }

  SegmentBuilder& in_epoch(uint32_t epoch) { return header_.epoch = epoch, *this; }
  SegmentBuilder& in_version(uint16_t version) { return header_.version = version, *this; }
  SegmentBuilder& from_lsn(journal::Lsn lsn) { return next_lsn_ = lsn, *this; }

  /// Begins a commit. Everything before it was synced, or only `durable` bytes.
  SegmentBuilder& mark(std::optional<uint64_t> durable = std::nullopt) {
    return add_plain(journal::RecordType::kMark,
                     journal::MarkPayload{bytes_.size(), durable.value_or(bytes_.size())});
  }

  /// A delayed job whose number is its record's, or `seq` for a copy.
  SegmentBuilder& job(const JobSpec& spec, std::optional<uint64_t> seq = std::nullopt) {
    journal::JobPayload fixed{};
    fixed.state = state_of(seq.value_or(next_lsn_), spec.due);
    fixed.pushed_ms = to_unix_ms(kStart);
    fixed.priority = spec.priority;
    fixed.options_size = static_cast<uint16_t>(spec.options.size());
    fixed.topic_size = static_cast<uint8_t>(spec.topic.size());
    fixed.id_size = static_cast<uint8_t>(spec.id.size());
    fixed.group_size = static_cast<uint8_t>(spec.group.size());
    std::string payload(reinterpret_cast<const char*>(&fixed), sizeof fixed);
    payload += spec.topic + spec.id + spec.group + spec.options + spec.body;
    return add(journal::RecordType::kJob, payload);
  }

  SegmentBuilder& state(const journal::StatePayload& state) {
    return add_plain(journal::RecordType::kState, state);
  }

  /// Of a delayed job that is due at the start, unless a state is given.
  SegmentBuilder& outcome(uint64_t seq, std::string_view text) {
    return outcome(state_of(seq, kStart), text);
  }
  SegmentBuilder& outcome(const journal::StatePayload& state, std::string_view text) {
    std::string payload(reinterpret_cast<const char*>(&state), sizeof state);
    return add(journal::RecordType::kOutcome, payload.append(text));
  }

  SegmentBuilder& gone(uint64_t seq, uint32_t segment) {
    return add_plain(journal::RecordType::kGone, journal::GonePayload{seq, segment, 0});
  }

  SegmentBuilder& settings(std::string_view topic, std::string_view settings) {
    std::string payload(1, static_cast<char>(topic.size()));
    return add(journal::RecordType::kSettings, payload.append(topic).append(settings));
  }

  /// Due at the start. Its number is its record's, or `number` for a copy.
  SegmentBuilder& schedule(std::string_view name, std::string_view definition, uint64_t revision,
                           std::optional<uint64_t> number = std::nullopt) {
    journal::ScheduleView view{};
    view.fixed.number = number.value_or(next_lsn_);
    view.fixed.revision = revision;
    view.fixed.next_ms = to_unix_ms(kStart);
    view.name = name;
    view.definition = definition;
    return add_payload(journal::RecordType::kSchedule, view);
  }

  SegmentBuilder& turned(uint64_t number, uint64_t revision, Moment next, std::string_view progress) {
    const journal::TurnedView view{{number, revision, to_unix_ms(next)}, progress};
    return add_payload(journal::RecordType::kTurned, view);
  }

  /// The records that `fill` adds to this builder become one group.
  template <class Fill>
  SegmentBuilder& group(Fill fill) {
    const size_t start = bytes_.size();
    const journal::Lsn lsn = next_lsn_++;
    bytes_.resize(start + journal::kRecordHeaderSize);
    fill(*this);
    last_ = start;
    journal::seal_record(std::span(bytes_).subspan(start), header_.nonce, journal::RecordType::kGroup, lsn);
    return *this;
  }

  SegmentBuilder& add(journal::RecordType type, std::string_view payload) {
    last_ = bytes_.size();
    bytes_.resize(last_ + journal::kRecordHeaderSize + payload.size());
    const std::span<std::byte> record = std::span(bytes_).subspan(last_);
    if (!payload.empty())
      std::memcpy(record.data() + journal::kRecordHeaderSize, payload.data(), payload.size());
    journal::seal_record(record, header_.nonce, type, next_lsn_++);
    return *this;
  }

  /// Bytes that are not a record.
  SegmentBuilder& raw(std::string_view bytes) {
    for (const char byte : bytes) bytes_.push_back(static_cast<std::byte>(byte));
    return *this;
  }
  SegmentBuilder& zeros(size_t count) { return bytes_.resize(bytes_.size() + count), *this; }
  SegmentBuilder& flip(uint64_t offset, unsigned bit = 0) {
    bytes_.at(offset) ^= static_cast<std::byte>(1U << bit);
    return *this;
  }

  /// The offset of the latest record.
  uint64_t last() const { return last_; }
  uint64_t size() const { return bytes_.size(); }
  journal::Lsn next_lsn() const { return next_lsn_; }
  const journal::SegmentHeader& header() const { return header_; }
  std::string name() const { return journal::segment_name(header_.number); }

  std::vector<std::byte> bytes() const {
    std::vector<std::byte> all = bytes_;
    header_.encode(std::span(all).first<journal::kSegmentHeaderSize>());
    return all;
  }

  /// Writes it as a durable file.
  void save(journal::Disk& disk) const { save_file(disk, name(), bytes()); }

  static void save_file(journal::Disk& disk, std::string_view name, std::span<const std::byte> bytes) {
    const auto file = disk.create(name);
    if (!file.ok() || !(*file)->write(0, bytes).ok() || !(*file)->sync().ok() ||
        !disk.sync_directory().ok()) {
      throw std::runtime_error("a test could not prepare its disk");
    }
  }

  static journal::StatePayload state_of(uint64_t seq, Moment due, JobState state = JobState::kDelayed) {
    journal::StatePayload payload{};
    payload.seq = seq;
    payload.due_ms = to_unix_ms(due);
    payload.state = state;
    return payload;
  }

 private:
  template <class View>
  SegmentBuilder& add_payload(journal::RecordType type, const View& view) {
    std::string payload(journal::payload_size(view), '\0');
    journal::write_payload(std::as_writable_bytes(std::span(payload)), view);
    return add(type, payload);
  }
  template <class Plain>
  SegmentBuilder& add_plain(journal::RecordType type, const Plain& plain) {
    return add(type, {reinterpret_cast<const char*>(&plain), sizeof plain});
  }

  journal::SegmentHeader header_;
  std::vector<std::byte> bytes_;
  journal::Lsn next_lsn_ = 1;
  uint64_t last_ = 0;
};

/// Reads a whole file.
inline std::vector<std::byte> file_bytes(journal::Disk& disk, std::string_view name) {
  const auto file = disk.open(name);
  if (!file.ok()) throw std::runtime_error("no file " + std::string(name));
  std::vector<std::byte> bytes(*(*file)->size());
  if (!(*file)->read(0, bytes).ok()) throw std::runtime_error("unreadable: " + std::string(name));
  return bytes;
}

inline std::vector<std::string> file_names(journal::Disk& disk) {
  auto names = disk.list();
  if (!names.ok()) throw std::runtime_error(to_string(names.error()));
  std::sort(names->begin(), names->end());
  return *names;
}

}  // namespace delayq::support
