#include "engine/redis/record.h"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

namespace delayq::redis {
namespace {

/// The record as push.lua joins it.
std::string joined(const RecordPieces& pieces, uint64_t sequence) {
  std::string record(pieces.before);
  record += '\xcf';
  for (int shift = 56; shift >= 0; shift -= 8) record += static_cast<char>(sequence >> shift);
  record += pieces.after;
  return record;
}

TEST(Record, ANewJobIsReadBack) {
  const NewJob job{.topic = "t",
                   .id = "a",
                   .group = "g",
                   .body = std::string_view("\0\xff body", 7),
                   .options = "o",
                   .due = from_unix_ms(1'700'000'000'123),
                   .priority = 4'294'967'295,
                   .outlet = Outlet::kCallback};
  Arena storage;
  const std::string bytes = joined(write_new_job(job, from_unix_ms(1'600'000'000'000), storage), 77);
  const std::optional<Record> record = read_record(bytes);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->state, JobState::kDelayed);
  EXPECT_EQ(record->priority, job.priority);
  EXPECT_EQ(record->due, job.due);
  EXPECT_EQ(record->pushed, from_unix_ms(1'600'000'000'000));
  EXPECT_EQ(record->sequence, 77U);
  EXPECT_EQ(record->outlet, Outlet::kCallback);
  EXPECT_EQ(record->attempts, 0U);
  EXPECT_EQ(record->lease, 0U);
  EXPECT_EQ(record->until, Moment{});
  EXPECT_FALSE(record->cancel_requested);
  EXPECT_EQ(record->outcome, "");
  EXPECT_EQ(record->group, "g");
  EXPECT_EQ(record->options, "o");
  EXPECT_EQ(record->body, job.body);
}

TEST(Record, OnlyKeptJobsKeepStateAndUntil) {
  Job job;
  job.until = from_unix_ms(5'000);
  job.attempts = 3;
  job.outcome = "broken";
  for (const JobState state :
       {JobState::kDelayed, JobState::kReady, JobState::kReserved, JobState::kDone, JobState::kDead}) {
    SCOPED_TRACE(name_of(state));
    job.state = state;
    Arena storage;
    const std::string bytes = joined(write_job(job, Millis::zero(), storage), 1);
    const std::optional<Record> record = read_record(bytes);
    ASSERT_TRUE(record);
    EXPECT_EQ(record->state, is_live(state) ? JobState::kDelayed : state);
    EXPECT_EQ(record->until, is_live(state) ? Moment{} : job.until);
    EXPECT_EQ(record->attempts, 3U);
    EXPECT_EQ(record->outcome, "broken");
  }
}

TEST(Record, MomentsThatADoubleCannotTellApartAreNever) {
  EXPECT_EQ(from_stored(to_stored(kNever)), kNever);
  EXPECT_EQ(to_stored(Moment::min()), -to_stored(kNever));
  EXPECT_EQ(from_stored(to_stored(from_unix_ms(-5))), from_unix_ms(-5));
  EXPECT_EQ(read_moment("1700000000000"), from_unix_ms(1'700'000'000'000));
  EXPECT_EQ(read_moment("1.7e+12"), from_unix_ms(1'700'000'000'000));
  EXPECT_EQ(read_moment("1e+300"), kNever);
  EXPECT_EQ(read_moment(""), kNever);
  EXPECT_EQ(read_moment("soon"), kNever);
}

TEST(Record, ALaterVersionIsNotGuessed) {
  Arena storage;
  std::string bytes = joined(write_job(Job{}, Millis::zero(), storage), 1);
  ASSERT_TRUE(read_record(bytes));
  bytes[1] = kRecordVersion + 1;
  EXPECT_FALSE(read_record(bytes));
}

TEST(Record, WhatIsCutOffIsNone) {
  Job job;
  job.body = "body";
  Arena storage;
  const std::string bytes = joined(write_job(job, Millis::zero(), storage), 1);
  for (size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(read_record(bytes.substr(0, size))) << size;
}

TEST(Record, CountsBeyondAllBoundsAreRefused) {
  Arena storage;
  const std::string bytes = joined(write_job(Job{}, Millis::zero(), storage), 1);
  const std::string many("\xdd\xff\xff\xff\xff", 5);
  EXPECT_FALSE(read_record(many + bytes.substr(1)));
  for (size_t place = 1; place < bytes.size(); ++place) {
    std::string changed = bytes;
    read_record(changed.replace(place, many.size(), many));
  }
}

TEST(Record, AnyByteAnywhereIsReadOrRefused) {
  Arena storage;
  const std::string bytes = joined(write_job(Job{}, Millis::zero(), storage), 1);
  for (size_t place = 0; place < bytes.size(); ++place) {
    for (int byte = 0; byte < 256; ++byte) {
      std::string changed = bytes;
      changed[place] = static_cast<char>(byte);
      const std::optional<Record> record = read_record(changed);
      if (!record) continue;
      for (const std::string_view text : {record->outcome, record->group, record->options, record->body})
        ASSERT_LE(text.data() + text.size(), changed.data() + changed.size()) << place << " " << byte;
    }
  }
}

RC_GTEST_PROP(Record, AnyBytesAreReadOrRefused, (const std::string& noise, uint8_t place)) {
  Arena storage;
  std::string bytes = joined(write_job(Job{}, Millis::zero(), storage), 1);
  bytes.replace(place % bytes.size(), noise.size(), noise);
  // Whatever the record says, the body must lie within the bytes.
  if (const std::optional<Record> record = read_record(bytes); record && !record->body.empty()) {
    RC_ASSERT(record->body.data() >= bytes.data());
    RC_ASSERT(record->body.data() + record->body.size() <= bytes.data() + bytes.size());
  }
}

TEST(TurnRecord, IsReadOrRefused) {
  // As turn.lua packs it: 1, "18446744073709551615", 1800000000000, "p".
  const std::string bytes(
      "\x94\x01\xb4"
      "18446744073709551615"
      "\xcf\x00\x00\x01\xa3\x18\x5c\x50\x00"
      "\xa1p",
      34);
  StoredSchedule schedule;
  ASSERT_TRUE(read_turn(bytes, schedule));
  EXPECT_EQ(schedule.revision, 18446744073709551615U);
  EXPECT_EQ(schedule.next, from_unix_ms(1'800'000'000'000));
  EXPECT_EQ(schedule.progress, "p");
  for (size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(read_turn(bytes.substr(0, size), schedule));
  for (const auto& [place, byte] : {std::pair(0, '\x93'), std::pair(1, '\x02'), std::pair(5, 'x')}) {
    std::string changed = bytes;
    changed[static_cast<size_t>(place)] = byte;
    EXPECT_FALSE(read_turn(changed, schedule)) << place;
  }
}

}  // namespace
}  // namespace delayq::redis
