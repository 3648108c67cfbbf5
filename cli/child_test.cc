#include "cli/child.h"

#include <csignal>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace delayq::cli {
namespace {

using testing::HasSubstr;

class ChildTest : public testing::Test {
 protected:
  ChildTest() { std::signal(SIGPIPE, SIG_IGN); }

  Result<Child> start(const std::string& script, std::string_view input = {}) {
    return Child::start({.words = {"sh", "-c", script},
                         .environment = {"GREETING=hello"},
                         .input = input,
                         .on_error_output = [this](std::string_view text) { errors_ += text; }});
  }
  /// Fails when it has not ended in time.
  Child::End end_of(const std::string& script, std::string_view input = {}) {
    Result<Child> child = start(script, input);
    EXPECT_TRUE(child);
    EXPECT_TRUE(child->run_until(deadline(), -1));
    return child->end();
  }
  static Child::Clock::time_point deadline() { return Child::Clock::now() + std::chrono::seconds{60}; }

  std::string errors_;
};

TEST_F(ChildTest, has_its_input_and_environment) {
  const std::string input(1'000'000, 'x');
  EXPECT_TRUE(end_of("test $(wc -c) = 1000000 && test \"$GREETING\" = hello", input).is_success());
  EXPECT_TRUE(end_of("test $(wc -c) = 0").is_success());
}

TEST_F(ChildTest, what_it_is_given_goes_before_what_we_have) {
  setenv("GREETING", "good morning", 1);
  EXPECT_TRUE(end_of("test \"$GREETING\" = hello && test \"$(env | grep -c ^GREETING=)\" = 1").is_success());
  unsetenv("GREETING");
}

TEST_F(ChildTest, need_not_read_its_input) {
  const std::string input(1'000'000, 'x');
  EXPECT_TRUE(end_of("exec <&-; exit 0", input).is_success());
}

TEST_F(ChildTest, tells_why_it_failed) {
  EXPECT_EQ(end_of("exit 3").reason(), "exit code 3");
  EXPECT_EQ(end_of("echo first >&2; echo the bank is closed >&2; echo >&2; exit 1").reason(),
            "the bank is closed");
  EXPECT_EQ(errors_, "first\nthe bank is closed\n\n");
  EXPECT_EQ(end_of("printf 'no line end' >&2; exit 1").reason(), "no line end");
  const Child::End killed = end_of("kill -9 $$");
  EXPECT_EQ(killed.signal, SIGKILL);
  EXPECT_THAT(killed.reason(), HasSubstr("killed by signal 9"));
}

TEST_F(ChildTest, does_not_wait_for_what_it_left_behind) {
  EXPECT_TRUE(end_of("sleep 600 & echo $! >&2").is_success());
  kill(std::stoi(errors_), SIGKILL);
}

TEST_F(ChildTest, is_left_alone_at_the_deadline_or_when_woken) {
  Result<Child> child = start("read line", "");
  ASSERT_TRUE(child);
  Result<Child> sleeper = start("sleep 600");
  ASSERT_TRUE(sleeper);
  EXPECT_FALSE(sleeper->run_until(Child::Clock::now(), -1));
  int wake[2];
  ASSERT_EQ(pipe(wake), 0);
  ASSERT_EQ(write(wake[1], "x", 1), 1);
  EXPECT_FALSE(sleeper->run_until(deadline(), wake[0]));
  sleeper->signal(SIGTERM);
  EXPECT_TRUE(sleeper->run_until(deadline(), -1));
  EXPECT_EQ(sleeper->end().signal, SIGTERM);
  close(wake[0]);
  close(wake[1]);
}

TEST_F(ChildTest, is_told_when_there_is_no_such_program) {
  const Result<Child> child =
      Child::start({.words = {"/nowhere/program"}, .environment = {}, .input = {}, .on_error_output = {}});
  ASSERT_FALSE(child);
  EXPECT_THAT(child.error().detail, HasSubstr("/nowhere/program cannot be started"));
}

}  // namespace
}  // namespace delayq::cli
