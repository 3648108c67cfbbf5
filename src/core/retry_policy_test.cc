#include "core/retry_policy.h"

#include <algorithm>
#include <array>
#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/limits.h"
#include "core/random.h"
#include "tests/support/evenly.h"

namespace delayq {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();

std::string detail(const Result<Backoff>& backoff) { return backoff ? "accepted" : backoff.error().detail; }

TEST(RetryPolicy, steps_follow_each_other_and_the_last_repeats) {
  const RetryPolicy policy{.attempts = 0, .backoff = StepBackoff{{seconds{10}, minutes{1}, minutes{10}}}};
  const std::array<Millis, 5> expected{seconds{10}, minutes{1}, minutes{10}, minutes{10}, minutes{10}};
  for (uint32_t made = 1; made <= expected.size(); ++made) {
    EXPECT_EQ(next_delay(policy, made, kMost), expected[made - 1]);
  }
  EXPECT_EQ(next_delay(policy, std::numeric_limits<uint32_t>::max(), 0), minutes{10});
}

TEST(RetryPolicy, is_used_up_after_its_attempts) {
  const RetryPolicy policy{.attempts = 3, .backoff = StepBackoff{{seconds{1}}}};
  EXPECT_EQ(next_delay(policy, 1, 0), seconds{1});
  EXPECT_EQ(next_delay(policy, 2, 0), seconds{1});
  EXPECT_EQ(next_delay(policy, 3, 0), std::nullopt);
  EXPECT_EQ(next_delay(policy, 4, 0), std::nullopt);
  EXPECT_EQ(next_delay({.attempts = 1, .backoff = policy.backoff}, 1, 0), std::nullopt);
}

TEST(RetryPolicy, zero_attempts_is_no_limit) {
  const RetryPolicy policy{.attempts = 0, .backoff = StepBackoff{{seconds{1}}}};
  EXPECT_EQ(next_delay(policy, 4'000'000'000U, 0), seconds{1});
}

TEST(RetryPolicy, the_default_takes_about_seven_hours) {
  const RetryPolicy policy{.attempts = kDefaultAttempts, .backoff = ExponentialBackoff{}};
  Millis longest{0};
  Millis shortest{0};
  uint32_t made = 1;
  for (; next_delay(policy, made, 0); ++made) {
    longest += *next_delay(policy, made, 0);
    shortest += *next_delay(policy, made, kMost);
  }
  EXPECT_EQ(made, 16U);
  EXPECT_EQ(longest, hours{7} + minutes{25} + seconds{10});
  EXPECT_GE(shortest, longest * 9 / 10);
}

TEST(RetryPolicy, exponential_grows_to_its_cap) {
  const RetryPolicy policy{.attempts = 0, .backoff = ExponentialBackoff{seconds{1}, 3, seconds{20}, 0}};
  const std::array<Millis, 5> expected{seconds{1}, seconds{3}, seconds{9}, seconds{20}, seconds{20}};
  for (uint32_t made = 1; made <= expected.size(); ++made) {
    EXPECT_EQ(next_delay(policy, made, kMost), expected[made - 1]);
  }
  EXPECT_EQ(next_delay(policy, 0, 0), seconds{1}) << "no attempt counts like one";
}

TEST(RetryPolicy, a_fractional_delay_is_rounded_up) {
  const RetryPolicy policy{.attempts = 0, .backoff = ExponentialBackoff{Millis{3}, 1.5, seconds{1}, 0}};
  EXPECT_EQ(next_delay(policy, 2, 0), Millis{5});  // 4.5
  EXPECT_EQ(next_delay(policy, 3, 0), Millis{7});  // 6.75
}

TEST(RetryPolicy, jitter_spreads_downwards_and_evenly) {
  const RetryPolicy policy{.attempts = 0, .backoff = ExponentialBackoff{seconds{10}, 1, seconds{10}, 0.2}};
  EXPECT_EQ(next_delay(policy, 1, 0), Millis{10'000});
  EXPECT_EQ(next_delay(policy, 1, kMost), Millis{8'000});
  Random random{21};
  int upper_half = 0;
  for (int i = 0; i < 10'000; ++i)
    upper_half += *next_delay(policy, 1, random.next()) > Millis{9'000} ? 1 : 0;
  EXPECT_NEAR(upper_half, 5'000, 300);
}

TEST(RetryPolicy, full_jitter_reaches_zero_and_not_below) {
  const RetryPolicy policy{.attempts = 0, .backoff = ExponentialBackoff{Millis{7}, 2, Limits::kMaxDelay, 1}};
  EXPECT_EQ(next_delay(policy, 1, kMost), Millis{0});
  EXPECT_EQ(next_delay(policy, 4'000'000'000U, kMost), Millis{0});
  EXPECT_EQ(next_delay(policy, 4'000'000'000U, 0), Limits::kMaxDelay);
}

TEST(Backoff, reads_its_three_forms) {
  EXPECT_EQ(*parse_backoff("30s"), Backoff{StepBackoff{{seconds{30}}}});
  EXPECT_EQ(*parse_backoff("0"), Backoff{StepBackoff{{Millis{0}}}});
  EXPECT_EQ(*parse_backoff("10s,1m,10m"), (Backoff{StepBackoff{{seconds{10}, minutes{1}, minutes{10}}}}));
  EXPECT_EQ(*parse_backoff("exponential:1s:2:1h:0.2"),
            (Backoff{ExponentialBackoff{seconds{1}, 2, hours{1}, 0.2}}));
}

TEST(Backoff, what_is_left_out_has_its_default) {
  EXPECT_EQ(*parse_backoff("exponential"), Backoff{ExponentialBackoff{}});
  EXPECT_EQ(*parse_backoff("exponential:1s"), (Backoff{ExponentialBackoff{.base = seconds{1}}}));
  EXPECT_EQ(*parse_backoff("exponential:1s:1.5:5m"),
            (Backoff{ExponentialBackoff{.base = seconds{1}, .factor = 1.5, .cap = minutes{5}}}));
}

TEST(Backoff, refuses_what_is_not_a_backoff) {
  for (std::string_view text : {"",
                                ",",
                                "10s,",
                                ",10s",
                                "10s,,1m",
                                "10s, 1m",
                                "10s;1m",
                                "x",
                                "-1s",
                                "exponential:",
                                "exponential:1s:",
                                "exponential:1s:2:1h:0.2:",
                                "exponential:1s:2:1h:0.2:1",
                                "exponential:1s::1h",
                                "exponential1s",
                                "exponentially",
                                "Exponential",
                                "exponential:1s:x",
                                "exponential:1s:-2",
                                "exponential:1s:2e0",
                                "exponential:1s:nan",
                                "exponential:1s:inf",
                                "exponential:1s:2:1h:0.1234567",
                                "exponential,1s"}) {
    EXPECT_FALSE(parse_backoff(text).ok()) << text;
  }
}

TEST(Backoff, refuses_what_is_out_of_range) {
  EXPECT_EQ(detail(parse_backoff("36526d")),
            R"("36526d" is not a backoff: backoff step 36526d is out of range: 0s to 36525d is allowed)");
  EXPECT_EQ(
      detail(parse_backoff("exponential:0s")),
      R"("exponential:0s" is not a backoff: backoff base 0s is out of range: 1ms to 36525d is allowed)");
  EXPECT_EQ(
      detail(parse_backoff("exponential:1m:2:1s")),
      R"("exponential:1m:2:1s" is not a backoff: backoff cap 1s is out of range: the base, 1m, to 36525d is allowed)");
  EXPECT_EQ(
      detail(parse_backoff("exponential:1s:0.5")),
      R"("exponential:1s:0.5" is not a backoff: backoff factor 0.5 is out of range: 1 to 1000 is allowed)");
  EXPECT_EQ(
      detail(parse_backoff("exponential:1s:2:1h:1.1")),
      R"("exponential:1s:2:1h:1.1" is not a backoff: backoff jitter 1.1 is out of range: 0 to 1 is allowed)");
  std::string steps = "1s";
  for (size_t i = 1; i < Limits::kBackoffSteps; ++i) steps += ",1s";
  EXPECT_EQ(detail(parse_backoff(steps)), "accepted");
  EXPECT_FALSE(parse_backoff(steps + ",1s").ok());
}

TEST(Backoff, checks_what_code_put_together) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(check_backoff(ExponentialBackoff{}).ok());
  EXPECT_FALSE(check_backoff(StepBackoff{}).ok());
  EXPECT_FALSE(check_backoff(StepBackoff{{Millis{-1}}}).ok());
  EXPECT_FALSE(check_backoff(StepBackoff{std::vector<Millis>(Limits::kBackoffSteps + 1)}).ok());
  EXPECT_FALSE(check_backoff(ExponentialBackoff{.factor = kNan}).ok());
  EXPECT_FALSE(check_backoff(ExponentialBackoff{.jitter = kNan}).ok());
  EXPECT_FALSE(check_backoff(ExponentialBackoff{.factor = 1'000.5}).ok());
  EXPECT_FALSE(
      check_backoff(ExponentialBackoff{.base = Limits::kMaxDelay, .cap = Limits::kMaxDelay + Millis{1}})
          .ok());
}

TEST(Backoff, the_ends_of_every_range_are_allowed) {
  for (const Backoff& backoff : std::vector<Backoff>{
           StepBackoff{{Millis{0}, Limits::kMaxDelay}},
           ExponentialBackoff{Millis{1}, 1, Millis{1}, 0},
           ExponentialBackoff{Limits::kMaxDelay, Limits::kMaxBackoffFactor, Limits::kMaxDelay, 1},
       }) {
    EXPECT_TRUE(check_backoff(backoff).ok()) << format_backoff(backoff);
    EXPECT_EQ(*parse_backoff(format_backoff(backoff)), backoff);
  }
  EXPECT_FALSE(check_backoff(ExponentialBackoff{.jitter = -0.000001}).ok());
  EXPECT_FALSE(check_backoff(ExponentialBackoff{.factor = 0.999999}).ok());
}

TEST(Backoff, is_written_in_full) {
  EXPECT_EQ(format_backoff(ExponentialBackoff{}), "exponential:10s:2:1h:0.1");
  EXPECT_EQ(format_backoff(ExponentialBackoff{Millis{1}, 1'000, hours{2}, 0}), "exponential:1ms:1000:2h:0");
  EXPECT_EQ(format_backoff(ExponentialBackoff{Millis{1}, 1.000001, hours{2}, 1}),
            "exponential:1ms:1.000001:2h:1");
  EXPECT_EQ(format_backoff(StepBackoff{{seconds{10}, Millis{0}}}), "10s,0s");
}

rc::Gen<Millis> any_delay(int64_t least) {
  return rc::gen::map(evenly<int64_t>(least, Limits::kMaxDelay.count() + 1),
                      [](int64_t ms) { return Millis{ms}; });
}

/// Any backoff that check_backoff() allows, with the decimals that the text form has.
Backoff arbitrary_backoff() {
  if (*rc::gen::arbitrary<bool>()) {
    const auto steps = *rc::gen::nonEmpty(rc::gen::container<std::vector<Millis>>(any_delay(0)));
    return StepBackoff{
        {steps.begin(), steps.begin() + static_cast<ptrdiff_t>(std::min(steps.size(), size_t{32}))}};
  }
  const auto one = *any_delay(1);
  const auto other = *any_delay(1);
  return ExponentialBackoff{std::min(one, other), *evenly(1'000'000, 1'000'000'001) / 1e6,
                            std::max(one, other), *evenly(0, 1'000'001) / 1e6};
}

Millis longest_of(const Backoff& backoff) {
  if (const auto* exponential = std::get_if<ExponentialBackoff>(&backoff)) return exponential->cap;
  const auto& steps = std::get<StepBackoff>(backoff).steps;
  return *std::max_element(steps.begin(), steps.end());
}

RC_GTEST_PROP(Backoff, what_is_written_is_read_back, ()) {
  const Backoff backoff = arbitrary_backoff();
  const Result<Backoff> again = parse_backoff(format_backoff(backoff));
  RC_ASSERT(again.ok());
  RC_ASSERT(*again == backoff);
}

RC_GTEST_PROP(Backoff, a_delay_is_never_negative_nor_above_the_cap, (uint64_t random)) {
  const RetryPolicy policy{.attempts = 0, .backoff = arbitrary_backoff()};
  const auto made = *rc::gen::oneOf(evenly<uint32_t>(0, 100), rc::gen::arbitrary<uint32_t>());
  for (uint64_t bits : {random, uint64_t{0}, kMost}) {
    const std::optional<Millis> delay = next_delay(policy, made, bits);
    RC_ASSERT(delay.has_value());
    RC_ASSERT(*delay >= Millis::zero());
    RC_ASSERT(*delay <= longest_of(policy.backoff));
  }
}

RC_GTEST_PROP(Backoff, without_jitter_delays_never_shrink, ()) {
  Backoff backoff = arbitrary_backoff();
  auto* exponential = std::get_if<ExponentialBackoff>(&backoff);
  if (exponential == nullptr) return;
  exponential->jitter = 0;
  const RetryPolicy policy{.attempts = 0, .backoff = backoff};
  Millis last = exponential->base;
  for (uint32_t made = 1; made < 64; ++made) {
    const Millis delay = *next_delay(policy, made, 0);
    RC_ASSERT(delay >= last);
    last = delay;
  }
}

}  // namespace
}  // namespace delayq
