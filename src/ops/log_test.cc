#include "ops/log.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

namespace delayq {
namespace {

TEST(Log, writes_time_level_and_message_to_a_file) {
  const std::string path = testing::TempDir() + "/delayq_log_test.log";
  std::filesystem::remove(path);
  ASSERT_TRUE(start_log({.level = Config::LogLevel::kWarn, .file = path}));
  spdlog::info("too quiet");
  spdlog::warn("disk is {}", "slow");
  // Not flushed by hand: a warning must be there at once.
  std::ifstream in(path);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  EXPECT_THAT(text, testing::MatchesRegex("[0-9-]+T[0-9:]+\\.[0-9]+Z warning disk is slow\n"));
  ASSERT_TRUE(start_log({}));
  std::filesystem::remove(path);
}

TEST(Log, says_that_a_file_cannot_be_opened) {
  const Status status = start_log({.level = Config::LogLevel::kInfo, .file = "/proc/no/such/file"});
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().detail, testing::HasSubstr("log.file: "));
}

}  // namespace
}  // namespace delayq
