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

std::string contents_of(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

TEST(Log, writes_time_level_and_message_to_a_file) {
  const std::string path = testing::TempDir() + "/delayq_log_test.log";
  std::filesystem::remove(path);
  ASSERT_TRUE(start_log({.level = Config::LogLevel::kWarn, .file = path}));
  spdlog::info("too quiet");
  spdlog::warn("disk is {}", "slow");
  // Not flushed by hand: a warning must be there at once.
  EXPECT_THAT(contents_of(path), testing::MatchesRegex("[0-9-]+T[0-9:]+\\.[0-9]+Z warning disk is slow\n"));
  ASSERT_TRUE(start_log({}));
  std::filesystem::remove(path);
}

TEST(Log, writes_objects_of_json_that_no_message_breaks) {
  const std::string path = testing::TempDir() + "/delayq_log_json_test.log";
  std::filesystem::remove(path);
  ASSERT_TRUE(start_log({.file = path, .format = Config::LogFormat::kJson}));
  spdlog::error("topic \"{}\" is\nbad", "a\\");
  EXPECT_THAT(contents_of(path),
              testing::MatchesRegex("\\{\"time\":\"[0-9-]+T[0-9:.]+Z\",\"level\":\"error\","
                                    "\"message\":\"topic \\\\\"a\\\\\\\\\\\\\" is\\\\nbad\"\\}\n"));
  ASSERT_TRUE(start_log({}));
  std::filesystem::remove(path);
}

TEST(Log, is_opened_again_where_another_program_moved_it) {
  const std::string path = testing::TempDir() + "/delayq_log_reopen_test.log";
  std::filesystem::remove(path);
  ASSERT_TRUE(start_log({.file = path}));
  spdlog::info("before");
  std::filesystem::rename(path, path + ".moved");
  ASSERT_TRUE(reopen_log());
  spdlog::info("after");
  EXPECT_THAT(contents_of(path + ".moved"), testing::EndsWith(" info before\n"));
  EXPECT_THAT(contents_of(path), testing::EndsWith(" info after\n"));
  ASSERT_TRUE(start_log({}));
  EXPECT_TRUE(reopen_log()) << "standard error needs no opening";
  std::filesystem::remove(path);
  std::filesystem::remove(path + ".moved");
}

TEST(Log, says_that_a_file_cannot_be_opened) {
  const Status status = start_log({.level = Config::LogLevel::kInfo, .file = "/proc/no/such/file"});
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().detail, testing::HasSubstr("log.file: "));
}

}  // namespace
}  // namespace delayq
