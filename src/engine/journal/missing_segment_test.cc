// Files that vanish, are exchanged or come from another directory while no server runs: the start
// fails and names the file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/journal/check.h"
#include "engine/journal/segments.h"
#include "tests/support/journal_on_disk.h"
#include "tests/support/segment_builder.h"
#include "tests/support/virtual_shelf.h"

namespace delayq::journal {
namespace {

using support::at;
using support::file_bytes;
using support::file_names;
using support::JobSpec;
using support::JournalOnDisk;
using support::SegmentBuilder;
using support::VirtualDisk;
using testing::HasSubstr;

constexpr int kJobs = 60;

std::vector<std::string> segments_of(Disk& disk) {
  std::vector<std::string> names = file_names(disk);
  std::erase_if(names, [](const std::string& name) { return !parse_segment_name(name); });
  return names;
}

class MissingSegmentTest : public testing::Test {
 protected:
  MissingSegmentTest() {
    on_disk.options.segment_bytes = 4096;
    fill(on_disk, "a");
    on_disk.close();
  }

  static void fill(JournalOnDisk& where, const std::string& prefix) {
    support::EngineDriver& driver = where.open();
    for (int i = 0; i < kJobs; ++i)
      driver.push(
          JobSpec("t", prefix + std::to_string(i)).due_at(at(60'000)).with_body(std::string(200, 'x')));
    where.settle();
  }

  void remove(const std::string& name) {
    ASSERT_TRUE(on_disk.disk.remove(name).ok() && on_disk.disk.sync_directory().ok());
  }
  void rename(const std::string& from, const std::string& to) {
    ASSERT_TRUE(on_disk.disk.rename(from, to).ok() && on_disk.disk.sync_directory().ok());
  }
  void save(const std::string& name, const std::vector<std::byte>& bytes) {
    SegmentBuilder::save_file(on_disk.disk, name, bytes);
  }

  /// The start fails with this text in the message, `check` reports the same, and nothing is changed.
  void expect_noticed(const std::string& name, const std::string& what) {
    const std::vector<std::string> before = file_names(on_disk.disk);
    const Result<bool> opened = on_disk.try_open(at(1));
    ASSERT_FALSE(opened.ok());
    EXPECT_EQ(opened.error().code, ErrorCode::kCorrupt);
    EXPECT_THAT(opened.error().detail, HasSubstr(name));
    EXPECT_THAT(opened.error().detail, HasSubstr(what));
    const Result<CheckReport> report = check(on_disk.disk);
    ASSERT_TRUE(report.ok());
    ASSERT_FALSE(report->is_clean());
    EXPECT_THAT(to_string(*report), HasSubstr(name));
    EXPECT_THAT(to_string(*report), HasSubstr(what));
    EXPECT_EQ(file_names(on_disk.disk), before);
  }
  /// After a repair the directory opens, with this many jobs.
  void expect_repaired(uint64_t least, uint64_t most) {
    ASSERT_TRUE(repair(on_disk.disk).ok());
    const Result<CheckReport> report = check(on_disk.disk);
    ASSERT_TRUE(report.ok());
    EXPECT_TRUE(report->is_clean()) << to_string(*report);
    on_disk.open(at(2));
    EXPECT_GE(on_disk.engine->usage().jobs, least);
    EXPECT_LE(on_disk.engine->usage().jobs, most);
    on_disk.close();
  }

  JournalOnDisk on_disk;
};

TEST_F(MissingSegmentTest, a_good_end_is_clean) {
  const Result<CheckReport> report = check(on_disk.disk);
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->is_clean()) << to_string(*report);
  on_disk.open(at(1));
  EXPECT_EQ(on_disk.engine->usage().jobs, static_cast<uint64_t>(kJobs));
}

TEST_F(MissingSegmentTest, any_one_that_is_missing_stops_the_start_by_name) {
  const std::vector<std::string> segments = segments_of(on_disk.disk);
  ASSERT_GE(segments.size(), 3U);
  for (const std::string& name : segments) {
    const std::vector<std::byte> bytes = file_bytes(on_disk.disk, name);
    remove(name);
    expect_noticed(name, "missing");
    save(name, bytes);
  }
  on_disk.open(at(1));
  EXPECT_EQ(on_disk.engine->usage().jobs, static_cast<uint64_t>(kJobs)) << "all of them are back";
}

TEST_F(MissingSegmentTest, the_newest_one_is_missed_after_a_crash_too) {
  on_disk.open(at(1)).push(JobSpec("t", "late").due_at(at(60'000)));
  on_disk.die(true);
  const std::string newest = segments_of(on_disk.disk).back();
  remove(newest);
  expect_noticed(newest, "missing");
  expect_repaired(kJobs, kJobs);
}

TEST_F(MissingSegmentTest, without_the_missing_one_the_rest_is_there_after_a_repair) {
  remove(segments_of(on_disk.disk).at(1));
  expect_repaired(kJobs / 2, kJobs - 1);
}

TEST_F(MissingSegmentTest, two_that_were_exchanged_are_noticed) {
  const std::vector<std::string> segments = segments_of(on_disk.disk);
  rename(segments[0], "aside");
  rename(segments[1], segments[0]);
  rename("aside", segments[1]);
  expect_noticed(segments[0], "its header says that it is " + segments[1]);
}

TEST_F(MissingSegmentTest, one_that_was_renamed_is_noticed) {
  const std::string last = segments_of(on_disk.disk).back();
  rename(last, "segment-0000000099");
  expect_noticed("segment-0000000099", "its header says that it is " + last);
}

TEST_F(MissingSegmentTest, one_that_is_there_twice_is_noticed) {
  const std::string first = segments_of(on_disk.disk).front();
  save("segment-0000000099", file_bytes(on_disk.disk, first));
  expect_noticed("segment-0000000099", "its header says that it is " + first);
  expect_repaired(kJobs, kJobs);
}

TEST_F(MissingSegmentTest, one_of_another_directory_is_noticed) {
  JournalOnDisk other(2);
  other.options.segment_bytes = 4096;
  fill(other, "b");
  other.close();
  const std::string name = segments_of(other.disk).at(1);
  const std::vector<std::byte> own = file_bytes(on_disk.disk, name);
  remove(name);
  save(name, file_bytes(other.disk, name));
  expect_noticed(name, "another one of the same number");
  remove(name);
  save(name, own);
  const std::string further = segments_of(other.disk).back();
  ASSERT_EQ(further, segments_of(on_disk.disk).back());
  on_disk.options.segment_bytes = 16 << 10;
  other.options.segment_bytes = 4096;
  fill(other, "c");
  other.close();
  const std::string beyond = segments_of(other.disk).back();
  save(beyond, file_bytes(other.disk, beyond));
  expect_noticed(beyond, "another data directory");
  expect_repaired(kJobs, kJobs);
}

TEST_F(MissingSegmentTest, one_that_is_cut_between_two_records_is_noticed) {
  for (const std::string& name : segments_of(on_disk.disk)) {
    const std::vector<std::byte> bytes = file_bytes(on_disk.disk, name);
    const auto header = SegmentHeader::decode(std::span(bytes).first<kSegmentHeaderSize>());
    const auto first = read_record(std::span(bytes).subspan(kSegmentHeaderSize), header->nonce);
    const size_t end = kSegmentHeaderSize + first->size();
    if (end == bytes.size()) continue;
    remove(name);
    save(name, {bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(end)});
    expect_noticed(name, "had been synced up to");
    remove(name);
    save(name, bytes);
  }
}

TEST_F(MissingSegmentTest, a_manifest_that_is_missing_or_damaged_is_noticed) {
  const std::string name(Manifest::kName);
  std::vector<std::byte> bytes = file_bytes(on_disk.disk, name);
  remove(name);
  expect_noticed(name, "missing");
  bytes[20] ^= std::byte{1};
  save(name, bytes);
  expect_noticed(name, "checksum");
  expect_repaired(kJobs, kJobs);
}

TEST_F(MissingSegmentTest, a_directory_that_an_older_program_wrote_gets_a_manifest) {
  VirtualDisk old(3);
  SegmentBuilder first(1);
  first.job(JobSpec("t", "a").due_at(at(60'000))).save(old);
  SegmentBuilder(4, first.next_lsn()).job(JobSpec("t", "b").due_at(at(60'000))).save(old);
  support::SteppedIo io;
  {
    const auto opened = JournalEngine::open(old, io, on_disk.options, at(1));
    ASSERT_TRUE(opened.ok()) << to_string(opened.error());
    EXPECT_EQ((*opened)->usage().jobs, 2U);
  }
  ASSERT_TRUE(old.remove("segment-0000000004").ok());
  const auto opened = JournalEngine::open(old, io, on_disk.options, at(1));
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(opened.error().detail, HasSubstr("segment-0000000004"));
}

TEST_F(MissingSegmentTest, a_power_cut_while_such_a_directory_is_first_opened_does_no_harm) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    VirtualDisk old(seed);
    SegmentBuilder first(1);
    first.job(JobSpec("t", "a").due_at(at(60'000))).save(old);
    SegmentBuilder(2, first.next_lsn()).job(JobSpec("t", "b").due_at(at(60'000))).save(old);
    support::SteppedIo io;
    old.stop_after(seed % 30);
    { const auto ignored = JournalEngine::open(old, io, on_disk.options, at(1)); }
    old.power_cut();
    const auto opened = JournalEngine::open(old, io, on_disk.options, at(1));
    ASSERT_TRUE(opened.ok()) << seed << ": " << to_string(opened.error());
    EXPECT_EQ((*opened)->usage().jobs, 2U) << seed;
  }
}

}  // namespace
}  // namespace delayq::journal
