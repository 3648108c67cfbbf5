#include "engine/journal/log.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/journal/segments.h"
#include "tests/support/segment_builder.h"
#include "tests/support/stepped_io.h"
#include "tests/support/virtual_disk.h"

namespace delayq::journal {
namespace {

using support::kStart;

class LogTest : public testing::Test {
 protected:
  LogTest() { log.start(1, 1, kStart); }

  Location append(std::string_view text, uint16_t stream = kHeadStream) {
    return log.append(stream, RecordType::kSettings, text.size(), [&](std::span<std::byte> payload, Lsn) {
      std::memcpy(payload.data(), text.data(), text.size());
    });
  }

  /// Writes everything. Returns whether this succeeded.
  bool commit() {
    Status status;
    log.commit_head(true, [&](const Status& done) { status = done; });
    io.drain();
    log.commit_survivors([&](const Status& done) { status = done; });
    io.drain();
    return status.ok();
  }

  std::string read(const Location& location) {
    std::string text;
    reader.read({location}, [&](RecordReader::Found found) {
      text = found.status.ok() && found.records[0] ? std::string(as_text(found.records[0]->payload))
                                                   : "unreadable";
    });
    io.drain();
    return text;
  }

  support::VirtualDisk disk{1};
  support::SteppedIo io;
  Segments segments;
  Manifest manifest;
  Log log{disk, io, segments, manifest, {4096}, 1};
  RecordReader reader{io, log, segments};
};

TEST_F(LogTest, a_record_can_be_read_before_during_and_after_its_commit) {
  const Location location = append("text");
  EXPECT_EQ(read(location), "text");
  EXPECT_FALSE(log.find_buffered(location).empty());
  log.commit_head(true, [](const Status&) {});
  EXPECT_FALSE(log.find_buffered(location).empty()) << "under way";
  EXPECT_TRUE(log.head_is_committing());
  io.drain();
  EXPECT_TRUE(log.find_buffered(location).empty());
  EXPECT_EQ(read(location), "text");
}

TEST_F(LogTest, a_commit_rotates_as_often_as_it_must) {
  std::vector<Location> locations;
  for (int i = 0; i < 100; ++i) locations.push_back(append(std::to_string(i) + std::string(300, '.')));
  EXPECT_TRUE(commit());
  EXPECT_GE(locations.back().segment, 7U);
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(read(locations[static_cast<size_t>(i)]).find(std::to_string(i)), 0U);
  auto files = find_segments(disk);
  ASSERT_TRUE(files.ok());
  for (const SegmentFile& file : *files) {
    const auto bytes = read_whole(file);
    SegmentScanner scanner(*bytes, file.header, file.has_successor);
    while (scanner.next()) {
    }
    EXPECT_EQ(scanner.end(), SegmentScanner::End::kClean);
    EXPECT_LE(file.size, 4096U);
    EXPECT_EQ(file.header.previous, file.number - 1);
    EXPECT_EQ(segments.find(file.number)->is_open, !file.has_successor);
  }
}

TEST_F(LogTest, a_record_larger_than_a_segment_gets_one_of_its_own) {
  const Location before = append("before");
  const std::string large(20'000, 'x');
  const Location location = append(large);
  const Location after = append("after");
  EXPECT_TRUE(commit());
  EXPECT_NE(location.segment, before.segment);
  EXPECT_NE(location.segment, after.segment);
  EXPECT_EQ(read(location), large);
  EXPECT_EQ(read(after), "after");
}

TEST_F(LogTest, a_group_is_one_record_of_one_segment_whose_parts_can_be_read) {
  for (const size_t size : {size_t{100}, size_t{1'500}, size_t{9'000}}) {
    const std::string text(size, 'g');
    std::vector<Location> parts;
    for (int i = 0; i < 5; ++i) {
      append("before");
      log.begin_group(3 * (kRecordHeaderSize + size) + 200);
      for (int part = 0; part < 3; ++part) parts.push_back(append(text));
      log.end_group();
      EXPECT_EQ(parts.back().segment, parts[parts.size() - 3].segment);
      EXPECT_EQ(read(parts.back()), text);
      append("after");
    }
    EXPECT_TRUE(commit());
    for (const Location& part : parts) EXPECT_EQ(read(part), text);
  }
  size_t groups = 0;
  const auto files = find_segments(disk);
  for (const SegmentFile& file : *files) {
    const auto bytes = read_whole(file);
    SegmentScanner scanner(*bytes, file.header, file.has_successor);
    while (const auto record = scanner.next()) {
      std::array<GroupedRecord, kMostInGroup> room;
      if (record->type != RecordType::kGroup) continue;
      ++groups;
      EXPECT_EQ(read_group(*record, file.header.nonce, room).size(), 3U);
    }
    EXPECT_EQ(scanner.end(), SegmentScanner::End::kClean);
    EXPECT_EQ(segments.find(file.number)->size, scanner.offset());
  }
  EXPECT_EQ(groups, 15U);
}

TEST_F(LogTest, durable_is_what_was_synced) {
  append("a");
  const Lsn end = log.head_end_lsn();
  EXPECT_LT(log.durable_lsn(), end);
  log.commit_head(false, [](const Status&) {});
  io.drain();
  EXPECT_GE(log.written_lsn(), end);
  EXPECT_LT(log.durable_lsn(), end);
  EXPECT_TRUE(log.head_needs_sync());
  EXPECT_TRUE(log.commit_head(true, [](const Status&) {}));
  io.drain();
  EXPECT_GE(log.durable_lsn(), end);
  EXPECT_FALSE(log.head_needs_sync());
  EXPECT_FALSE(log.commit_head(true, [](const Status&) {})) << "nothing to do";
}

TEST_F(LogTest, streams_have_segments_of_their_own) {
  const Location head = append("head");
  const Location kept = append("kept", 3);
  EXPECT_NE(head.segment, kept.segment);
  EXPECT_TRUE(log.has_survivors());
  EXPECT_TRUE(commit());
  EXPECT_FALSE(log.has_survivors());
  EXPECT_EQ(segments.find(kept.segment)->header.stream, 3);
  EXPECT_EQ(read(kept), "kept");
  log.retire(*segments.find(kept.segment));
  EXPECT_TRUE(commit());
  EXPECT_FALSE(segments.find(kept.segment)->is_open);
  EXPECT_NE(append("next", 3).segment, kept.segment);
}

TEST_F(LogTest, a_failed_commit_is_told_and_nothing_is_durable) {
  append("a");
  const Lsn before = log.durable_lsn();
  disk.fail(support::DiskFault::kSync, 0);
  EXPECT_FALSE(commit());
  EXPECT_EQ(log.durable_lsn(), before);
}

// ---- reading back

TEST_F(LogTest, records_that_are_not_in_memory_come_from_the_read_lane) {
  const Location a = append("a");
  const Location b = append("b");
  EXPECT_TRUE(commit());
  disk.set_cache_misses(256);
  bool answered = false;
  reader.read({b, Location{}, a}, [&](RecordReader::Found found) {
    answered = true;
    ASSERT_EQ(found.records.size(), 3U);
    EXPECT_EQ(as_text(found.records[0]->payload), "b");
    EXPECT_FALSE(found.records[1]);
    EXPECT_EQ(as_text(found.records[2]->payload), "a");
  });
  EXPECT_FALSE(answered);
  EXPECT_EQ(io.waiting(Lane::kRead), 1U) << "neighbours are read together";
  io.drain();
  EXPECT_TRUE(answered);
}

TEST_F(LogTest, a_damaged_record_is_none_and_its_neighbours_are_whole) {
  const Location a = append("a");
  const Location b = append("b");
  EXPECT_TRUE(commit());
  ASSERT_TRUE((*disk.open(segment_name(a.segment)))
                  ->write(a.offset + kRecordHeaderSize, std::array{std::byte{'!'}})
                  .ok());
  EXPECT_EQ(read(a), "unreadable");
  EXPECT_EQ(read(b), "b");
}

TEST_F(LogTest, a_failed_read_is_an_error_not_damage) {
  const Location a = append("a");
  EXPECT_TRUE(commit());
  disk.set_cache_misses(256);
  disk.fail(support::DiskFault::kRead, 0);
  bool failed = false;
  reader.read({a}, [&](const RecordReader::Found& found) { failed = !found.status.ok(); });
  io.drain();
  EXPECT_TRUE(failed);
  EXPECT_EQ(read(a), "a");
}

TEST_F(LogTest, figures_of_commits_are_those_of_the_head_stream) {
  disk.set_trace([this](const std::string& line) {
    if (line.starts_with("disk: sync segment")) io.pass(std::chrono::microseconds{100});
  });
  append("one");
  append("two");
  append("three");
  ASSERT_TRUE(commit());
  EXPECT_EQ(log.commit_micros().count(), 1U);
  EXPECT_EQ(log.commit_micros().sum(), 100U);
  EXPECT_EQ(log.commit_records().sum(), 3U);
  const uint64_t written = log.written_bytes();
  EXPECT_GT(written, kSegmentHeaderSize + 3 * kRecordHeaderSize);
  append("a survivor", kHeadStream + 1);
  ASSERT_TRUE(commit());
  EXPECT_EQ(log.commit_micros().count(), 1U) << "cleaning is nobody's answer";
  EXPECT_GT(log.written_bytes(), written);
}

}  // namespace
}  // namespace delayq::journal
