#include <iostream>
#include <unistd.h>

#include <gtest/gtest.h>

#include "ops/process.h"

namespace delayq {
namespace {

TEST(ExitDeadline, EndsAProcessThatHangs) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto hang = [] {
    const ExitDeadline deadline(Millis{1}, 7, [] { std::cerr << "hangs\n"; });
    for (;;) ::pause();
  };
  EXPECT_EXIT(hang(), testing::ExitedWithCode(7), "hangs");
}

TEST(ExitDeadline, LetsGoOneThatIsInTime) {
  const ExitDeadline deadline(std::chrono::hours{1}, 7, [] { ADD_FAILURE(); });
}

}  // namespace
}  // namespace delayq
