#include <filesystem>
#include <fstream>
#include <iterator>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/process.h"

namespace delayq {
namespace {

using testing::HasSubstr;

std::string pid_in(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

class PidFileTest : public testing::Test {
 protected:
  PidFileTest() { std::filesystem::remove(path_); }
  ~PidFileTest() override { std::filesystem::remove(path_); }

  std::string path_ = testing::TempDir() + "/delayq_" +
                      testing::UnitTest::GetInstance()->current_test_info()->name() + ".pid";
};

TEST_F(PidFileTest, has_our_number_and_goes_with_us) {
  {
    const auto file = PidFile::take(path_);
    ASSERT_TRUE(file.ok()) << file.error().detail;
    EXPECT_EQ(pid_in(path_), std::to_string(::getpid()) + "\n");
  }
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(PidFileTest, a_second_one_is_refused_and_told_by_whom) {
  const auto file = PidFile::take(path_);
  ASSERT_TRUE(file.ok());
  const auto second = PidFile::take(path_);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(second.error().detail, HasSubstr("is held by process " + std::to_string(::getpid()) + ":"));
  EXPECT_EQ(pid_in(path_), std::to_string(::getpid()) + "\n") << "the file was touched";
}

TEST_F(PidFileTest, what_a_killed_server_left_behind_is_taken_over) {
  std::ofstream(path_) << "123456789012345\nand more\n";
  const auto file = PidFile::take(path_);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(pid_in(path_), std::to_string(::getpid()) + "\n");
}

TEST_F(PidFileTest, a_place_that_cannot_be_written_is_named) {
  const auto file = PidFile::take("/proc/no/such.pid");
  ASSERT_FALSE(file.ok());
  EXPECT_THAT(file.error().detail, HasSubstr("server.pid_file: /proc/no/such.pid: "));
}

TEST_F(PidFileTest, a_link_is_not_followed) {
  const std::string target = path_ + ".target";
  std::ofstream(target) << "precious";
  std::filesystem::create_symlink(target, path_);
  EXPECT_FALSE(PidFile::take(path_).ok());
  EXPECT_EQ(pid_in(target), "precious");
  std::filesystem::remove(target);
}

}  // namespace
}  // namespace delayq
