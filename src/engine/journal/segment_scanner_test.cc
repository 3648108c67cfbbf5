#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/journal/segments.h"
#include "tests/support/segment_builder.h"

namespace delayq::journal {
namespace {

using support::JobSpec;
using support::SegmentBuilder;
using End = SegmentScanner::End;

/// The result of a complete scan.
struct Walk {
  Walk(const SegmentBuilder& segment, bool has_successor) : bytes(segment.bytes()) {
    SegmentScanner scanner(bytes, segment.header(), has_successor);
    while (const auto record = scanner.next()) {
      types.push_back(record->type);
      offsets.push_back(scanner.record_offset());
    }
    end = scanner.end();
    offset = scanner.offset();
    skipped = end == End::kDamaged ? scanner.skip_damage() : 0;
    while (scanner.next()) ++after_damage;
    last_end = scanner.end();
  }

  std::vector<std::byte> bytes;
  std::vector<RecordType> types;
  std::vector<uint64_t> offsets;
  End end = End::kNone;
  uint64_t offset = 0;
  uint64_t skipped = 0;
  int after_damage = 0;
  End last_end = End::kNone;
};

SegmentBuilder two_commits() {
  SegmentBuilder segment(1);
  segment.job(JobSpec("mail", "a")).mark().job(JobSpec("mail", "b"));
  return segment;
}

TEST(SegmentScanner, walks_all_records) {
  const SegmentBuilder segment = two_commits();
  const Walk walk(segment, false);
  EXPECT_EQ(walk.types,
            (std::vector{RecordType::kMark, RecordType::kJob, RecordType::kMark, RecordType::kJob}));
  EXPECT_EQ(walk.offsets.front(), kSegmentHeaderSize);
  EXPECT_EQ(walk.offsets.back(), segment.last());
  EXPECT_EQ(walk.end, End::kClean);
  EXPECT_EQ(walk.offset, segment.size());
}

TEST(SegmentScanner, zeros_behind_the_last_record_are_a_clean_end) {
  SegmentBuilder segment = two_commits();
  const uint64_t end = segment.size();
  segment.zeros(1000);
  EXPECT_EQ(Walk(segment, false).end, End::kClean);
  EXPECT_EQ(Walk(segment, false).offset, end);
}

TEST(SegmentScanner, a_segment_with_a_successor_was_synced_to_its_end) {
  SegmentBuilder segment = two_commits();
  EXPECT_EQ(Walk(segment, true).end, End::kClean);
  segment.zeros(1);
  EXPECT_EQ(Walk(segment, true).end, End::kDamaged);
}

TEST(SegmentScanner, a_bad_record_behind_what_was_synced_is_torn) {
  SegmentBuilder segment = two_commits();
  const uint64_t bad = segment.last();
  segment.flip(bad + 40);
  const Walk walk(segment, false);
  EXPECT_EQ(walk.end, End::kTorn);
  EXPECT_EQ(walk.offset, bad);
}

TEST(SegmentScanner, a_bad_record_before_what_was_synced_is_damage) {
  for (const uint64_t bad :
       {kSegmentHeaderSize, size_t{kSegmentHeaderSize + kRecordHeaderSize + sizeof(MarkPayload)}}) {
    SegmentBuilder segment = two_commits();
    segment.flip(bad + 10);
    const Walk walk(segment, false);
    EXPECT_EQ(walk.end, End::kDamaged);
    EXPECT_EQ(walk.offset, bad);
  }
}

TEST(SegmentScanner, a_commit_that_was_only_written_may_be_torn_although_another_followed) {
  // Without a sync between two commits, the mark of the second does not cover the first.
  SegmentBuilder segment(1);
  const uint64_t synced_to = segment.size();
  segment.job(JobSpec("mail", "a"));
  segment.flip(segment.last() + 40).mark(synced_to).job(JobSpec("mail", "b"));
  const Walk walk(segment, false);
  EXPECT_EQ(walk.end, End::kTorn);
  EXPECT_EQ(walk.offset, synced_to);
}

TEST(SegmentScanner, a_damaged_mark_is_damage_when_a_later_one_speaks_for_it) {
  SegmentBuilder segment(1);
  segment.job(JobSpec("mail", "a")).mark();
  const uint64_t bad = segment.last();
  segment.job(JobSpec("mail", "b")).mark().flip(bad + 5);
  EXPECT_EQ(Walk(segment, false).end, End::kDamaged);
  EXPECT_EQ(Walk(segment, false).offset, bad);
}

/// The bytes of a mark that was written for another offset.
std::string foreign_mark(const SegmentBuilder& of, uint64_t offset, uint64_t durable) {
  const MarkPayload mark{offset, durable};
  std::string record(kRecordHeaderSize + sizeof mark, '\0');
  std::memcpy(record.data() + kRecordHeaderSize, &mark, sizeof mark);
  seal_record(std::as_writable_bytes(std::span(record)), of.header().nonce, RecordType::kMark, 1000);
  return record;
}

TEST(SegmentScanner, a_body_that_looks_like_a_mark_is_not_one) {
  // The checksum seed is that of the segment, but the mark is not at the offset that it contains.
  SegmentBuilder segment = two_commits();
  const uint64_t bad = segment.last();
  segment.flip(bad + 40);
  segment.job(JobSpec("mail", "c").with_body("x" + foreign_mark(segment, 77, 1u << 30)));
  EXPECT_EQ(Walk(segment, false).end, End::kTorn);
  // At the right offset the same bytes count.
  SegmentBuilder other = two_commits();
  other.flip(other.last() + 40);
  const uint64_t place = other.size() + 3;
  other.raw("xyz" + foreign_mark(other, place, place));
  EXPECT_EQ(Walk(other, false).end, End::kDamaged);
}

TEST(SegmentScanner, a_whole_record_with_an_old_number_is_a_leftover) {
  SegmentBuilder segment = two_commits();
  const uint64_t end = segment.size();
  segment.from_lsn(2).job(JobSpec("mail", "old"));
  const Walk walk(segment, false);
  EXPECT_EQ(walk.end, End::kTorn);
  EXPECT_EQ(walk.offset, end);
}

TEST(SegmentScanner, skips_damage_to_the_next_good_record) {
  SegmentBuilder segment = two_commits();
  const uint64_t bad = kSegmentHeaderSize + kRecordHeaderSize + sizeof(MarkPayload);
  segment.flip(bad + 20);
  const Walk walk(segment, false);
  ASSERT_EQ(walk.end, End::kDamaged);
  EXPECT_EQ(walk.skipped, kRecordHeaderSize + sizeof(JobPayload) + 5);
  EXPECT_EQ(walk.after_damage, 2);
  EXPECT_EQ(walk.last_end, End::kClean);
}

TEST(SegmentScanner, skips_to_the_end_when_nothing_good_follows) {
  SegmentBuilder segment = two_commits();
  const uint64_t bad = segment.last();
  segment.flip(bad + 20).raw("no record, and then some bytes more");
  const Walk walk(segment, true);
  ASSERT_EQ(walk.end, End::kDamaged);
  EXPECT_EQ(walk.skipped, segment.size() - bad);
  EXPECT_EQ(walk.after_damage, 0);
  EXPECT_EQ(walk.last_end, End::kClean);
}

TEST(SegmentScanner, a_header_alone_is_an_empty_segment) {
  const SegmentBuilder segment(1);
  std::vector<std::byte> bytes = segment.bytes();
  bytes.resize(kSegmentHeaderSize);
  SegmentScanner scanner(bytes, segment.header(), false);
  EXPECT_FALSE(scanner.next());
  EXPECT_EQ(scanner.end(), End::kClean);
}

}  // namespace
}  // namespace delayq::journal
