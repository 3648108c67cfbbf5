#include <gmock/gmock.h>

#include "queue/job_options.h"
#include "queue/leases.h"

namespace delayq {
namespace {

constexpr Moment kNow = from_unix_ms(1'700'000'000'000);

EffectiveSettings steps_of(uint32_t attempts, std::vector<Millis> steps) {
  EffectiveSettings settings;
  settings.attempts = attempts;
  settings.backoff = StepBackoff{std::move(steps)};
  settings.keep_dead = {Millis{5'000}, 9};
  return settings;
}

std::string encoded(const JobOptions& options) {
  std::string bytes;
  encode_job_options(options, bytes);
  return bytes;
}

Attempt attempt(uint32_t number, std::string_view options = {}) {
  Random random{1};
  return attempt_of(options, number, random);
}

TEST(Failures, TheTopicsPolicyDecides) {
  const EffectiveSettings topic = steps_of(3, {Millis{10}, Millis{20}});
  EXPECT_EQ(judge({.attempt = attempt(1)}, topic, kNow, 0).retry_at, kNow + Millis{10});
  EXPECT_EQ(judge({.attempt = attempt(2)}, topic, kNow, 0).retry_at, kNow + Millis{20});
  const Verdict dead = judge({.attempt = attempt(3)}, topic, kNow, 0);
  EXPECT_EQ(dead.retry_at, std::nullopt);
  EXPECT_EQ(dead.keep.until, kNow + Millis{5'000});
  EXPECT_EQ(dead.keep.count, 9U);
}

TEST(Failures, TheJobsOwnWordGoesFirst) {
  const EffectiveSettings topic = steps_of(3, {Millis{10}});
  const std::string more = encoded({.attempts = 0});
  EXPECT_EQ(judge({.attempt = attempt(100, more)}, topic, kNow, 0).retry_at, kNow + Millis{10})
      << "its attempts, the topic's backoff";
  const std::string slower = encoded({.backoff = StepBackoff{{Millis{77}}}});
  EXPECT_EQ(judge({.attempt = attempt(1, slower)}, topic, kNow, 0).retry_at, kNow + Millis{77});
  EXPECT_EQ(judge({.attempt = attempt(3, slower)}, topic, kNow, 0).retry_at, std::nullopt)
      << "its backoff, the topic's attempts";
}

TEST(Failures, AConsumersDelayReplacesTheBackoffNotTheCount) {
  const EffectiveSettings topic = steps_of(2, {Millis{10}});
  EXPECT_EQ(judge({.attempt = attempt(1), .delay = Millis{500}}, topic, kNow, 0).retry_at,
            kNow + Millis{500});
  EXPECT_EQ(judge({.attempt = attempt(1), .delay = Millis{0}}, topic, kNow, 0).retry_at, kNow);
  EXPECT_EQ(judge({.attempt = attempt(2), .delay = Millis{500}}, topic, kNow, 0).retry_at, std::nullopt);
}

TEST(Failures, AConsumerMaySayThatItIsHopeless) {
  const EffectiveSettings topic = steps_of(0, {Millis{10}});
  EXPECT_EQ(judge({.attempt = attempt(1), .delay = Millis{5}, .dead = true}, topic, kNow, 0).retry_at,
            std::nullopt);
}

TEST(Failures, DamagedOptionsFallBackToTheTopic) {
  const EffectiveSettings topic = steps_of(2, {Millis{10}});
  EXPECT_EQ(judge({.attempt = attempt(1, "\xc1 not options")}, topic, kNow, 0).retry_at, kNow + Millis{10});
}

}  // namespace
}  // namespace delayq
