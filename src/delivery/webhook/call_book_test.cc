#include "delivery/webhook/call_book.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "delivery/webhook/webhook_sink.h"

namespace delayq::webhook {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;
using testing::ElementsAre;

Moment second(int64_t number) { return Moment{seconds{number}}; }

CallResult took(microseconds time) {
  CallResult result;
  result.status = 200;
  result.took = time;
  return result;
}

auto looked(const HostGate& gate, Moment now) {
  return [&gate, now](const std::string& host) { return gate.look(host, now); };
}

std::vector<std::string> names(const CallbackReport& report) {
  std::vector<std::string> names;
  for (const HostReport& host : report.hosts) names.push_back(host.host);
  return names;
}

TEST(CallBook, tells_how_the_calls_to_each_host_went) {
  HostGate gate({});
  CallBook book;
  book.note(second(1), "a:80", took(microseconds{900}), false);
  book.note(second(2), "a:80", took(microseconds{70'000}), true);
  const CallbackReport report = book.report(looked(gate, second(3)), 10);
  ASSERT_EQ(report.hosts.size(), 1U);
  EXPECT_EQ(report.hosts[0].calls, 2U);
  EXPECT_EQ(report.hosts[0].failed, 1U);
  EXPECT_EQ(report.hosts[0].last_call, second(2));
  EXPECT_EQ(report.hosts[0].micros.count(), 2U);
  EXPECT_EQ(report.hosts[0].gate.breaker, Breaker::kClosed);
}

TEST(CallBook, hosts_in_need_come_first_then_the_busiest) {
  HostGate gate({.per_host = 4, .failures = 2, .cooldown = seconds{10}});
  CallBook book;
  for (const std::string host : {"busy", "busy", "quiet", "failed", "broken"})
    book.note(second(1), host, took({}), false);
  for (const std::string host : {"failed", "broken", "broken"}) {
    gate.enter(host, second(1));
    gate.leave(host, second(1), true);
  }
  EXPECT_THAT(names(book.report(looked(gate, second(2)), 10)),
              ElementsAre("broken", "failed", "busy", "quiet"));
  EXPECT_THAT(names(book.report(looked(gate, second(2)), 2)), ElementsAre("broken", "failed"));
  const HostReport broken = book.report(looked(gate, second(2)), 1).hosts[0];
  EXPECT_EQ(broken.gate.breaker, Breaker::kOpen);
  EXPECT_EQ(broken.gate.open_until, second(11));
  EXPECT_EQ(broken.gate.failures, 2U);
  EXPECT_EQ(book.report(looked(gate, second(11)), 1).hosts[0].gate.breaker, Breaker::kHalfOpen);
}

TEST(CallBook, forgets_the_host_that_was_not_called_for_longest) {
  HostGate gate({});
  CallBook book;
  for (size_t i = 0; i < CallBook::kMostHosts; ++i)
    book.note(second(static_cast<int64_t>(i)), fmt::format("h{}", i), took({}), false);
  book.note(second(5'000), "h0", took({}), false);
  book.note(second(5'001), "new", took({}), false);
  EXPECT_EQ(book.size(), CallBook::kMostHosts);
  const auto left = names(book.report(looked(gate, second(5'002)), CallBook::kMostHosts));
  EXPECT_THAT(left, testing::Contains("h0"));
  EXPECT_THAT(left, testing::Not(testing::Contains("h1")));
}

TEST(CallBook, keeps_the_last_failures) {
  HostGate gate({});
  CallBook book;
  for (size_t i = 0; i < CallBook::kMostFailures + 5; ++i)
    book.note_failure({second(1), "t", fmt::format("{}", i), "h", 1, false, 500, CallError::kNone, {}});
  const auto report = book.report(looked(gate, second(2)), 1'000);
  ASSERT_EQ(report.failures.size(), CallBook::kMostFailures);
  EXPECT_EQ(report.failures.front().id, "104");
  EXPECT_EQ(report.failures.back().id, "5");
  EXPECT_EQ(book.report(looked(gate, second(2)), 3).failures.size(), 3U);
}

}  // namespace
}  // namespace delayq::webhook
