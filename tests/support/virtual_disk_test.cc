#include "tests/support/virtual_disk.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

namespace delayq::support {
namespace {

using journal::File;

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string read_all(VirtualDisk& disk, std::string_view name) {
  auto file = disk.open(name);
  if (!file.ok()) return file.error().detail;
  std::string text(*(*file)->size(), '\0');
  const Result<size_t> size = (*file)->read(0, std::as_writable_bytes(std::span(text)));
  return size.ok() && *size == text.size() ? text : "(short)";
}

std::vector<std::string> names(VirtualDisk& disk) {
  std::vector<std::string> all = *disk.list();
  std::sort(all.begin(), all.end());
  return all;
}

/// A file that is completely durable, including its name.
std::shared_ptr<File> make_durable(VirtualDisk& disk, std::string_view name, std::string_view text) {
  std::shared_ptr<File> file = *disk.create(name);
  EXPECT_TRUE(file->write(0, bytes_of(text)).ok());
  EXPECT_TRUE(file->sync().ok());
  EXPECT_TRUE(disk.sync_directory().ok());
  return file;
}

TEST(VirtualDisk, KeepsFilesByName) {
  VirtualDisk disk(1);
  make_durable(disk, "a", "one");
  make_durable(disk, "b", "two");
  EXPECT_EQ(names(disk), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(read_all(disk, "a"), "one");
  EXPECT_EQ(disk.create("a").error().code, ErrorCode::kConflict);
  EXPECT_EQ(disk.open("c").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(disk.remove("c").error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(disk.rename("a", "b").ok());
  EXPECT_EQ(names(disk), (std::vector<std::string>{"b"}));
  EXPECT_EQ(read_all(disk, "b"), "one");
}

TEST(VirtualDisk, ARemovedFileStaysReadableWhileOpen) {
  VirtualDisk disk(1);
  const std::shared_ptr<File> file = make_durable(disk, "a", "one");
  EXPECT_TRUE(disk.remove("a").ok());
  std::array<std::byte, 8> room{};
  EXPECT_EQ(*file->read(0, room), 3U);
  EXPECT_EQ(disk.used_bytes(), 3U);
}

TEST(VirtualDisk, ReadCachedIsAllOrNothing) {
  VirtualDisk disk(1);
  const std::shared_ptr<File> file = make_durable(disk, "a", "one");
  std::array<std::byte, 4> room{};
  EXPECT_TRUE(file->read_cached(0, std::span(room).first(3)));
  EXPECT_FALSE(file->read_cached(0, room));
  disk.set_cache_misses(256);
  EXPECT_FALSE(file->read_cached(0, std::span(room).first(3)));
}

TEST(VirtualDisk, NamesAreVolatileUntilTheDirectoryIsSynced) {
  std::set<std::vector<std::string>> seen;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    VirtualDisk disk(seed);
    make_durable(disk, "old", "1");
    EXPECT_TRUE((*disk.create("new"))->sync().ok());
    EXPECT_TRUE(disk.remove("old").ok());
    disk.power_cut();
    seen.insert(names(disk));
    if (disk.open("old").ok()) {
      EXPECT_EQ(read_all(disk, "old"), "1");
    }
  }
  EXPECT_EQ(seen, (std::set<std::vector<std::string>>{{"old"}, {"new", "old"}, {"new"}, {}}));
}

TEST(VirtualDisk, ARenameHappensAsAWhole) {
  std::set<std::vector<std::string>> seen;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    VirtualDisk disk(seed);
    make_durable(disk, "from", "1");
    EXPECT_TRUE(disk.rename("from", "to").ok());
    disk.power_cut();
    seen.insert(names(disk));
  }
  EXPECT_EQ(seen, (std::set<std::vector<std::string>>{{"from"}, {"to"}}));
}

TEST(VirtualDisk, AKillKeepsWhatWasWrittenAndEndsHandlesAndLock) {
  VirtualDisk disk(1);
  const auto guard = disk.lock();
  ASSERT_TRUE(guard.ok());
  EXPECT_EQ(disk.lock().error().code, ErrorCode::kUnavailable);
  const std::shared_ptr<File> file = *disk.create("a");
  EXPECT_TRUE(file->write(0, bytes_of("one")).ok());
  disk.kill();
  EXPECT_EQ(read_all(disk, "a"), "one");
  std::array<std::byte, 3> room{};
  EXPECT_FALSE(file->write(0, bytes_of("two")).ok());
  EXPECT_FALSE(file->sync().ok());
  EXPECT_FALSE(file->read(0, room).ok());
  EXPECT_FALSE(file->read_cached(0, room));
  EXPECT_FALSE(file->size().ok());
  EXPECT_FALSE(file->allocate(10).ok());
  EXPECT_FALSE(file->truncate(0).ok());
  const auto next = disk.lock();
  EXPECT_TRUE(next.ok());
}

TEST(VirtualDisk, TheLockIsFreeWhenItsGuardIsGone) {
  VirtualDisk disk(1);
  { const auto guard = disk.lock(); }
  EXPECT_TRUE(disk.lock().ok());
}

TEST(VirtualDisk, StopsInTheMiddleOfAChange) {
  std::set<std::string> seen;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    VirtualDisk disk(seed);
    const std::shared_ptr<File> file = make_durable(disk, "a", "----");
    disk.stop_after(1);
    EXPECT_TRUE(file->write(0, bytes_of("ab")).ok());
    EXPECT_FALSE(disk.stopped());
    EXPECT_FALSE(file->write(2, bytes_of(std::string(3 * kSectorBytes, 'c'))).ok());
    EXPECT_TRUE(disk.stopped());
    EXPECT_FALSE(disk.list().ok());
    EXPECT_FALSE(disk.open("a").ok());
    disk.kill();
    EXPECT_FALSE(disk.stopped());
    // The size shows where the write was cut short: only between sectors, or not at all.
    seen.insert(std::to_string(read_all(disk, "a").size()));
    EXPECT_EQ(read_all(disk, "a").substr(0, 2), "ab");
  }
  EXPECT_EQ(seen, (std::set<std::string>{"4", "512", "1024", "1536", "1538"}));
}

TEST(VirtualDisk, PlantedFaultsFireOnceAndInTurn) {
  VirtualDisk disk(1);
  const std::shared_ptr<File> file = make_durable(disk, "a", "one");
  disk.fail(DiskFault::kWrite, 1);
  EXPECT_TRUE(file->write(0, bytes_of("x")).ok());
  EXPECT_EQ(file->write(0, bytes_of("x")).error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(file->write(0, bytes_of("x")).ok());
  disk.fail(DiskFault::kSync, 0);
  EXPECT_FALSE(file->sync().ok());
  disk.fail(DiskFault::kRead, 0);
  std::array<std::byte, 1> room{};
  EXPECT_FALSE(file->read(0, room).ok());
  disk.fail(DiskFault::kAllocate, 0);
  EXPECT_FALSE(file->allocate(100).ok());
  disk.fail(DiskFault::kCreate, 0);
  EXPECT_FALSE(disk.create("b").ok());
  disk.fail(DiskFault::kRemove, 0);
  EXPECT_FALSE(disk.remove("a").ok());
  disk.fail(DiskFault::kSyncDirectory, 0);
  EXPECT_FALSE(disk.sync_directory().ok());
  EXPECT_EQ(disk.faults_fired(), 7U);
  disk.fail(DiskFault::kWrite, 0);
  disk.forget_faults();
  EXPECT_TRUE(file->write(0, bytes_of("x")).ok());
}

TEST(VirtualDisk, FillsUp) {
  VirtualDisk disk(1);
  disk.set_capacity(10);
  const std::shared_ptr<File> file = *disk.create("a");
  EXPECT_TRUE(file->allocate(8).ok());
  EXPECT_EQ(*disk.free_bytes(), 2U);
  EXPECT_TRUE(file->write(0, bytes_of("12345678")).ok());
  EXPECT_EQ(file->write(8, bytes_of("901")).error().code, ErrorCode::kDiskFull);
  EXPECT_EQ(file->allocate(11).error().code, ErrorCode::kDiskFull);
  EXPECT_TRUE(file->write(8, bytes_of("90")).ok());
  EXPECT_EQ(*disk.free_bytes(), 0U);
  EXPECT_TRUE(file->truncate(1).ok());
  EXPECT_EQ(*disk.free_bytes(), 9U);
}

TEST(VirtualDisk, ALyingDriveLosesWhatItConfirmed) {
  bool lost = false;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    VirtualDisk disk(seed);
    const std::shared_ptr<File> file = make_durable(disk, "a", "one");
    disk.set_syncs_lie(true);
    EXPECT_TRUE(file->write(0, bytes_of("two")).ok());
    EXPECT_TRUE(file->sync().ok());
    disk.power_cut();
    lost |= read_all(disk, "a") == "one";
  }
  EXPECT_TRUE(lost);
}

TEST(VirtualDisk, FlipsOneBitOfWhatWasSynced) {
  VirtualDisk disk(1);
  EXPECT_FALSE(disk.flip_bit().has_value());
  make_durable(disk, "a", "one");
  const auto damage = disk.flip_bit();
  ASSERT_TRUE(damage.has_value());
  EXPECT_EQ(damage->file, "a");
  std::string expected = "one";
  expected[damage->offset] = static_cast<char>(expected[damage->offset] ^ (1 << damage->bit));
  EXPECT_EQ(read_all(disk, "a"), expected);
  disk.undo(*damage);
  EXPECT_EQ(read_all(disk, "a"), "one");
}

TEST(VirtualDisk, ACloneIsADiskOfItsOwn) {
  VirtualDisk disk(1);
  const std::shared_ptr<File> file = make_durable(disk, "a", "one");
  const std::unique_ptr<VirtualDisk> copy = disk.clone(2);
  EXPECT_TRUE(file->write(0, bytes_of("two")).ok());
  EXPECT_TRUE(copy->remove("a").ok());
  copy->power_cut();
  EXPECT_EQ(read_all(disk, "a"), "two");
  if (copy->open("a").ok()) {
    EXPECT_EQ(read_all(*copy, "a"), "one");
  }
}

TEST(VirtualDisk, NothingAnswersAfterAStop) {
  VirtualDisk disk(1);
  const std::shared_ptr<File> file = make_durable(disk, "a", "one");
  disk.stop();
  EXPECT_FALSE(file->write(0, bytes_of("two")).ok());
  EXPECT_FALSE(disk.remove("a").ok());
  disk.kill();
  EXPECT_EQ(read_all(disk, "a"), "one");
}

TEST(VirtualDisk, OneSeedOneBehaviour) {
  const auto run = [](uint64_t seed) {
    VirtualDisk disk(seed);
    std::string log;
    for (int i = 0; i < 20; ++i) {
      const auto file = *disk.create(std::string(1, static_cast<char>('a' + i)));
      for (uint64_t at = 0; at < 4096; at += 100) EXPECT_TRUE(file->write(at, bytes_of("0123456789")).ok());
      if (i % 3 == 0) {
        EXPECT_TRUE(disk.sync_directory().ok());
      }
      if (i % 5 != 4) continue;
      disk.power_cut();
      const std::vector<std::string> left = *disk.list();
      for (const std::string& name : left) log.append(name).append("=").append(read_all(disk, name));
    }
    return log;
  };
  EXPECT_EQ(run(7), run(7));
  EXPECT_NE(run(7), run(8));
}

}  // namespace
}  // namespace delayq::support
