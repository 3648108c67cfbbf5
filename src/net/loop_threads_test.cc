#include <limits>
#include <thread>

#include <gtest/gtest.h>

#include "net/loop.h"

namespace delayq::net {
namespace {

TEST(Loop, another_thread_ends_a_wait) {
  Loop loop;
  for (int i = 0; i < 200; ++i) {
    std::thread other([&] { loop.wake(); });
    loop.wait_until(Loop::now() + std::chrono::hours{1});  // wakes once a second in any case
    other.join();
  }
}

TEST(Loop, a_moment_centuries_away_is_waited_for_and_one_long_past_is_not) {
  Loop loop;
  for (const int64_t past : {std::numeric_limits<int64_t>::min(), int64_t{-253'402'300'799'999}, int64_t{0}})
    loop.wait_until(from_unix_ms(past));
  const auto begun = Loop::steady_now();
  loop.wait_until(from_unix_ms(253'402'300'799'999));
  EXPECT_GT(Loop::steady_now() - begun, std::chrono::milliseconds{900}) << "it would use a whole processor";
  std::thread other([&] { loop.wake(); });
  loop.wait_until(from_unix_ms(std::numeric_limits<int64_t>::max() - 1));
  other.join();
}

}  // namespace
}  // namespace delayq::net
