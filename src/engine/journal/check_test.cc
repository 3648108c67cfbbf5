#include "engine/journal/check.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/journal_on_disk.h"
#include "tests/support/segment_builder.h"

namespace delayq::journal {
namespace {

using support::at;
using support::JobSpec;
using support::kStart;
using support::SegmentBuilder;
using testing::HasSubstr;

class CheckTest : public testing::Test {
 protected:
  /// Three commits of one job each; tests damage the middle one.
  CheckTest() {
    segment.job(JobSpec("mail", "a").due_at(at(5)));
    segment.mark().job(JobSpec("mail", "b").due_at(at(5)));
    middle = segment.last();
    middle_size = segment.size() - middle;
    segment.mark().job(JobSpec("push", "c").due_at(at(5)));
  }

  CheckReport checked() {
    const Result<CheckReport> report = check(on_disk.disk);
    if (!report.ok()) throw std::runtime_error(to_string(report.error()));
    return *report;
  }
  CheckReport repaired() {
    const Result<CheckReport> report = repair(on_disk.disk);
    if (!report.ok()) throw std::runtime_error(to_string(report.error()));
    return *report;
  }
  std::vector<std::string> ids() {
    auto& driver = on_disk.open();
    std::vector<std::string> all;
    for (const std::string& topic : driver.topic_names()) {
      for (const std::string& id : driver.ids_in(topic, JobState::kDelayed)) all.push_back(id);
    }
    return all;
  }

  support::JournalOnDisk on_disk;
  SegmentBuilder segment{1};
  uint64_t middle = 0;
  uint64_t middle_size = 0;
};

TEST_F(CheckTest, an_empty_directory_is_clean) {
  const CheckReport report = checked();
  EXPECT_TRUE(report.is_clean());
  EXPECT_EQ(report.segments, 0U);
}

TEST_F(CheckTest, tells_what_is_there) {
  segment.state(SegmentBuilder::state_of(2, at(5), JobState::kDead)).save(on_disk.disk);
  const CheckReport report = checked();
  EXPECT_TRUE(report.is_clean());
  EXPECT_EQ(report.segments, 1U);
  EXPECT_EQ(report.bytes, segment.size());
  EXPECT_EQ(report.records, 7U);
  EXPECT_EQ(report.topics, 2U);
  EXPECT_EQ(report.jobs[static_cast<size_t>(JobState::kDelayed)], 2U);
  EXPECT_EQ(report.jobs[static_cast<size_t>(JobState::kDead)], 1U);
  EXPECT_THAT(to_string(report), HasSubstr("no damage"));
}

TEST_F(CheckTest, a_torn_end_and_an_unfinished_segment_are_no_damage) {
  segment.raw("half a record").save(on_disk.disk);
  SegmentBuilder::save_file(on_disk.disk, segment_name(2), {});
  const CheckReport report = checked();
  EXPECT_TRUE(report.is_clean());
  EXPECT_EQ(report.torn_bytes, 13U);
  EXPECT_EQ(report.unfinished_segments, 1U);
}

TEST_F(CheckTest, a_flipped_bit_is_told_with_its_place) {
  segment.flip(middle + 50, 3).save(on_disk.disk);
  const auto before = support::file_bytes(on_disk.disk, segment.name());
  const CheckReport report = checked();
  ASSERT_EQ(report.damage.size(), 1U);
  EXPECT_EQ(report.damage[0].segment, segment.name());
  EXPECT_EQ(report.damage[0].offset, middle);
  EXPECT_EQ(report.damage[0].bytes, middle_size);
  EXPECT_EQ(report.damage[0].records_estimate, 1U);
  EXPECT_THAT(to_string(report), HasSubstr("DAMAGE segment-0000000001 offset " + std::to_string(middle)));
  EXPECT_EQ(support::file_bytes(on_disk.disk, segment.name()), before) << "check must not change anything";
}

TEST_F(CheckTest, what_is_repaired_opens_without_what_was_dropped) {
  segment.flip(middle + 50, 3).save(on_disk.disk);
  EXPECT_FALSE(on_disk.try_open(kStart).ok());
  EXPECT_EQ(repaired().damage.size(), 1U);
  EXPECT_TRUE(checked().is_clean());
  EXPECT_EQ(ids(), (std::vector<std::string>{"a", "c"}));
}

TEST_F(CheckTest, every_flipped_bit_of_what_was_synced_is_found_and_repaired) {
  for (uint64_t bit = kSegmentHeaderSize * 8; bit < (middle + middle_size) * 8; bit += 7) {
    SCOPED_TRACE(bit);
    support::VirtualDisk disk{1};
    SegmentBuilder damaged = segment;
    damaged.flip(bit / 8, bit % 8).save(disk);
    const auto report = repair(disk);
    ASSERT_TRUE(report.ok());
    ASSERT_FALSE(report->is_clean());
    const auto again = check(disk);
    ASSERT_TRUE(again.ok() && again->is_clean());
  }
}

TEST_F(CheckTest, several_places_are_repaired_at_once) {
  segment.flip(kSegmentHeaderSize + 1).flip(middle + 1).save(on_disk.disk);
  SegmentBuilder next(2, 50);
  next.job(JobSpec("mail", "d").due_at(at(5)));
  next.mark().flip(next.last() - 5).save(on_disk.disk);
  SegmentBuilder(3, 60).save(on_disk.disk);
  EXPECT_EQ(checked().damage.size(), 3U);
  repaired();
  EXPECT_TRUE(checked().is_clean());
  EXPECT_EQ(ids(), (std::vector<std::string>{"a", "c"}));
}

TEST_F(CheckTest, damage_at_the_end_of_a_segment_is_cut_off) {
  const uint64_t last = segment.last();
  segment.flip(last + 20).save(on_disk.disk);
  SegmentBuilder(2, 50).save(on_disk.disk);
  ASSERT_EQ(checked().damage.size(), 1U);
  repaired();
  EXPECT_EQ(support::file_bytes(on_disk.disk, segment.name()).size(), last);
  EXPECT_EQ(ids(), (std::vector<std::string>{"a", "b"}));
}

TEST_F(CheckTest, a_segment_without_a_readable_header_is_put_aside) {
  std::vector<std::byte> bytes = segment.bytes();
  bytes[9] ^= std::byte{1};
  SegmentBuilder::save_file(on_disk.disk, segment.name(), bytes);
  SegmentBuilder(2, 50).job(JobSpec("mail", "kept").due_at(at(5))).save(on_disk.disk);
  const CheckReport report = repaired();
  ASSERT_EQ(report.damage.size(), 1U);
  EXPECT_EQ(report.damage[0].offset, 0U);
  EXPECT_EQ(support::file_bytes(on_disk.disk, segment.name() + ".damaged"), bytes)
      << "nothing is thrown away";
  EXPECT_EQ(ids(), std::vector<std::string>{"kept"});
}

TEST_F(CheckTest, a_record_of_unknown_shape_is_damage_that_can_be_repaired) {
  segment.add(static_cast<RecordType>(99), "?").mark().save(on_disk.disk);
  EXPECT_FALSE(on_disk.try_open(kStart).ok());
  ASSERT_EQ(checked().damage.size(), 1U);
  repaired();
  EXPECT_EQ(ids().size(), 3U);
}

TEST_F(CheckTest, another_format_version_is_not_touched) {
  segment.in_version(kFormatVersion + 1).save(on_disk.disk);
  EXPECT_FALSE(check(on_disk.disk).ok());
  EXPECT_FALSE(repair(on_disk.disk).ok());
}

TEST_F(CheckTest, a_directory_in_use_is_refused) {
  on_disk.open();
  EXPECT_EQ(check(on_disk.disk).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(repair(on_disk.disk).error().code, ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace delayq::journal
