#include "engine/journal/recovery.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/segment_builder.h"
#include "tests/support/virtual_disk.h"

namespace delayq::journal {
namespace {

using support::at;
using support::JobSpec;
using support::kStart;
using support::SegmentBuilder;
using testing::AllOf;
using testing::HasSubstr;

class RecoveryTest : public testing::Test {
 protected:
  Result<Recovered> recover() { return journal::recover(disk, store, 7); }

  /// Recovers, which must succeed, and makes the store live.
  Recovered recover_well(Moment now = kStart) {
    const Result<Recovered> recovered = recover();
    if (!recovered.ok()) throw std::runtime_error(to_string(recovered.error()));
    store.go_live(now);
    return *recovered;
  }

  bool has(std::string_view topic, std::string_view id) { return store.find(topic, id) != kNoSlot; }
  const Entry& job(std::string_view topic, std::string_view id) { return store.jobs[store.find(topic, id)]; }

  support::VirtualDisk disk{1};
  Store store{SipKey{1, 2}};
};

TEST_F(RecoveryTest, an_empty_directory_is_a_fresh_start) {
  const Recovered recovered = recover_well();
  EXPECT_EQ(recovered.next_lsn, 1U);
  EXPECT_EQ(recovered.epoch, 1U);
  EXPECT_EQ(recovered.records, 0U);
  EXPECT_EQ(store.jobs.size(), 0U);
}

TEST_F(RecoveryTest, other_files_are_left_alone) {
  SegmentBuilder::save_file(disk, "lock", {});
  SegmentBuilder::save_file(disk, "segment-12.damaged", {});
  SegmentBuilder::save_file(disk, "segment-0000000000", {});
  recover_well();
  EXPECT_EQ(support::file_names(disk),
            (std::vector<std::string>{"lock", "manifest", "segment-0000000000", "segment-12.damaged"}));
}

TEST_F(RecoveryTest, a_job_record_is_a_job) {
  SegmentBuilder segment(1);
  segment.job(
      JobSpec("mail", "a").due_at(at(500)).with_priority(7).in_group("g").with_options("o").with_body("b"));
  segment.save(disk);
  const Recovered recovered = recover_well();
  const Entry& entry = job("mail", "a");
  EXPECT_EQ(entry.state(), JobState::kDelayed);
  EXPECT_EQ(entry.due(), at(500));
  EXPECT_EQ(entry.priority, 7U);
  EXPECT_TRUE(entry.has_options);
  EXPECT_EQ(entry.location.segment, 1U);
  EXPECT_EQ(entry.location.offset, segment.last());
  EXPECT_EQ(entry.location.size, segment.size() - segment.last());
  EXPECT_EQ(store.segments.live_bytes(), entry.location.size);
  EXPECT_EQ(store.groups.members("g", {}, 10, [](const Entry&) { return true; }).members.size(), 1U);
  EXPECT_EQ(recovered.next_lsn, segment.next_lsn());
  EXPECT_EQ(recovered.records, 2U);
}

TEST_F(RecoveryTest, what_is_due_is_ready) {
  SegmentBuilder(1)
      .job(JobSpec("mail", "a").due_at(at(5)))
      .job(JobSpec("mail", "b").due_at(at(6)))
      .save(disk);
  recover_well(at(5));
  EXPECT_EQ(job("mail", "a").state(), JobState::kReady);
  EXPECT_EQ(job("mail", "b").state(), JobState::kDelayed);
  EXPECT_EQ(store.wheel.size(), 1U);
}

TEST_F(RecoveryTest, the_latest_state_counts) {
  SegmentBuilder segment(1);
  segment.job(JobSpec("mail", "a").due_at(at(5)));
  StatePayload state = SegmentBuilder::state_of(2, at(100), JobState::kReserved);
  state.until_ms = to_unix_ms(at(1000));
  state.lease = 99;
  state.attempts = 3;
  state.flags = kCancelRequested;
  segment.state(SegmentBuilder::state_of(2, at(700))).state(state).save(disk);
  recover_well();
  const Entry& entry = job("mail", "a");
  EXPECT_EQ(entry.state(), JobState::kReserved);
  EXPECT_EQ(entry.due(), at(100));
  EXPECT_EQ(entry.until(), at(1000));
  EXPECT_EQ(entry.attempts, 3U);
  EXPECT_TRUE(entry.cancel_requested);
  EXPECT_EQ(store.jobs.find_extra(store.find("mail", "a"))->lease, 99U);
  EXPECT_EQ(store.find_number(2), store.find("mail", "a"));
}

TEST_F(RecoveryTest, the_latest_outcome_counts) {
  SegmentBuilder segment(1);
  segment.job(JobSpec("mail", "a")).outcome(2, "first").outcome(2, "second").save(disk);
  recover_well();
  const Extra* extra = store.jobs.find_extra(store.find("mail", "a"));
  ASSERT_NE(extra, nullptr);
  EXPECT_EQ(extra->outcome.offset, segment.last());
  EXPECT_EQ(extra->state, extra->outcome);
}

TEST_F(RecoveryTest, an_outcome_brings_the_state_it_led_to) {
  SegmentBuilder segment(1);
  segment.job(JobSpec("mail", "a").due_at(at(5)));
  segment.outcome(SegmentBuilder::state_of(2, at(900)), "try later").save(disk);
  recover_well();
  EXPECT_EQ(job("mail", "a").due(), at(900));
}

TEST_F(RecoveryTest, an_outcome_before_the_copy_of_its_job_is_not_lost) {
  // The job's first record was removed with its segment. The copy comes after the outcome and
  // has the later state.
  SegmentBuilder head(2, 10);
  head.outcome(2, "the text");
  head.save(disk);
  SegmentBuilder(3, 20, 1).job(JobSpec("mail", "a").due_at(at(700)), 2).save(disk);
  recover_well();
  EXPECT_EQ(job("mail", "a").due(), at(700));
  const Extra* extra = store.jobs.find_extra(store.find("mail", "a"));
  ASSERT_NE(extra, nullptr);
  EXPECT_EQ(extra->outcome.offset, head.last());
}

TEST_F(RecoveryTest, a_gone_job_is_not_there) {
  SegmentBuilder(1).job(JobSpec("mail", "a")).gone(2, 1).save(disk);
  recover_well();
  EXPECT_FALSE(has("mail", "a"));
  EXPECT_EQ(store.segments.live_bytes(), 0U);
}

TEST_F(RecoveryTest, records_about_jobs_that_are_not_there_are_nothing_special) {
  SegmentBuilder(1).state(SegmentBuilder::state_of(77, kStart)).outcome(78, "x").gone(79, 5).save(disk);
  recover_well();
  EXPECT_EQ(store.jobs.size(), 0U);
}

TEST_F(RecoveryTest, a_later_push_takes_the_place_of_an_earlier_one) {
  // The kGone record of a replaced job comes after the new job and may be torn off.
  SegmentBuilder segment(1);
  segment.job(JobSpec("mail", "a").due_at(at(5))).job(JobSpec("mail", "a").due_at(at(9)));
  segment.save(disk);
  recover_well();
  EXPECT_EQ(store.jobs.size(), 1U);
  EXPECT_EQ(job("mail", "a").due(), at(9));
  EXPECT_EQ(job("mail", "a").location.offset, segment.last());
}

TEST_F(RecoveryTest, settings_are_kept_until_taken_back) {
  SegmentBuilder(1).settings("mail", "one").settings("push", "two").settings("mail", "").save(disk);
  recover_well();
  EXPECT_EQ(store.topics[store.topics.find("push")].settings, "two");
  EXPECT_EQ(store.topics[store.topics.find("mail")].settings, "");
  EXPECT_TRUE(store.segments.find(1)->unsets);
}

TEST_F(RecoveryTest, streams_are_merged_by_record_number) {
  // Head stream: pushed, moved. Survivor stream: a copy that compaction made between the two, and a
  // copy made after both.
  SegmentBuilder head(1, 1);
  head.job(JobSpec("mail", "a").due_at(at(1))).job(JobSpec("mail", "b").due_at(at(1)));
  head.from_lsn(20).state(SegmentBuilder::state_of(2, at(500))).state(SegmentBuilder::state_of(3, at(500)));
  head.save(disk);
  SegmentBuilder kept(2, 10, 3);
  kept.job(JobSpec("mail", "a").due_at(at(1)), 2).from_lsn(30).job(JobSpec("mail", "b").due_at(at(900)), 3);
  kept.save(disk);
  const Recovered recovered = recover_well();
  EXPECT_EQ(store.jobs.size(), 2U);
  EXPECT_EQ(job("mail", "a").due(), at(500));
  EXPECT_EQ(job("mail", "b").due(), at(900));
  EXPECT_EQ(job("mail", "a").location.segment, 2U);
  EXPECT_EQ(recovered.next_lsn, 32U) << "one more for the mark that proves the survivors";
}

TEST_F(RecoveryTest, many_segments_of_many_streams_in_many_windows) {
  Lsn lsn = 1;
  uint64_t expected = 0;
  for (uint32_t number = 1; number <= 12; ++number) {
    SegmentBuilder segment(number, lsn, static_cast<uint16_t>(number % kStreamCount));
    for (int i = 0; i < 100; ++i, ++expected) {
      segment.job(JobSpec("t" + std::to_string(i % 3), std::to_string(expected)).due_at(at(i)));
    }
    lsn = segment.next_lsn();
    segment.save(disk);
  }
  recover_well();
  EXPECT_EQ(store.jobs.size(), expected);
  for (uint64_t i = 0; i < expected; ++i) {
    ASSERT_TRUE(has("t" + std::to_string(i % 100 % 3), std::to_string(i))) << i;
  }
}

TEST_F(RecoveryTest, the_next_epoch_is_above_every_one_before) {
  SegmentBuilder(1, 1).in_epoch(7).save(disk);
  SegmentBuilder(2, 50).in_epoch(4).save(disk);
  const Recovered recovered = recover_well();
  EXPECT_EQ(recovered.epoch, 8U);
  EXPECT_EQ(recovered.next_lsn, 51U);
}

TEST_F(RecoveryTest, a_torn_end_is_cut) {
  SegmentBuilder segment(1);
  segment.job(JobSpec("mail", "a")).mark();
  const uint64_t good = segment.size();
  segment.job(JobSpec("mail", "torn")).flip(segment.last() + 20).zeros(100).save(disk);
  const Recovered recovered = recover_well();
  EXPECT_TRUE(has("mail", "a"));
  EXPECT_FALSE(has("mail", "torn"));
  EXPECT_EQ(recovered.cut_bytes, segment.size() - good);
  EXPECT_EQ(support::file_bytes(disk, segment.name()).size(), good);
}

TEST_F(RecoveryTest, allocated_zeros_are_cut_and_are_not_torn) {
  SegmentBuilder segment(1);
  segment.job(JobSpec("mail", "a"));
  const uint64_t good = segment.size();
  segment.zeros(5000).save(disk);
  EXPECT_EQ(recover_well().cut_bytes, 0U);
  EXPECT_EQ(support::file_bytes(disk, segment.name()).size(), good);
}

TEST_F(RecoveryTest, a_segment_without_a_header_never_began) {
  SegmentBuilder(1).job(JobSpec("mail", "a")).save(disk);
  SegmentBuilder::save_file(disk, segment_name(2), {});
  SegmentBuilder::save_file(disk, segment_name(3), std::vector<std::byte>(4096));
  recover_well();
  EXPECT_TRUE(has("mail", "a"));
  EXPECT_EQ(support::file_names(disk), (std::vector<std::string>{"manifest", segment_name(1)}));
}

/// Every error names the file, and nothing is changed.
class RefusedTest : public RecoveryTest {
 protected:
  std::string refusal() {
    SegmentBuilder::save_file(disk, segment_name(90), {});
    const auto before = contents();
    const Result<Recovered> recovered = recover();
    EXPECT_EQ(contents(), before) << "a refused directory was changed";
    if (recovered.ok()) return "not refused";
    EXPECT_EQ(recovered.error().op, "journal.open");
    code = recovered.error().code;
    return recovered.error().detail;
  }

  std::vector<std::pair<std::string, std::vector<std::byte>>> contents() {
    std::vector<std::pair<std::string, std::vector<std::byte>>> all;
    for (const std::string& name : support::file_names(disk))
      all.emplace_back(name, support::file_bytes(disk, name));
    return all;
  }

  ErrorCode code = ErrorCode::kInternal;
};

TEST_F(RefusedTest, damage_before_what_a_mark_calls_synced) {
  SegmentBuilder segment(1);
  segment.job(JobSpec("mail", "a"));
  const uint64_t bad = segment.last();
  segment.mark().job(JobSpec("mail", "b")).flip(bad + 30, 5).save(disk);
  EXPECT_THAT(refusal(),
              AllOf(HasSubstr("virtual/segment-0000000001"), HasSubstr("offset " + std::to_string(bad)),
                    HasSubstr("`delayq check virtual --repair`")));
  EXPECT_EQ(code, ErrorCode::kCorrupt);
}

TEST_F(RefusedTest, damage_at_the_end_of_a_segment_that_has_a_successor) {
  SegmentBuilder first(1);
  first.job(JobSpec("mail", "a"));
  first.flip(first.last() + 3).save(disk);
  SegmentBuilder(2, 10).save(disk);
  EXPECT_THAT(refusal(), AllOf(HasSubstr(first.name()), HasSubstr("offset " + std::to_string(first.last()))));
  EXPECT_EQ(code, ErrorCode::kCorrupt);
}

TEST_F(RefusedTest, a_damaged_header) {
  SegmentBuilder segment(1);
  std::vector<std::byte> bytes = segment.job(JobSpec("mail", "a")).bytes();
  bytes[20] ^= std::byte{1};
  SegmentBuilder::save_file(disk, segment.name(), bytes);
  EXPECT_THAT(refusal(), AllOf(HasSubstr(segment.name()), HasSubstr("offset 0"), HasSubstr("header")));
  EXPECT_EQ(code, ErrorCode::kCorrupt);
}

TEST_F(RefusedTest, a_segment_under_the_name_of_another) {
  SegmentBuilder::save_file(disk, segment_name(5), SegmentBuilder(1).bytes());
  EXPECT_THAT(refusal(), HasSubstr(segment_name(5)));
}

TEST_F(RefusedTest, a_newer_format) {
  SegmentBuilder(1).in_version(kFormatVersion + 1).job(JobSpec("mail", "a")).save(disk);
  EXPECT_THAT(refusal(),
              AllOf(HasSubstr(segment_name(1)), HasSubstr("format version 2"), HasSubstr("reads version 1")));
  EXPECT_EQ(code, ErrorCode::kUnavailable);
}

TEST_F(RefusedTest, a_whole_record_that_makes_no_sense) {
  SegmentBuilder segment(1);
  segment.add(static_cast<RecordType>(200), "from the future").save(disk);
  EXPECT_THAT(refusal(),
              AllOf(HasSubstr("unknown shape"), HasSubstr("offset " + std::to_string(segment.last()))));
}

TEST_F(RefusedTest, a_job_whose_lengths_do_not_fit) {
  JobPayload fixed{};
  fixed.topic_size = 200;
  SegmentBuilder segment(1);
  segment.add(RecordType::kJob, {reinterpret_cast<const char*>(&fixed), sizeof fixed}).save(disk);
  EXPECT_THAT(refusal(), HasSubstr("unknown shape"));
}

TEST_F(RefusedTest, an_unreadable_file) {
  SegmentBuilder(1).job(JobSpec("mail", "a")).save(disk);
  disk.fail(support::DiskFault::kRead, 1);
  EXPECT_FALSE(recover().ok());
}

}  // namespace
}  // namespace delayq::journal
