#include "tests/support/stepped_io.h"

#include <string>

#include <gtest/gtest.h>

namespace delayq::support {
namespace {

using journal::Lane;

/// An Io that records what ran when.
struct Recorded {
  SteppedIo io;
  std::string log;

  void run(Lane lane, char name) {
    io.run(
        lane, [this, name] { log += name; }, [this, name] { log += static_cast<char>(name - 'a' + 'A'); });
  }
};

TEST(SteppedIo, MovesOnlyWhenTold) {
  Recorded all;
  all.run(Lane::kWrite, 'a');
  all.run(Lane::kWrite, 'b');
  all.run(Lane::kRead, 'c');
  EXPECT_FALSE(all.io.poll());
  EXPECT_EQ(all.log, "");
  EXPECT_TRUE(all.io.step(Lane::kRead));
  EXPECT_FALSE(all.io.step(Lane::kRead));
  EXPECT_TRUE(all.io.step(Lane::kWrite));
  EXPECT_EQ(all.log, "ca");
  EXPECT_EQ(all.io.waiting(Lane::kWrite), 1U);
  EXPECT_TRUE(all.io.poll());
  EXPECT_EQ(all.log, "caCA");
  EXPECT_FALSE(all.io.poll());
  EXPECT_FALSE(all.io.idle());
  all.io.drain();
  EXPECT_EQ(all.log, "caCAbB");
  EXPECT_TRUE(all.io.idle());
}

TEST(SteppedIo, DrainDoesWhatTheDoneCallbacksAskFor) {
  Recorded all;
  all.io.run(
      Lane::kWrite, [] {}, [&] { all.run(Lane::kRead, 'x'); });
  all.io.drain();
  EXPECT_EQ(all.log, "xX");
}

TEST(SteppedIo, WakesForEveryFinishedWork) {
  SteppedIo io;
  int woken = 0;
  io.set_wakeup([&] { ++woken; });
  io.run(
      Lane::kWrite, [] {}, [] {});
  EXPECT_EQ(woken, 0);
  io.step(Lane::kWrite);
  EXPECT_EQ(woken, 1);
}

TEST(SteppedIo, ADeadProcessDoesNothingMore) {
  Recorded all;
  all.run(Lane::kWrite, 'a');
  all.run(Lane::kRead, 'b');
  all.io.step(Lane::kWrite);
  all.io.abandon();
  all.io.drain();
  EXPECT_EQ(all.log, "a");
}

}  // namespace
}  // namespace delayq::support
