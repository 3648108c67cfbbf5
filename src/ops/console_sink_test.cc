#include <algorithm>
#include <array>
#include <csignal>
#include <fcntl.h>
#include <string>
#include <unistd.h>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include "ops/log.h"

namespace delayq {
namespace {

/// Standard error is a pipe of 16 KiB while this lives.
class ConsoleSinkTest : public testing::Test {
 protected:
  ConsoleSinkTest() : before_(::dup(STDERR_FILENO)) {
    EXPECT_EQ(::pipe2(pipe_.data(), O_CLOEXEC), 0);
    EXPECT_EQ(::fcntl(pipe_[1], F_SETPIPE_SZ, 16'384), 16'384);
    ::dup2(pipe_[1], STDERR_FILENO);
    EXPECT_TRUE(start_log({}));
  }
  ~ConsoleSinkTest() override {
    ::dup2(before_, STDERR_FILENO);
    ::close(before_);
    ::close(pipe_[1]);
    if (pipe_[0] >= 0) ::close(pipe_[0]);
    EXPECT_TRUE(start_log({}));
  }

  std::string read_all() {
    std::array<char, 16'384> part{};
    const ssize_t size = ::read(pipe_[0], part.data(), part.size());
    return {part.data(), static_cast<size_t>(std::max<ssize_t>(size, 0))};
  }
  void close_reader() { ::close(std::exchange(pipe_[0], -1)); }

 private:
  int before_;
  std::array<int, 2> pipe_{};
};

TEST_F(ConsoleSinkTest, ALogThatNobodyReadsStopsNobodyAndSaysLaterWhatIsMissing) {
  const std::string line(1'000, 'x');
  for (int i = 0; i < 100; ++i) spdlog::warn("{}", line);  // Would never return.
  const std::string first = read_all();
  EXPECT_THAT(first, testing::HasSubstr(line));
  const auto read = static_cast<int>(std::count(first.begin(), first.end(), '\n'));
  ASSERT_LT(read, 17);

  spdlog::info("read again");
  EXPECT_THAT(read_all(),
              testing::MatchesRegex("[^ ]+ warning log: lines dropped because standard error was not read: " +
                                    std::to_string(100 - read) + "\n[^ ]+ info read again\n"));
  spdlog::info("and no more of it");
  EXPECT_THAT(read_all(), testing::MatchesRegex("[^ ]+ info and no more of it\n"));
}

TEST_F(ConsoleSinkTest, AReaderThatIsGoneIsNoReasonToWait) {
  ASSERT_NE(::signal(SIGPIPE, SIG_IGN), SIG_ERR);  // as the server does
  close_reader();
  for (int i = 0; i < 100; ++i) spdlog::warn("{}", std::string(1'000, 'x'));
}

}  // namespace
}  // namespace delayq
