#include "engine/redis/record.h"

#include <algorithm>
#include <charconv>
#include <msgpuck.h>

namespace delayq::redis {

namespace {

constexpr int64_t kFarthest = (int64_t{1} << 53) - 1;
constexpr uint32_t kHeadItems = 12;
constexpr uint32_t kMostHeadItems = 13;  ///< with a lease length of its own
constexpr uint32_t kTailItems = 3;
constexpr uint32_t kColdItems = 6;
constexpr uint32_t kColdRecordItems = 7;
// A number takes at most nine bytes, the head of an array or a text at most five.
constexpr size_t kNumberBytes = 9;
constexpr size_t kTextHead = 5;

char* put_moment(char* at, Moment moment) {
  const int64_t ms = to_stored(moment);
  return ms < 0 ? mp_encode_int(at, ms) : mp_encode_uint(at, static_cast<uint64_t>(ms));
}

char* put_text(char* at, std::string_view text) {
  at = mp_encode_strl(at, static_cast<uint32_t>(text.size()));
  return std::copy(text.begin(), text.end(), at);
}

/// Reads arbitrary bytes: a value of the wrong type or past the end reads as zero, and so does
/// everything after it.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  uint64_t number() {
    if (!is(MP_UINT) || mp_check_uint(at_, end_) > 0) return reject<uint64_t>();
    return mp_decode_uint(&at_);
  }
  Moment moment() {
    if (!is(MP_INT)) return from_stored(static_cast<int64_t>(number()));
    if (mp_check_int(at_, end_) > 0) return reject<Moment>();
    return from_stored(mp_decode_int(&at_));
  }
  std::string_view text() {
    if (!is(MP_STR) || mp_check_strl(at_, end_) > 0) return reject<std::string_view>();
    const uint32_t size = mp_decode_strl(&at_);
    if (size > static_cast<size_t>(end_ - at_)) return reject<std::string_view>();
    const std::string_view text(at_, size);
    at_ += size;
    return text;
  }
  /// Returns the number of items, between `least` and `most`.
  uint32_t array_of(uint32_t least, uint32_t most) {
    if (!is(MP_ARRAY) || mp_check_array(at_, end_) > 0) return reject<uint32_t>();
    const uint32_t items = mp_decode_array(&at_);
    return items >= least && items <= most ? items : reject<uint32_t>();
  }
  void array_of(uint32_t items) { (void)array_of(items, items); }
  bool is_array() const { return is(MP_ARRAY); }
  bool ok() const { return ok_; }

 private:
  bool is(mp_type type) const { return ok_ && at_ < end_ && mp_typeof(*at_) == type; }
  template <class T>
  T reject() {
    ok_ = false;
    return {};
  }

  const char* at_;
  const char* end_;
  bool ok_ = true;
};

ColdBody read_place(Reader& reader) {
  ColdBody cold;
  reader.array_of(kColdItems);
  cold.version = static_cast<uint32_t>(reader.number());
  cold.hops = static_cast<uint32_t>(reader.number());
  cold.place.step = static_cast<uint32_t>(reader.number());
  cold.place.partition = static_cast<int32_t>(reader.number());
  cold.place.offset = static_cast<int64_t>(reader.number());
  cold.bytes = reader.number();
  return cold;
}

}  // namespace

int64_t to_stored(Moment moment) { return std::clamp(to_unix_ms(moment), -kFarthest, kFarthest); }

std::optional<Moment> time_of_lease(uint64_t number) {
  constexpr uint64_t kPerMilli = 1024;
  // Numbers of earlier versions only counted: none of them is as large as this, which is in the year 2004.
  constexpr uint64_t kFirst = uint64_t{1} << 50;
  if (number < kFirst) return std::nullopt;
  return from_unix_ms(static_cast<int64_t>(number / kPerMilli));
}

Moment from_stored(int64_t ms) { return ms >= kFarthest ? kNever : from_unix_ms(ms); }

Moment read_moment(std::string_view text) {
  // A score is a double; large ones are written as 1e+17.
  double ms = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ms);
  if (error != std::errc{} || end != text.data() + text.size()) return kNever;
  constexpr auto kLimit = static_cast<double>(kFarthest);
  return from_stored(static_cast<int64_t>(std::clamp(ms, -kLimit, kLimit)));
}

std::optional<Record> read_record(std::string_view bytes) {
  Reader reader(bytes);
  Record record;
  const uint32_t head_items = reader.array_of(kHeadItems, kMostHeadItems);
  if (reader.number() != kRecordVersion) return std::nullopt;
  const uint64_t state = reader.number();
  record.state = static_cast<JobState>(state);
  record.priority = static_cast<uint32_t>(reader.number());
  record.due = reader.moment();
  record.pushed = reader.moment();
  record.sequence = reader.number();
  const uint64_t outlet = reader.number();
  record.outlet = static_cast<Outlet>(outlet);
  record.attempts = static_cast<uint32_t>(reader.number());
  record.lease = reader.number();
  record.until = reader.moment();
  const uint64_t flags = reader.number();
  record.cancel_requested = (flags & kFlagCancelRequested) != 0;
  record.nonce = flags >> 1;
  record.outcome = reader.text();
  if (head_items == kMostHeadItems) (void)reader.number();  // Only scripts need the job's own lease length.
  reader.array_of(kTailItems);
  record.group = reader.text();
  record.options = reader.text();
  if (reader.is_array()) {
    record.cold = read_place(reader);
  } else {
    record.body = reader.text();
  }
  if (!reader.ok() || state >= kJobStateCount || outlet >= kOutletCount) return std::nullopt;
  return record;
}

bool read_turn(std::string_view bytes, StoredSchedule& schedule) {
  Reader reader(bytes);
  reader.array_of(4);
  if (reader.number() != kRecordVersion) return false;
  const std::string_view revision = reader.text();
  schedule.next = reader.moment();
  schedule.progress = reader.text();
  const char* const end = revision.data() + revision.size();
  const auto [stop, problem] = std::from_chars(revision.data(), end, schedule.revision);
  return reader.ok() && !revision.empty() && problem == std::errc{} && stop == end;
}

std::string write_cold(const ColdRecord& record) {
  const size_t texts =
      record.deployment.size() + record.topic.size() + record.id.size() + record.record.size();
  std::string bytes(texts + 5 * kTextHead + 3 * kNumberBytes, '\0');
  char* at = mp_encode_array(bytes.data(), kColdRecordItems);
  at = mp_encode_uint(at, kRecordVersion);
  at = put_text(at, record.deployment);
  at = put_text(at, record.topic);
  at = put_text(at, record.id);
  at = mp_encode_uint(at, record.version);
  at = mp_encode_uint(at, record.hops);
  at = put_text(at, record.record);
  bytes.resize(static_cast<size_t>(at - bytes.data()));
  return bytes;
}

std::optional<ColdRecord> read_cold(std::string_view bytes) {
  Reader reader(bytes);
  ColdRecord record;
  reader.array_of(kColdRecordItems);
  if (reader.number() != kRecordVersion) return std::nullopt;
  record.deployment = reader.text();
  record.topic = reader.text();
  record.id = reader.text();
  record.version = static_cast<uint32_t>(reader.number());
  record.hops = static_cast<uint32_t>(reader.number());
  record.record = reader.text();
  if (!reader.ok()) return std::nullopt;
  return record;
}

RecordPieces write_job(const Job& job, Millis own_lease, Arena& storage) {
  const bool is_kept = !is_live(job.state);
  const bool has_own_lease = own_lease > Millis::zero();
  const size_t texts = job.outcome.size() + job.group.size() + job.options.size() + job.body.size();
  const std::span<char> room =
      storage.allocate(texts + 2 * kTextHead + 4 * kTextHead + (kMostHeadItems - 2) * kNumberBytes);
  char* at = mp_encode_array(room.data(), has_own_lease ? kMostHeadItems : kHeadItems);
  at = mp_encode_uint(at, kRecordVersion);
  at = mp_encode_uint(at, is_kept ? static_cast<uint64_t>(job.state) : 0);
  at = mp_encode_uint(at, job.priority);
  at = put_moment(at, job.due);
  at = put_moment(at, job.pushed);
  char* const middle = at;
  at = mp_encode_uint(at, static_cast<uint64_t>(job.outlet));
  at = mp_encode_uint(at, job.attempts);
  at = mp_encode_uint(at, 0);  // lease
  at = put_moment(at, is_kept ? job.until : Moment{});
  at = mp_encode_uint(at, 0);  // flags
  at = put_text(at, job.outcome);
  if (has_own_lease) at = mp_encode_uint(at, static_cast<uint64_t>(own_lease.count()));
  at = mp_encode_array(at, kTailItems);
  at = put_text(at, job.group);
  at = put_text(at, job.options);
  at = put_text(at, job.body);
  return {{room.data(), static_cast<size_t>(middle - room.data())},
          {middle, static_cast<size_t>(at - middle)}};
}

RecordPieces write_new_job(const NewJob& job, Moment now, Arena& storage) {
  Job fresh;
  fresh.group = job.group;
  fresh.body = job.body;
  fresh.options = job.options;
  fresh.priority = job.priority;
  fresh.due = job.due;
  fresh.pushed = now;
  fresh.outlet = job.outlet;
  return write_job(fresh, job.lease, storage);
}

Job copy_job(const Record& record, std::string_view topic, std::string_view id, bool with_body,
             Arena& storage) {
  return {
      .topic = storage.copy(topic),
      .id = storage.copy(id),
      .group = storage.copy(record.group),
      .body = with_body ? storage.copy(record.body) : std::string_view{},
      .options = storage.copy(record.options),
      .outcome = storage.copy(record.outcome),
      .state = record.state,
      .priority = record.priority,
      .attempts = record.attempts,
      .due = record.due,
      .pushed = record.pushed,
      .until = record.until,
      .cancel_requested = record.cancel_requested,
      .outlet = record.outlet,
      .handed_over =
          record.state == JobState::kReserved ? time_of_lease(record.lease).value_or(Moment{}) : Moment{},
  };
}

}  // namespace delayq::redis
