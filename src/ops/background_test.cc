#include <csignal>
#include <unistd.h>

#include <gtest/gtest.h>

#include "ops/process.h"

namespace delayq {
namespace {

TEST(Background, answers_when_the_work_is_ready) {
  EXPECT_EQ(run_in_background([](const auto& tell_ready) {
              tell_ready();
              return 5;
            }),
            0);
}

TEST(Background, answers_what_work_that_was_never_ready_answered) {
  EXPECT_EQ(run_in_background([](const auto&) { return 7; }), 7);
}

TEST(Background, work_that_dies_without_a_word_is_a_defect) {
  EXPECT_EQ(run_in_background([](const auto&) { return std::raise(SIGKILL); }), 14);
}

TEST(Background, has_no_terminal_and_another_session) {
  const pid_t session = ::getsid(0);
  EXPECT_EQ(run_in_background([session](const auto&) {
              return ::getsid(0) != session && ::getsid(0) != ::getpid() ? 3 : 4;
            }),
            3);
}

}  // namespace
}  // namespace delayq
