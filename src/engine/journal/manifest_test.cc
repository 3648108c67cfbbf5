#include <gtest/gtest.h>

#include "engine/journal/segments.h"
#include "tests/support/segment_builder.h"
#include "tests/support/virtual_disk.h"

namespace delayq::journal {
namespace {

using support::VirtualDisk;
using Kind = SegmentFile::Kind;

Manifest example() {
  Manifest manifest;
  manifest.directory = 0x1122334455667788;
  manifest.epoch = 7;
  manifest.highest = 12;
  manifest.segments = {{3, {0xabc, 4711}}, {12, {0xdef, kSegmentHeaderSize}}};
  manifest.pending = {10, 11};
  manifest.removed = {4, 0x123};
  return manifest;
}

SegmentHeader header_of(uint32_t number, uint32_t nonce) {
  SegmentHeader header;
  header.number = number;
  header.nonce = nonce;
  return header;
}

TEST(Manifest, is_read_as_written) {
  VirtualDisk disk(1);
  EXPECT_FALSE(Manifest::read(disk)->has_value()) << "there is none";
  ASSERT_TRUE(example().write(disk).ok());
  EXPECT_EQ(**Manifest::read(disk), example());
  ASSERT_TRUE(Manifest{}.write(disk).ok());
  EXPECT_EQ(**Manifest::read(disk), Manifest{}) << "a shorter one takes its place";
}

TEST(Manifest, every_wrong_bit_is_noticed) {
  const std::vector<std::byte> good = example().encode();
  ASSERT_TRUE(Manifest::decode(good));
  for (size_t byte = 0; byte < good.size(); ++byte) {
    std::vector<std::byte> bad = good;
    bad[byte] ^= std::byte{0x10};
    EXPECT_FALSE(Manifest::decode(bad)) << byte;
  }
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(Manifest::decode(std::span(good).first(size))) << size;
}

TEST(Manifest, after_a_power_cut_it_is_the_old_one_or_the_new_one) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    VirtualDisk disk(seed);
    const Manifest old = example();
    ASSERT_TRUE(old.write(disk).ok());
    Manifest changed = old;
    disk.stop_after(seed % 9);
    const Status status = changed.name(disk, header_of(13, 9));
    disk.power_cut();
    const auto found = Manifest::read(disk);
    ASSERT_TRUE(found.ok() && found->has_value()) << seed;
    EXPECT_TRUE(**found == changed || (!status.ok() && **found == old)) << seed;
  }
}

TEST(Manifest, numbers_that_were_passed_over_are_pending) {
  VirtualDisk disk(1);
  Manifest manifest;
  ASSERT_TRUE(manifest.name(disk, header_of(1, 1)).ok());
  ASSERT_TRUE(manifest.name(disk, header_of(4, 4)).ok());
  EXPECT_EQ(manifest.pending, (std::set<uint32_t>{2, 3}));
  ASSERT_TRUE(manifest.name(disk, header_of(2, 2)).ok());
  EXPECT_EQ(manifest.pending, (std::set<uint32_t>{3}));
  EXPECT_EQ(manifest.highest, 4U);
}

TEST(Manifest, a_segment_is_as_long_as_its_successor_says) {
  VirtualDisk disk(1);
  Manifest manifest;
  ASSERT_TRUE(manifest.name(disk, header_of(1, 1)).ok());
  SegmentHeader next = header_of(2, 2);
  next.previous = 1;
  next.previous_size = 5000;
  ASSERT_TRUE(manifest.name(disk, next).ok());
  EXPECT_EQ(manifest.segments.at(1).least_size, 5000U);
  EXPECT_EQ(manifest.segments.at(2).least_size, kSegmentHeaderSize);
}

TEST(Manifest, a_segment_can_be_taken_off_when_the_disk_is_full) {
  VirtualDisk disk(1);
  Manifest manifest = example();
  ASSERT_TRUE(manifest.name(disk, header_of(13, 9)).ok());
  disk.set_capacity(disk.used_bytes());
  ASSERT_TRUE(manifest.take_off(disk, 3).ok());
  EXPECT_EQ((*Manifest::read(disk))->removed, (Manifest::Removed{3, 0xabc}));
}

// ---- comparing the files

class ChainTest : public testing::Test {
 protected:
  ChainTest() {
    manifest.directory = 77;
    manifest.epoch = 5;
    manifest.highest = 4;
    manifest.segments = {{1, {11, 64}}, {3, {33, 64}}, {4, {44, 64}}};
    manifest.pending = {2};
    for (const auto& [number, known] : manifest.segments) add(number, known.nonce);
  }

  SegmentFile& add(uint32_t number, uint32_t nonce) {
    SegmentFile& file = files.emplace_back();
    file.name = segment_name(number);
    file.number = number;
    file.header = header_of(number, nonce);
    file.header.directory = 77;
    file.header.epoch = 5;
    return file;
  }
  /// What is wrong, as "file: problem"; empty if nothing is.
  std::string problem() {
    const std::vector<ChainProblem> problems = compare(manifest, files);
    return problems.empty() ? "" : problems.front().file + ": " + problems.front().what;
  }

  Manifest manifest;
  std::vector<SegmentFile> files;
};

TEST_F(ChainTest, what_is_named_is_there) { EXPECT_EQ(problem(), ""); }

TEST_F(ChainTest, any_that_is_missing_is_named) {
  const std::vector<SegmentFile> all = files;
  for (size_t i = 0; i < all.size(); ++i) {
    files = all;
    files.erase(files.begin() + static_cast<ptrdiff_t>(i));
    EXPECT_EQ(problem(), all[i].name + ": it is missing");
  }
}

TEST_F(ChainTest, another_one_of_the_same_number_is_noticed) {
  files[1].header.nonce = 99;
  EXPECT_NE(problem().find("segment-0000000003: it is not the segment"), std::string::npos);
  EXPECT_EQ(files[1].kind, Kind::kStranger);
}

TEST_F(ChainTest, one_that_has_lost_its_header_is_noticed) {
  files[2].kind = Kind::kUnfinished;
  EXPECT_EQ(problem(), "segment-0000000004: its header is gone");
}

TEST_F(ChainTest, one_that_is_just_begun_counts) {
  add(5, 55);
  add(2, 22).header.stream = 3;
  EXPECT_EQ(problem(), "");
  add(6, 66);
  EXPECT_NE(problem(), "") << "there can be only one of the log";
}

TEST_F(ChainTest, one_of_an_earlier_opening_that_is_not_named_does_not_belong_there) {
  add(5, 55).header.epoch = 4;
  EXPECT_NE(problem().find("segment-0000000005: it is not one of the segments"), std::string::npos);
}

TEST_F(ChainTest, one_of_another_directory_is_noticed) {
  add(5, 55).header.directory = 78;
  EXPECT_EQ(problem(), "segment-0000000005: it was written in another data directory");
}

TEST_F(ChainTest, one_whose_removal_had_begun_does_not_count) {
  manifest.removed = {2, 22};
  manifest.pending.clear();
  add(2, 22);
  EXPECT_EQ(problem(), "");
  EXPECT_EQ(files.back().kind, Kind::kLeftover);
  files.back().kind = Kind::kGood;
  files.back().header.nonce = 23;
  EXPECT_NE(problem(), "") << "it is another one";
}

TEST_F(ChainTest, a_manifest_that_is_missing_is_noticed) {
  const auto problems = compare(std::nullopt, files);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0].file, "manifest");
  for (SegmentFile& file : files) file.header.directory = 0;
  EXPECT_TRUE(compare(std::nullopt, files).empty()) << "from before there were manifests";
}

TEST_F(ChainTest, what_an_older_program_did_since_counts) {
  files.erase(files.begin());
  add(5, 55).header.directory = 0;
  files.back().header.epoch = 6;
  EXPECT_EQ(problem(), "");
  files.back().header.epoch = 4;
  EXPECT_NE(problem(), "") << "it is older than the manifest";
}

}  // namespace
}  // namespace delayq::journal
