#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include "ops/access_log.h"
#include "ops/log.h"

namespace delayq {
namespace {

TEST(RefusalLog, tells_who_and_what_and_not_more_than_a_few_a_second) {
  const std::string path = testing::TempDir() + "/delayq_refusal_log_test.log";
  std::filesystem::remove(path);
  ASSERT_TRUE(start_log({.file = path}));
  RefusalLog log;
  Served served{.at = from_unix_ms(1'700'000'000'000),
                .protocol = "http",
                .peer = "10.0.0.1:5",
                .verb = "GET",
                .target = "/v1/topics",
                .status = 401,
                .code = "unauthorized"};
  for (int i = 0; i < 1'000; ++i) log.note(served);
  served.at += std::chrono::seconds{1};
  log.note(served);
  ASSERT_TRUE(start_log({}));
  std::ifstream in(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  ASSERT_EQ(lines.size(), RefusalLog::kLinesPerSecond + 2);
  EXPECT_THAT(lines[0],
              testing::EndsWith(" warning turned away: http 10.0.0.1:5 - GET /v1/topics: unauthorized"));
  EXPECT_THAT(lines[RefusalLog::kLinesPerSecond], testing::EndsWith(" warning turned away: 990 more"));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace delayq
