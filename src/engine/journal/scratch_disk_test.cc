#include "engine/journal/scratch_disk.h"

#include <filesystem>
#include <map>
#include <string>

#include <gmock/gmock.h>

#include "engine/journal/journal_engine.h"
#include "engine/journal/posix_disk.h"
#include "tests/support/engine_driver.h"
#include "tests/support/stepped_io.h"
#include "tests/support/temporary_directory.h"

namespace delayq::journal {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

std::span<const std::byte> scratch_bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string text_of(File& file, uint64_t offset = 0, size_t most = 100) {
  std::string text(most, '?');
  const auto got = file.read(offset, std::as_writable_bytes(std::span(text)));
  text.resize(got.ok() ? *got : 0);
  return text;
}

class ScratchDiskTest : public testing::Test {
 protected:
  ScratchDiskTest() {
    const auto file = real->create("old");
    EXPECT_TRUE((*file)->write(0, scratch_bytes("hello world")).ok());
    before = real_files();
  }
  /// The files of the real disk.
  std::map<std::string, std::string> real_files() {
    std::map<std::string, std::string> files;
    const auto names = real->list();
    for (const std::string& name : *names) files[name] = text_of(**static_cast<Disk&>(*real).open(name));
    return files;
  }

  support::TemporaryDirectory folder;
  std::unique_ptr<PosixDisk> real = std::move(*PosixDisk::open(folder / "data"));
  ScratchDisk scratch{std::move(*PosixDisk::open_to_read(folder / "data"))};
  std::map<std::string, std::string> before;
};

TEST_F(ScratchDiskTest, what_is_written_is_read_here_and_not_there) {
  const auto file = scratch.open("old");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(text_of(**file), "hello world");
  ASSERT_TRUE((*file)->write(6, scratch_bytes("there and")).ok());
  ASSERT_TRUE((*file)->write(12, scratch_bytes("or")).ok());
  ASSERT_TRUE((*file)->sync().ok());
  EXPECT_EQ(text_of(**file), "hello there ord");
  EXPECT_EQ(text_of(**file, 4, 4), "o th");
  EXPECT_EQ(text_of(**scratch.open("old")), "hello there ord") << "opened once more";
  EXPECT_EQ(real_files(), before);
}

TEST_F(ScratchDiskTest, what_is_cut_off_is_not_there_again_when_the_file_grows) {
  const auto file = scratch.open("old");
  ASSERT_TRUE((*file)->write(9, scratch_bytes("xyz")).ok());
  ASSERT_TRUE((*file)->truncate(10).ok());
  EXPECT_EQ(text_of(**file), "hello worx");
  ASSERT_TRUE((*file)->truncate(5).ok());
  ASSERT_TRUE((*file)->allocate(7).ok());
  EXPECT_EQ(text_of(**file), std::string("hello\0\0", 7));
  EXPECT_EQ(*(*file)->size(), 7U);
  EXPECT_EQ(text_of(**file, 7), "");
  EXPECT_EQ(real_files(), before);
}

TEST_F(ScratchDiskTest, names_are_made_and_removed_only_here) {
  EXPECT_FALSE(scratch.create("old").ok());
  ASSERT_TRUE(scratch.create("new").ok());
  EXPECT_FALSE(scratch.create("new").ok());
  EXPECT_THAT(*scratch.list(), UnorderedElementsAre("old", "new"));
  ASSERT_TRUE(scratch.rename("old", "older").ok());
  ASSERT_TRUE(scratch.remove("new").ok());
  EXPECT_FALSE(scratch.remove("new").ok());
  EXPECT_THAT(*scratch.list(), ElementsAre("older"));
  EXPECT_FALSE(scratch.open("old").ok());
  EXPECT_EQ(text_of(**scratch.open("older")), "hello world");
  ASSERT_TRUE(scratch.create("old").ok()) << "the name is free";
  EXPECT_EQ(text_of(**scratch.open("old")), "");
  EXPECT_EQ(real_files(), before);
}

TEST_F(ScratchDiskTest, it_keeps_out_those_who_would_write_and_leaves_no_lock_where_there_was_none) {
  EXPECT_TRUE(scratch.lock().ok());
  EXPECT_EQ(real_files(), before) << "no file for the lock";
  {
    const auto writer = real->lock();
    ASSERT_TRUE(writer.ok());
    const auto refused = scratch.lock();
    ASSERT_FALSE(refused.ok());
    EXPECT_THAT(refused.error().detail, HasSubstr("in use by another delayq (process "));
  }
  const auto held = scratch.lock();
  ASSERT_TRUE(held.ok());
  EXPECT_FALSE(real->lock().ok());
}

TEST_F(ScratchDiskTest, a_directory_that_is_not_there_is_not_made) {
  EXPECT_FALSE(PosixDisk::open_to_read(folder / "none").ok());
  EXPECT_FALSE(std::filesystem::exists(folder / "none"));
}

TEST_F(ScratchDiskTest, an_engine_finds_its_jobs_and_changes_nothing) {
  const Moment now = from_unix_ms(1'700'000'000'000);
  support::SteppedIo io;
  {
    auto engine = JournalEngine::open(*real, io, {}, now);
    ASSERT_TRUE(engine.ok());
    support::EngineDriver driver(**engine, [&io] { return io.step(Lane::kWrite); });
    driver.go_to(now);
    driver.push(support::JobSpec("t", "1").due_at(now + Millis{1}));
    const support::JobSpec job = support::JobSpec("t", "s@2026-11-16T09:00:00Z").or_keep();
    TurnRequest turn{.name = "s", .revision = 1, .definition = "rule"};
    turn.job = job.view();
    driver.turn(turn);
  }
  const auto stored = real_files();
  auto looking = JournalEngine::open(scratch, io, {}, now + Millis{5});
  ASSERT_TRUE(looking.ok()) << looking.error().detail;
  EXPECT_EQ((*looking)->usage().jobs, 2U);
  EXPECT_EQ((*looking)->usage().schedules, 1U);
  looking->reset();
  EXPECT_EQ(real_files(), stored);
}

}  // namespace
}  // namespace delayq::journal
