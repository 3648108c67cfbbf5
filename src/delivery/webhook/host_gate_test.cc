#include <gtest/gtest.h>

#include "delivery/webhook/webhook_sink.h"

namespace delayq::webhook {
namespace {

using std::chrono::seconds;

constexpr Moment kNow = from_unix_ms(1'700'000'000'000);

class Gate : public testing::Test {
 protected:
  void fail(Moment when, int times = 1) {
    for (int i = 0; i < times; ++i) {
      gate_.enter("a:80", when);
      gate_.leave("a:80", when, true);
    }
  }
  uint32_t calls(Moment when) { return gate_.room("a:80", when).calls; }
  bool is_open(Moment when) { return gate_.room("a:80", when).open_until.has_value(); }

  HostGate gate_{{.per_host = 3, .failures = 2, .cooldown = seconds{10}, .hosts = 4}};
};

TEST_F(Gate, PlacesPerHost) {
  EXPECT_EQ(calls(kNow), 3U);
  gate_.enter("a:80", kNow, 3);
  EXPECT_EQ(calls(kNow), 0U);
  EXPECT_FALSE(is_open(kNow));
  EXPECT_EQ(gate_.room("b:80", kNow).calls, 3U);
  gate_.leave("a:80", kNow, false);
  gate_.give_back("a:80", 1);
  EXPECT_EQ(calls(kNow), 2U);
}

TEST_F(Gate, OpensAfterFailuresInARow) {
  fail(kNow);
  gate_.enter("a:80", kNow);
  gate_.leave("a:80", kNow, false);
  fail(kNow);
  EXPECT_FALSE(is_open(kNow)) << "a success in between";
  fail(kNow);
  EXPECT_EQ(gate_.room("a:80", kNow).open_until, kNow + seconds{10});
  EXPECT_EQ(gate_.open_hosts(), 1U);
}

TEST_F(Gate, OneProbeWhenHalfOpen) {
  fail(kNow, 2);
  const Moment later = kNow + seconds{10};
  EXPECT_EQ(calls(later), 1U);
  gate_.enter("a:80", later);
  EXPECT_EQ(calls(later), 0U);
  EXPECT_FALSE(is_open(later)) << "wait for the probe, not for a time";
  gate_.leave("a:80", later, true);
  EXPECT_EQ(gate_.room("a:80", later).open_until, later + seconds{10});
  const Moment last = later + seconds{10};
  gate_.enter("a:80", last);
  gate_.leave("a:80", last, false);
  EXPECT_EQ(calls(last), 3U);
  EXPECT_EQ(gate_.open_hosts(), 0U);
  EXPECT_EQ(gate_.size(), 0U) << "nothing to remember of it";
}

TEST_F(Gate, AProbeThatFoundNoJobLeavesItToTheNext) {
  fail(kNow, 2);
  const Moment later = kNow + seconds{10};
  gate_.enter("a:80", later);
  gate_.give_back("a:80", 1);
  EXPECT_EQ(calls(later), 1U);
}

TEST_F(Gate, FailuresOfCallsFromBeforeDoNotKeepItOpenForLonger) {
  gate_.enter("a:80", kNow, 3);
  gate_.leave("a:80", kNow, true);
  gate_.leave("a:80", kNow, true);
  gate_.leave("a:80", kNow + seconds{5}, true);
  EXPECT_EQ(gate_.room("a:80", kNow + seconds{5}).open_until, kNow + seconds{10});
}

TEST_F(Gate, AClockThatWentBackDoesNotKeepItOpen) {
  fail(kNow, 2);
  const Moment before = kNow - std::chrono::hours{1};
  EXPECT_EQ(gate_.room("a:80", before).open_until, before + seconds{10});
}

TEST_F(Gate, WithoutABreaker) {
  gate_.set_options({.per_host = 3, .failures = 0});
  fail(kNow, 100);
  EXPECT_EQ(calls(kNow), 3U);
}

TEST_F(Gate, RemembersABoundedNumberOfHosts) {
  for (int i = 0; i < 100; ++i) {
    const std::string host = "h" + std::to_string(i) + ":80";
    gate_.enter(host, kNow);
    gate_.leave(host, kNow, true);
    EXPECT_LE(gate_.size(), 5U);
  }
}

}  // namespace
}  // namespace delayq::webhook
