#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/job_state.h"

/// The bytes on disk, and nothing else. docs/internals/journal-format.md describes them in words, and a
/// golden file in testdata/ ensures that both stay the same. All numbers are little-endian.
namespace delayq::journal {

static_assert(std::endian::native == std::endian::little,
              "the journal is written in the machine's byte order");

inline constexpr uint16_t kFormatVersion = 1;
inline constexpr std::array<char, 8> kSegmentMagic{'D', 'L', 'Y', 'Q', 'S', 'E', 'G', '\n'};

/// Stream 0 is the log. The others hold the records that compaction kept, grouped by the
/// distance of their due day.
inline constexpr uint16_t kHeadStream = 0;
inline constexpr uint16_t kStreamCount = 8;

/// Log sequence number. Every record has one; they define one order over the records of all streams.
using Lsn = uint64_t;
inline constexpr Lsn kMaxLsn = (uint64_t{1} << 48) - 1;

inline constexpr size_t kSegmentHeaderSize = 64;

struct SegmentHeader {
  uint16_t version = kFormatVersion;
  uint16_t stream = kHeadStream;
  uint32_t nonce = 0;   ///< seeds the checksum of every record in the segment
  uint32_t number = 0;  ///< unique in the directory, increasing within a stream
  uint32_t epoch = 0;   ///< how often the directory had been opened; makes leases unique
  Lsn first_lsn = 0;    ///< no record of the segment has a lower one
  int64_t created_ms = 0;
  uint32_t previous = 0;       ///< number of the previous segment of the stream; 0: none
  uint64_t previous_size = 0;  ///< its size when this segment was begun
  uint64_t directory = 0;      ///< the number in the manifest; 0: written before there were manifests

  void encode(std::span<std::byte, kSegmentHeaderSize> out) const;
  /// Returns nullopt if this is not a segment header or is damaged. Does not check the version.
  static std::optional<SegmentHeader> decode(std::span<const std::byte, kSegmentHeaderSize> in);
};

/// "segment-0000000042", and the reverse.
std::string segment_name(uint32_t number);
std::optional<uint32_t> parse_segment_name(std::string_view name);

enum class RecordType : uint8_t {
  kMark = 1,      ///< start of a commit; says what was durable at that time
  kJob = 2,       ///< a whole job: pushed, or copied by compaction
  kState = 3,     ///< the changeable part of a job, complete; the latest one counts
  kOutcome = 4,   ///< the same, with the text of the outcome that led to it
  kGone = 5,      ///< the job is removed
  kSettings = 6,  ///< a topic's settings
  kHole = 7,      ///< bytes given up by a repair
  kGroup = 8,     ///< whole records that take effect together: its payload
  kSchedule = 9,  ///< a whole schedule: stored, or copied by compaction
  kTurned = 10,   ///< the changeable part of a schedule, complete: the latest one counts
};

inline constexpr size_t kRecordHeaderSize = 16;
/// More than the largest job: 64 MiB of body plus its other data.
inline constexpr uint32_t kMaxPayload = (64u << 20) + (1u << 17);
/// Of a group: a schedule as large as that, the job that it makes, and some small records.
inline constexpr uint32_t kMaxGroupPayload = 2 * kMaxPayload + (1u << 10);

struct RecordHeader {
  uint32_t crc = 0;
  uint32_t size = 0;  ///< of the payload
  uint64_t lsn_and_type = 0;

  Lsn lsn() const { return lsn_and_type & ((uint64_t{1} << 56) - 1); }
  RecordType type() const { return static_cast<RecordType>(lsn_and_type >> 56); }
};
static_assert(sizeof(RecordHeader) == kRecordHeaderSize);

/// Writes header and checksum before a payload that is already in place.
/// REQUIRES: record.size() >= kRecordHeaderSize.
void seal_record(std::span<std::byte> record, uint32_t nonce, RecordType type, Lsn lsn);

/// A record in the bytes of its segment.
struct RecordView {
  RecordType type;
  Lsn lsn;
  std::span<const std::byte> payload;

  size_t size() const { return kRecordHeaderSize + payload.size(); }
};
/// Returns the record at the start of `bytes`, or nullopt if there is none that is complete and undamaged.
std::optional<RecordView> read_record(std::span<const std::byte> bytes, uint32_t nonce);

/// A record of a group. `offset` is counted from the start of the group's own record.
struct GroupedRecord {
  RecordView record;
  uint32_t offset;
};
/// At most: a turn writes a schedule, a job, and that two jobs and an earlier definition are gone.
inline constexpr size_t kMostInGroup = 8;
/// The records of a group; empty when its payload is anything else.
/// REQUIRES: group.type == RecordType::kGroup.
std::span<const GroupedRecord> read_group(const RecordView& group, uint32_t nonce,
                                          std::array<GroupedRecord, kMostInGroup>& room);

// ---- payloads

struct MarkPayload {
  uint64_t offset;  ///< of this record in its segment; a mark copied to another place is ignored
  /// every byte of the segment before this offset had been synced when the mark was written
  uint64_t durable;
};

/// The changeable part of a job. A kState record is exactly this.
struct StatePayload {
  uint64_t seq;  ///< the job's number: the LSN of its push
  int64_t due_ms;
  int64_t until_ms;  ///< lease deadline or end of retention
  uint64_t lease;    ///< reserved: the lease; done and dead: when the job ended, in ms, or 0 if unknown
  uint32_t attempts;
  JobState state;
  uint8_t flags;  ///< kCancelRequested, kHasCallback
  uint16_t zero;
};
static_assert(sizeof(StatePayload) == 40);
inline constexpr uint8_t kCancelRequested = 1;
/// The job's outlet is Outlet::kCallback. The same in all records of a job.
inline constexpr uint8_t kHasCallback = 2;

/// Precedes the strings of a job: topic, id, group, options, body, in this order. The body is
/// the rest of the record.
struct JobPayload {
  StatePayload state;
  int64_t pushed_ms;
  uint32_t priority;
  uint16_t options_size;
  uint8_t topic_size;
  uint8_t id_size;
  uint8_t group_size;
  std::array<uint8_t, 3> zero;
  uint32_t lease_ms;  ///< the job's own lease length; 0: none, or written before jobs had this field
};
static_assert(sizeof(JobPayload) == 64);

struct GonePayload {
  uint64_t seq;  ///< the number of a job or of a schedule
  /// Where its kJob or kSchedule record was. The kGone record is needed as long as that segment exists.
  uint32_t segment;
  uint32_t zero;
};
static_assert(sizeof(GonePayload) == 16);

/// In front of a schedule's strings: name, progress, definition, in this order; the definition takes what is
/// left.
struct SchedulePayload {
  uint64_t number;  ///< the LSN of the record that stored this definition; a copy keeps it
  uint64_t revision;
  int64_t next_ms;
  uint32_t progress_size;
  uint8_t name_size;
  std::array<uint8_t, 3> zero;
};
static_assert(sizeof(SchedulePayload) == 32);

/// In front of the progress of a schedule, which takes what is left.
struct TurnedPayload {
  uint64_t number;  ///< of the schedule
  uint64_t revision;
  int64_t next_ms;
};
static_assert(sizeof(TurnedPayload) == 24);

/// A parsed job record. The views point into the record.
struct JobView {
  JobPayload fixed;
  std::string_view topic;
  std::string_view id;
  std::string_view group;
  std::string_view options;
  std::string_view body;
};
std::optional<JobView> parse_job(std::span<const std::byte> payload);

struct OutcomeView {
  StatePayload state;
  std::string_view text;
};
std::optional<OutcomeView> parse_outcome(std::span<const std::byte> payload);

struct SettingsView {
  std::string_view topic;
  std::string_view settings;
};
std::optional<SettingsView> parse_settings(std::span<const std::byte> payload);

struct ScheduleView {
  SchedulePayload fixed;
  std::string_view name;
  std::string_view progress;
  std::string_view definition;
};
std::optional<ScheduleView> parse_schedule(std::span<const std::byte> payload);
size_t payload_size(const ScheduleView& schedule);
/// Sets the sizes in `fixed`. REQUIRES: payload.size() == payload_size(schedule).
void write_payload(std::span<std::byte> payload, const ScheduleView& schedule);

struct TurnedView {
  TurnedPayload fixed;
  std::string_view progress;
};
std::optional<TurnedView> parse_turned(std::span<const std::byte> payload);
size_t payload_size(const TurnedView& turned);
/// REQUIRES: payload.size() == payload_size(turned).
void write_payload(std::span<std::byte> payload, const TurnedView& turned);

/// For payloads that are one plain struct.
template <class Plain>
std::optional<Plain> parse_plain(std::span<const std::byte> payload) {
  if (payload.size() != sizeof(Plain)) return std::nullopt;
  Plain plain;
  std::memcpy(&plain, payload.data(), sizeof plain);
  return plain;
}

inline std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace delayq::journal
