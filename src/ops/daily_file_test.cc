#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/moment.h"
#include "ops/log.h"

namespace delayq {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

Moment at(std::string_view text) { return *parse_moment(text); }

class DailyFileTest : public testing::Test {
 protected:
  DailyFileTest() { fs::create_directories(folder_); }
  ~DailyFileTest() override { fs::remove_all(folder_); }

  std::unique_ptr<DailyFile> open(uint32_t keep_days = 0) {
    auto file = DailyFile::open({.path = path_, .keep_days = keep_days});
    EXPECT_TRUE(file.ok()) << file.error().detail;
    return std::move(*file);
  }
  std::string read(const std::string& name) const {
    std::ifstream in(folder_ + "/" + name);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  std::set<std::string> names() const {
    std::set<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_)) found.insert(entry.path().filename().string());
    return found;
  }

  std::string folder_ =
      testing::TempDir() + "/delayq_daily_" + testing::UnitTest::GetInstance()->current_test_info()->name();
  std::string path_ = folder_ + "/x.log";
};

TEST_F(DailyFileTest, a_new_day_starts_a_new_file) {
  const auto file = open();
  file->write(at("2026-11-14T00:00:00Z"), "first\n");
  file->write(at("2026-11-14T23:59:59.999Z"), "last\n");
  EXPECT_THAT(names(), ElementsAre("x.log"));
  file->write(at("2026-11-15T00:00:00Z"), "next\n");
  EXPECT_THAT(names(), ElementsAre("x.log", "x.log.2026-11-14"));
  EXPECT_EQ(read("x.log.2026-11-14"), "first\nlast\n");
  EXPECT_EQ(read("x.log"), "next\n");
  EXPECT_EQ(file->lost_bytes(), 0U);
}

TEST_F(DailyFileTest, only_so_many_days_are_kept) {
  for (const char* other : {"/x.log.old", "/y.log.2020-01-01", "/x.log.2020-1-1"})
    std::ofstream(folder_ + other) << "not ours";
  const auto file = open(2);
  for (const char* day : {"10", "11", "12", "13", "14"}) {
    file->write(at(std::string("2026-11-") + day + "T12:00:00Z"), std::string(day) + "\n");
  }
  EXPECT_THAT(names(), ElementsAre("x.log", "x.log.2020-1-1", "x.log.2026-11-12", "x.log.2026-11-13",
                                   "x.log.old", "y.log.2020-01-01"));
  EXPECT_EQ(read("x.log.2026-11-12"), "12\n");
}

TEST_F(DailyFileTest, the_file_of_an_earlier_run_is_of_the_day_when_it_was_written) {
  open()->write(at("2026-11-10T12:00:00Z"), "old\n");
  const auto written = at("2026-11-10T12:00:00Z").time_since_epoch();
  fs::last_write_time(path_, fs::file_time_type::clock::from_sys(std::chrono::sys_time<Millis>{written}));
  const auto file = open();
  file->write(at("2026-11-10T13:00:00Z"), "same day\n");
  EXPECT_THAT(names(), ElementsAre("x.log"));
  file->write(at("2026-11-14T12:00:00Z"), "new\n");
  EXPECT_EQ(read("x.log.2026-11-10"), "old\nsame day\n");
  EXPECT_EQ(read("x.log"), "new\n");
}

TEST_F(DailyFileTest, a_clock_that_goes_back_overwrites_nothing) {
  const auto file = open();
  std::ofstream(folder_ + "/x.log.2026-11-14") << "from before\n";
  file->write(at("2026-11-14T12:00:00Z"), "a\n");
  file->write(at("2026-11-13T12:00:00Z"), "b\n");
  file->write(at("2026-11-15T12:00:00Z"), "c\n");
  EXPECT_EQ(read("x.log.2026-11-14"), "from before\n");
  EXPECT_EQ(read("x.log.2026-11-14.1"), "a\nb\n");
  EXPECT_EQ(read("x.log"), "c\n");
}

TEST_F(DailyFileTest, it_is_opened_again_where_another_program_moved_it) {
  const auto file = open();
  file->write(at("2026-11-14T12:00:00Z"), "a\n");
  fs::rename(path_, path_ + ".moved");
  file->write(at("2026-11-14T12:00:01Z"), "b\n");
  ASSERT_TRUE(file->reopen());
  file->write(at("2026-11-14T12:00:02Z"), "c\n");
  EXPECT_EQ(read("x.log.moved"), "a\nb\n");
  EXPECT_EQ(read("x.log"), "c\n");
}

TEST_F(DailyFileTest, a_folder_that_is_gone_is_an_error_and_the_old_file_is_used_on) {
  const auto file = open();
  fs::rename(folder_, folder_ + "-moved");
  const Status status = file->reopen();
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().detail, testing::HasSubstr("x.log: "));
  file->write(at("2026-11-14T12:00:00Z"), "a\n");
  file->write(at("2026-11-15T12:00:00Z"), "b\n");
  fs::rename(folder_ + "-moved", folder_);
  EXPECT_EQ(read("x.log"), "a\nb\n");
  EXPECT_EQ(file->lost_bytes(), 0U);
}

TEST_F(DailyFileTest, makes_the_folders_on_the_way) {
  path_ = folder_ + "/logs/deep/x.log";
  open()->write(at("2026-11-14T12:00:00Z"), "a\n");
  EXPECT_EQ(read("logs/deep/x.log"), "a\n");
  std::ofstream(folder_ + "/file") << "in the way";
  EXPECT_FALSE(DailyFile::open({.path = folder_ + "/file/x.log"}).ok());
}

TEST_F(DailyFileTest, what_cannot_be_written_is_counted) {
  auto file = DailyFile::open({.path = "/dev/full"});
  ASSERT_TRUE(file.ok());
  (*file)->write(at("2026-11-14T12:00:00Z"), "12345\n");
  EXPECT_EQ((*file)->lost_bytes(), 6U);
  (*file)->write(at("2026-11-15T12:00:00Z"), "12345\n");
  EXPECT_TRUE(fs::exists("/dev/full")) << "a device was renamed";
}

}  // namespace
}  // namespace delayq
