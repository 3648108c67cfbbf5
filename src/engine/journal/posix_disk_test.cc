#include "engine/journal/posix_disk.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <string>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temporary_directory.h"

namespace delayq::journal {
namespace {

/// Gets the directories and files that this thread syncs, as the kernel names them.
thread_local std::vector<std::string>* synced = nullptr;

}  // namespace
}  // namespace delayq::journal

/// In place of the C library's in this program.
extern "C" int fsync(int descriptor) {
  if (delayq::journal::synced != nullptr) {
    const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
    std::error_code error;
    delayq::journal::synced->push_back(std::filesystem::read_symlink(link, error).string());
  }
  return static_cast<int>(::syscall(SYS_fsync, descriptor));
}

namespace delayq::journal {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;
using testing::UnorderedElementsAre;

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

class PosixDiskTest : public testing::Test {
 protected:
  support::TemporaryDirectory folder;
  std::unique_ptr<PosixDisk> disk = std::move(*PosixDisk::open(folder / "a" / "b"));
};

TEST_F(PosixDiskTest, makes_its_directory) {
  EXPECT_TRUE(std::filesystem::is_directory(folder / "a" / "b"));
  EXPECT_EQ(disk->name(), folder / "a" / "b");
}

TEST_F(PosixDiskTest, the_names_of_new_directories_are_durable_in_those_above) {
  const std::string above = std::filesystem::canonical(folder / ".").string();
  const auto synced_by_opening = [&] {
    std::vector<std::string> names;
    synced = &names;
    EXPECT_TRUE(PosixDisk::open(folder / "x" / "y" / "z").ok());
    synced = nullptr;
    return names;
  };
  EXPECT_THAT(synced_by_opening(), IsSupersetOf({above, above + "/x", above + "/x/y"}));
  const std::vector<std::string> again = synced_by_opening();
  EXPECT_THAT(again, Contains(above + "/x/y")) << "who made it may have been killed before";
  EXPECT_THAT(again, Not(Contains(above)));
}

TEST_F(PosixDiskTest, a_directory_that_cannot_be_is_an_error_that_names_it) {
  ASSERT_TRUE(disk->create("file").ok());
  const auto opened = PosixDisk::open(folder / "a" / "b" / "file" / "below");
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(opened.error().detail, HasSubstr("below"));
}

TEST_F(PosixDiskTest, a_file_is_read_as_written) {
  const auto file = disk->create("x");
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->write(3, bytes_of("hello")).ok());
  ASSERT_TRUE((*file)->sync().ok());
  EXPECT_EQ(*(*file)->size(), 8U);
  std::array<char, 16> into{};
  EXPECT_EQ(*(*file)->read(0, std::as_writable_bytes(std::span(into))), 8U) << "fewer only at the end";
  EXPECT_EQ(std::string(into.data(), 8), std::string("\0\0\0hello", 8));
  EXPECT_EQ(*(*file)->read(100, std::as_writable_bytes(std::span(into))), 0U);
}

TEST_F(PosixDiskTest, allocated_room_reads_as_zeros_and_can_be_cut) {
  const auto file = disk->create("x");
  ASSERT_TRUE((*file)->write(0, bytes_of("abc")).ok());
  ASSERT_TRUE((*file)->allocate(10'000).ok());
  std::array<std::byte, 4> into{};
  EXPECT_EQ(*(*file)->read(2, into), 4U);
  EXPECT_EQ(into[0], std::byte{'c'});
  EXPECT_EQ(into[3], std::byte{0});
  ASSERT_TRUE((*file)->truncate(2).ok());
  EXPECT_EQ(*(*file)->size(), 2U);
}

TEST_F(PosixDiskTest, what_is_written_ahead_is_only_zeros_and_stays_inside_the_allocated_room) {
  const auto file = *disk->create("x");
  constexpr uint64_t kRoom = 1'000'000;
  ASSERT_TRUE(file->allocate(kRoom).ok());
  ASSERT_TRUE(file->write(0, bytes_of("abc")).ok());
  ASSERT_TRUE(file->write(3, bytes_of("def")).ok());
  std::vector<std::byte> all(kRoom);
  ASSERT_EQ(*file->read(0, all), kRoom);
  EXPECT_EQ(std::memcmp(all.data(), "abcdef", 6), 0);
  EXPECT_EQ(std::count(all.begin() + 6, all.end(), std::byte{0}), kRoom - 6);

  ASSERT_TRUE(file->write(kRoom - 2, bytes_of("yz")).ok());
  EXPECT_EQ(*file->size(), kRoom);
  ASSERT_TRUE(file->write(3, bytes_of("DEF")).ok());
  ASSERT_TRUE(file->write(kRoom, bytes_of("more")).ok()) << "a file may outgrow its room";
  EXPECT_EQ(*file->size(), kRoom + 4);
  all.resize(kRoom + 4);
  ASSERT_EQ(*file->read(0, all), all.size());
  EXPECT_EQ(std::memcmp(all.data(), "abcDEF", 6), 0);
  EXPECT_EQ(std::memcmp(all.data() + kRoom - 2, "yzmore", 6), 0);
}

TEST_F(PosixDiskTest, read_cached_brings_all_or_nothing) {
  const auto file = disk->create("x");
  ASSERT_TRUE((*file)->write(0, bytes_of("abc")).ok());
  std::array<std::byte, 3> all{};
  const bool is_cached = (*file)->read_cached(0, all);  // unknown on some file systems
  EXPECT_EQ(all[2], is_cached ? std::byte{'c'} : std::byte{0});
  std::array<std::byte, 4> beyond{};
  EXPECT_FALSE((*file)->read_cached(0, beyond));
}

TEST_F(PosixDiskTest, names_come_and_go) {
  ASSERT_TRUE(disk->create("x").ok());
  ASSERT_TRUE(disk->create("y").ok());
  EXPECT_FALSE(disk->create("x").ok()) << "it exists";
  EXPECT_THAT(*disk->list(), UnorderedElementsAre("x", "y"));
  ASSERT_TRUE(disk->rename("x", "z").ok());
  ASSERT_TRUE(disk->remove("y").ok());
  EXPECT_THAT(*disk->list(), UnorderedElementsAre("z"));
  EXPECT_FALSE(disk->remove("y").ok());
  EXPECT_FALSE(disk->open(std::string_view("y")).ok());
  EXPECT_TRUE(disk->sync_directory().ok());
}

TEST_F(PosixDiskTest, a_removed_file_stays_readable_while_open) {
  const auto file = disk->create("x");
  ASSERT_TRUE((*file)->write(0, bytes_of("abc")).ok());
  ASSERT_TRUE(disk->remove("x").ok());
  std::array<std::byte, 3> into{};
  EXPECT_EQ(*(*file)->read(0, into), 3U);
}

TEST_F(PosixDiskTest, knows_how_much_room_is_left) { EXPECT_GT(*disk->free_bytes(), 0U); }

TEST_F(PosixDiskTest, a_second_lock_is_refused_until_the_first_is_given_back) {
  auto lock = disk->lock();
  ASSERT_TRUE(lock.ok());
  EXPECT_FALSE(disk->lock().ok());
  lock->reset();
  EXPECT_TRUE(disk->lock().ok());
}

TEST_F(PosixDiskTest, a_lock_that_cannot_be_had_for_another_reason_says_so) {
  // Sanitizers need descriptors of their own when a type is first used.
  ASSERT_TRUE(disk->lock().ok());
  // One more descriptor is available: the lock file can be opened, the directory cannot.
  const int next = ::dup(0);
  ASSERT_GE(next, 0);
  ::close(next);
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &old), 0);
  const rlimit tight{static_cast<rlim_t>(next) + 1, old.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
  const auto lock = disk->lock();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &old), 0);
  ASSERT_FALSE(lock.ok());
  EXPECT_THAT(lock.error().detail, HasSubstr("Too many open files"));
  EXPECT_TRUE(disk->lock().ok()) << "nothing is left of the attempt";
}

TEST_F(PosixDiskTest, a_lock_file_that_someone_removed_does_not_let_a_second_one_in) {
  auto lock = disk->lock();
  ASSERT_TRUE(lock.ok());
  ASSERT_TRUE(disk->remove("lock").ok());
  EXPECT_FALSE(disk->lock().ok());
  EXPECT_FALSE((*PosixDisk::open_to_read(disk->name()))->lock().ok());
  lock->reset();
  EXPECT_TRUE(disk->lock().ok());
}

TEST_F(PosixDiskTest, another_process_is_refused_with_a_message_that_names_the_holder) {
  auto lock = disk->lock();
  ASSERT_TRUE(lock.ok());
  const pid_t child = ::fork();
  if (child == 0) {
    const auto other = PosixDisk::open(disk->name());
    const auto second = (*other)->lock();
    const bool is_refused =
        !second.ok() && second.error().code == ErrorCode::kUnavailable &&
        second.error().detail.find("process " + std::to_string(::getppid())) != std::string::npos;
    ::_exit(is_refused ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST_F(PosixDiskTest, the_lock_goes_with_its_process) {
  const pid_t child = ::fork();
  if (child == 0) {
    const auto other = PosixDisk::open(disk->name());
    const auto lock = (*other)->lock();
    ::_exit(lock.ok() ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_TRUE(disk->lock().ok());
}

}  // namespace
}  // namespace delayq::journal
