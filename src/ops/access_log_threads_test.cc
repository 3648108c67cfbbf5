#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/moment.h"
#include "ops/access_log.h"

namespace delayq {
namespace {

namespace fs = std::filesystem;

class AccessLogTest : public testing::Test {
 protected:
  AccessLogTest() { fs::create_directories(folder_); }
  ~AccessLogTest() override { fs::remove_all(folder_); }

  std::unique_ptr<AccessLog> open() {
    auto log = AccessLog::open({.access = path_, .keep_days = 2});
    EXPECT_TRUE(log.ok());
    return std::move(*log);
  }
  std::string read(const std::string& name) const {
    std::ifstream in(folder_ + "/" + name);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  /// What only the thread brings.
  template <class Condition>
  static bool comes_true(Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{30};
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::yield();
    }
    return true;
  }
  static Served push(std::string_view at, std::string_view target) {
    return {.at = *parse_moment(at), .protocol = "resp", .peer = "p:1", .verb = "PUSH", .target = target};
  }

  std::string folder_ =
      testing::TempDir() + "/delayq_access_" + testing::UnitTest::GetInstance()->current_test_info()->name();
  std::string path_ = folder_ + "/access.log";
};

TEST_F(AccessLogTest, lines_come_by_themselves_and_the_rest_at_the_end) {
  auto log = open();
  log->note(push("2026-11-14T12:00:00Z", "a"));
  ASSERT_TRUE(comes_true([&] { return !read("access.log").empty(); }));
  EXPECT_EQ(read("access.log"), "2026-11-14T12:00:00.000Z resp p:1 - PUSH a 0 - 0 0 0us\n");
  log->note(push("2026-11-14T12:00:01Z", "b"));
  log.reset();
  EXPECT_THAT(read("access.log"), testing::EndsWith("PUSH b 0 - 0 0 0us\n"));
}

TEST_F(AccessLogTest, one_batch_goes_to_the_files_of_its_days) {
  auto log = open();
  log->note(push("2026-11-14T23:59:59.999Z", "a"));
  log->note(push("2026-11-15T00:00:00Z", "b"));
  log->note(push("2026-11-15T00:00:00Z", "c"));
  log.reset();
  EXPECT_THAT(read("access.log.2026-11-14"), testing::HasSubstr("PUSH a "));
  EXPECT_THAT(read("access.log"), testing::MatchesRegex("[^\n]*PUSH b [^\n]*\n[^\n]*PUSH c [^\n]*\n"));
}

TEST_F(AccessLogTest, it_is_opened_again) {
  auto log = open();
  log->note(push("2026-11-14T12:00:00Z", "a"));
  ASSERT_TRUE(comes_true([&] { return !read("access.log").empty(); }));
  fs::rename(path_, path_ + ".moved");
  log->reopen();
  ASSERT_TRUE(comes_true([&] { return fs::exists(path_); }));
  log->note(push("2026-11-14T12:00:01Z", "b"));
  log.reset();
  EXPECT_THAT(read("access.log.moved"), testing::EndsWith("PUSH a 0 - 0 0 0us\n"));
  EXPECT_THAT(read("access.log"), testing::StartsWith("2026-11-14T12:00:01.000Z resp p:1 - PUSH b "));
}

TEST_F(AccessLogTest, many_lines_are_all_there_and_in_order) {
  constexpr int kLines = 20'000;
  auto log = open();
  std::string expected;
  for (int i = 0; i < kLines; ++i) {
    log->note(push("2026-11-14T12:00:00Z", "topic-" + std::to_string(i)));
    expected += "2026-11-14T12:00:00.000Z resp p:1 - PUSH topic-" + std::to_string(i) + " 0 - 0 0 0us\n";
  }
  log.reset();
  EXPECT_TRUE(read("access.log") == expected);
}

TEST_F(AccessLogTest, a_file_that_cannot_be_opened_is_named_with_its_key) {
  const auto log = AccessLog::open({.access = "/proc/no/such/file"});
  ASSERT_FALSE(log.ok());
  EXPECT_THAT(log.error().detail, testing::HasSubstr("log.access: /proc/no/such/file: "));
}

}  // namespace
}  // namespace delayq
