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

}  // namespace
}  // namespace delayq::net
