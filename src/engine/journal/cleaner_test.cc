#include "engine/journal/cleaner.h"

#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "engine/journal/segments.h"
#include "tests/support/journal_on_disk.h"
#include "tests/support/segment_builder.h"

namespace delayq::journal {
namespace {

using support::at;
using support::JobSpec;
using support::kStart;
using support::SegmentBuilder;

class CleanerTest : public testing::Test {
 protected:
  CleanerTest() { on_disk.options.segment_bytes = 4096; }

  /// Pushes and cancels jobs until compaction has visited everything that was written before.
  void churn(int rounds = 60) {
    for (int i = 0; i < rounds; ++i) {
      on_disk.driver->push(JobSpec("churn", "x").due_at(at(1'000'000)).with_body(std::string(900, 'x')));
      on_disk.driver->cancel("churn", "x");
      on_disk.settle();
    }
  }

  /// The same, but leaves so much in each new segment that the earlier ones have the smallest needed share.
  void churn_and_fill(int rounds = 60) {
    churn(4);
    for (int i = 0; i < rounds; ++i) {
      churn(1);
      on_disk.driver->push(
          JobSpec("fill", std::to_string(fill_++)).due_at(at(9'000'000)).with_body(std::string(800, 'f')));
    }
  }

  /// The contents of the directory by stream: the ids of its job records, and the number of
  /// records of each type.
  struct Contents {
    std::set<std::string> ids;
    std::map<RecordType, int> records;
  };
  std::map<uint16_t, Contents> look() {
    std::map<uint16_t, Contents> streams;
    auto segments = find_segments(on_disk.disk);
    for (const SegmentFile& segment : *segments) {
      const auto bytes = read_whole(segment);
      SegmentScanner scanner(*bytes, segment.header, segment.has_successor);
      while (const auto record = scanner.next()) {
        ++streams[segment.header.stream].records[record->type];
        if (const auto job = parse_job(record->payload); record->type == RecordType::kJob && job) {
          streams[segment.header.stream].ids.emplace(job->id);
        }
      }
    }
    return streams;
  }

  bool is_there(uint32_t segment) { return on_disk.disk.open(segment_name(segment)).ok(); }

  support::JournalOnDisk on_disk;
  int fill_ = 0;
};

TEST_F(CleanerTest, disk_stays_bounded_and_survivors_stay) {
  auto& driver = on_disk.open();
  for (int i = 0; i < 20; ++i) {
    driver.push(
        JobSpec("keep", std::to_string(i)).due_at(at(3'600'000)).with_body("body " + std::to_string(i)));
    churn(5);
  }
  churn();
  EXPECT_LT(on_disk.engine->usage().disk_bytes, 20'000U + 6 * 4096U);
  on_disk.restart(kStart);
  EXPECT_EQ(driver.count("keep", JobState::kDelayed), 20U);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(driver.get("keep", std::to_string(i))->body, "body " + std::to_string(i));
  }
}

TEST_F(CleanerTest, survivors_are_grouped_by_the_day_they_are_due) {
  auto& driver = on_disk.open();
  using std::chrono::days;
  const std::map<int, uint16_t> stream_of_day{{0, 1}, {1, 2},  {2, 3},  {3, 3},  {4, 4},   {7, 4},
                                              {8, 5}, {16, 6}, {31, 6}, {32, 7}, {3650, 7}};
  for (const auto& [day, stream] : stream_of_day) {
    driver.push(JobSpec("keep", std::to_string(day)).due_at(kStart + days{day} + Millis{1000}));
  }
  churn_and_fill();
  const auto streams = look();
  for (const auto& [day, stream] : stream_of_day) {
    ASSERT_TRUE(streams.contains(stream)) << stream;
    EXPECT_TRUE(streams.at(stream).ids.contains(std::to_string(day))) << "day " << day;
  }
}

TEST_F(CleanerTest, state_and_outcome_survive_with_the_job) {
  auto& driver = on_disk.open();
  driver.push(JobSpec("keep", "a").with_body("body"));
  driver.retry(driver.take_one("keep"), at(500'000), "no answer");
  driver.push(JobSpec("keep", "b"));
  const support::Taken leased = driver.take_one("keep", std::chrono::hours{5});
  churn_and_fill();
  EXPECT_FALSE(is_there(1));
  on_disk.restart(kStart);
  const auto job = driver.get("keep", "a");
  ASSERT_TRUE(job);
  EXPECT_EQ(job->due, at(500'000));
  EXPECT_EQ(job->attempts, 1U);
  EXPECT_EQ(job->outcome, "no answer");
  EXPECT_EQ(job->body, "body");
  EXPECT_EQ(driver.ack(leased), AckOutcome::kAcked);
}

TEST_F(CleanerTest, the_end_of_a_kept_job_and_a_sooner_end_of_its_retention_survive) {
  auto& driver = on_disk.open();
  driver.go_to(at(1'000));
  for (const char* id : {"a", "b"}) {
    driver.push(JobSpec("keep", id));
    driver.ack(driver.take_one("keep"), {at(900'000'000), 9});
  }
  TrimRequest request;
  request.topic = "keep";
  request.count = 9;
  request.time = Millis{800'000'000};
  EXPECT_EQ(driver.trim(request), 0U);
  churn_and_fill();
  EXPECT_FALSE(is_there(1));
  on_disk.restart(kStart);
  EXPECT_EQ(driver.get("keep", "a")->until, at(800'001'000));
  request.time = Millis{700'000'000};
  EXPECT_EQ(driver.trim(request), 0U);
  EXPECT_EQ(driver.get("keep", "a")->until, at(700'001'000));
  on_disk.restart(at(5'000));
  request.time = Millis{4'000};
  EXPECT_EQ(driver.trim(request), 2U);
}

TEST_F(CleanerTest, a_gone_record_is_kept_while_the_jobs_segment_exists) {
  auto& driver = on_disk.open();
  // Full of jobs that stay, so it is not compacted, and one job that is removed.
  for (int i = 0; i < 20; ++i)
    driver.push(JobSpec("keep", std::to_string(i)).due_at(at(9'000'000)).with_body(std::string(90, 'b')));
  driver.cancel("keep", "3");
  churn();
  ASSERT_TRUE(is_there(1));
  on_disk.restart(kStart);
  EXPECT_FALSE(driver.get("keep", "3"));
  EXPECT_EQ(driver.count("keep", JobState::kDelayed), 19U);
}

TEST_F(CleanerTest, a_gone_record_goes_when_the_jobs_segment_is_gone) {
  auto& driver = on_disk.open();
  driver.push(JobSpec("keep", "a").due_at(at(9'000'000)));
  driver.cancel("keep", "a");
  churn(200);
  EXPECT_FALSE(is_there(1));
  int gone = 0;
  for (const auto& [stream, contents] : look()) {
    if (stream == kHeadStream) continue;
    if (const auto found = contents.records.find(RecordType::kGone); found != contents.records.end())
      gone += found->second;
  }
  EXPECT_LT(gone, 100) << "kGone records pile up";
}

TEST_F(CleanerTest, settings_stay_and_removed_ones_stay_removed) {
  auto& driver = on_disk.open();
  driver.store_settings("mail", "first");
  driver.store_settings("push", "kept");
  driver.store_settings("mail", "");
  churn_and_fill();
  EXPECT_FALSE(is_there(1));
  on_disk.restart(kStart);
  ASSERT_EQ(driver.load_settings().size(), 1U);
  EXPECT_EQ(driver.load_settings()[0].topic, "push");
  EXPECT_EQ(driver.load_settings()[0].settings, "kept");
}

TEST_F(CleanerTest, a_removal_of_settings_outlives_an_older_segment_that_is_needed) {
  auto& driver = on_disk.open();
  driver.store_settings("mail", "old");
  for (int i = 0; i < 25; ++i)
    driver.push(JobSpec("keep", std::to_string(i)).due_at(at(9'000'000)).with_body(std::string(50, 'b')));
  churn(4);
  driver.store_settings("mail", "");
  churn();
  ASSERT_TRUE(is_there(1));
  on_disk.restart(kStart);
  EXPECT_TRUE(driver.load_settings().empty());
}

TEST_F(CleanerTest, a_damaged_victim_is_left_alone) {
  auto& driver = on_disk.open();
  driver.push(JobSpec("keep", "a").due_at(at(9'000'000)));
  churn(2);
  const auto file = on_disk.disk.open(segment_name(1));
  ASSERT_TRUE((*file)->write(kSegmentHeaderSize + 40, std::array{std::byte{0xff}, std::byte{0xff}}).ok());
  churn();
  EXPECT_TRUE(is_there(1));
  EXPECT_TRUE(on_disk.engine->usage().disk_bytes < 20 * 4096U) << "the others are cleaned all the same";
}

TEST_F(CleanerTest, a_failed_removal_stops_the_engine) {
  auto& driver = on_disk.open();
  on_disk.disk.fail(support::DiskFault::kRemove, 0);
  Result<std::vector<PushAnswer>> last = std::vector<PushAnswer>{};
  for (int i = 0; i < 100 && last.ok(); ++i) {
    const JobSpec spec = JobSpec("churn", "x").with_body(std::string(900, 'x')).or_replace();
    last = driver.ask<std::vector<PushAnswer>>("push", [&](auto reply) {
      on_disk.engine->push(kStart, std::vector{spec.view()}, std::move(reply));
    });
    on_disk.settle();
  }
  ASSERT_FALSE(last.ok());
  EXPECT_EQ(last.error().code, ErrorCode::kUnavailable);
}

/// Directories as left by a crash during the compaction of segment 1. The job "a" of segment 1 had been
/// copied to segment 2 and was then cancelled, so its kGone record, in segment 3, names segment 2.
class InterruptedCleaningTest : public CleanerTest {
 protected:
  /// Segment 1: the job "a", and many jobs that stay. 60 % of it is needed, so others are
  /// compacted before it.
  SegmentBuilder victim() {
    SegmentBuilder segment(1);
    segment.job(JobSpec("mail", "a").due_at(at(1'000'000)));
    for (int i = 0; i < 60; ++i)
      segment.job(JobSpec("keep", std::to_string(i)).due_at(at(9'000'000)).with_body(std::string(100, 'b')));
    for (int i = 0; i < 40; ++i) segment.outcome(1, std::string(200, 'z'));
    return segment;
  }
  static constexpr uint64_t kSeq = 2;

  SegmentBuilder log_after(Lsn lsn) { return SegmentBuilder(3, lsn); }
  static void add_waste(SegmentBuilder& segment) {
    for (int i = 0; i < 150; ++i) segment.outcome(1, std::string(200, 'z'));
  }

  void expect_that_it_stays_gone() {
    auto& driver = on_disk.open();
    ASSERT_FALSE(driver.get("mail", "a")) << "at once";
    for (int i = 0; i < 5; ++i) {
      churn(20);
      on_disk.restart(kStart);
      ASSERT_FALSE(driver.get("mail", "a")) << "after restart " << i;
      ASSERT_EQ(driver.count("keep", JobState::kDelayed), 60U);
    }
    EXPECT_FALSE(is_there(3)) << "the test did not clean what it is about";
  }
};

TEST_F(InterruptedCleaningTest, the_copy_was_lost) {
  const SegmentBuilder first = victim();
  first.save(on_disk.disk);
  SegmentBuilder log = log_after(first.next_lsn());
  log.gone(kSeq, 2);
  add_waste(log);
  log.save(on_disk.disk);
  expect_that_it_stays_gone();
}

TEST_F(InterruptedCleaningTest, the_copy_is_there_too) {
  const SegmentBuilder first = victim();
  first.save(on_disk.disk);
  SegmentBuilder copy(2, first.next_lsn(), 1);
  copy.job(JobSpec("mail", "a").due_at(at(1'000'000)), kSeq).save(on_disk.disk);
  SegmentBuilder log = log_after(copy.next_lsn());
  log.gone(kSeq, 2);
  add_waste(log);
  log.save(on_disk.disk);
  expect_that_it_stays_gone();
}

TEST_F(InterruptedCleaningTest, the_copy_was_lost_and_the_job_replaced) {
  const SegmentBuilder first = victim();
  first.save(on_disk.disk);
  SegmentBuilder log = log_after(first.next_lsn());
  const uint64_t replacement = log.next_lsn();
  log.job(JobSpec("mail", "a").due_at(at(5'000'000))).gone(kSeq, 2).gone(replacement, 3);
  add_waste(log);
  log.save(on_disk.disk);
  expect_that_it_stays_gone();
}

TEST_F(InterruptedCleaningTest, a_job_was_replaced_and_the_crash_tore_off_that_it_was_gone) {
  const SegmentBuilder first = victim();
  first.save(on_disk.disk);
  SegmentBuilder log = log_after(first.next_lsn());
  const uint64_t replacement = log.next_lsn();
  log.job(JobSpec("mail", "a").due_at(at(5'000'000))).gone(replacement, 3);
  add_waste(log);
  log.save(on_disk.disk);
  expect_that_it_stays_gone();
}

TEST_F(CleanerTest, its_copies_are_counted) {
  auto& driver = on_disk.open();
  driver.push(JobSpec("keep", "a").due_at(at(3'600'000)).with_body(std::string(500, 'k')));
  EXPECT_EQ(on_disk.engine->usage().copied_bytes, 0U);
  EXPECT_EQ(on_disk.engine->usage().segments, 1U);
  churn_and_fill();
  const EngineUsage usage = on_disk.engine->usage();
  EXPECT_GT(usage.copied_bytes, 500U);
  EXPECT_LT(usage.copied_bytes, usage.written_bytes);
  EXPECT_GT(usage.written_bytes, usage.disk_bytes);
  EXPECT_GT(usage.segments, 1U);
  const CommitFigures commits = on_disk.engine->commits();
  EXPECT_GT(commits.records.count(), 64U);
  EXPECT_EQ(commits.records.count(), commits.micros.count());
}

}  // namespace
}  // namespace delayq::journal
