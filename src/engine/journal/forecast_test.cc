// Compares Store::forecast with counting the jobs one by one.
#include <vector>

#include <gtest/gtest.h>

#include "core/random.h"
#include "engine/journal/store.h"
#include "tests/support/job_spec.h"

namespace delayq::journal {
namespace {

using support::at;
using support::kStart;

class ForecastTest : public testing::Test {
 protected:
  ForecastTest() { store.go_live(kStart); }

  Slot add(std::string_view topic, Moment due) {
    StatePayload state{};
    state.seq = ++seq;
    state.due_ms = to_unix_ms(due);
    const std::string id = std::to_string(seq);
    dues.emplace_back(topic, due);
    return store.insert({store.ids.key_of(id), store.topics.find_or_add(topic), state, 0, false, {}, {}});
  }

  /// The number of jobs that fall due between the two times.
  uint64_t count(std::string_view topic, Moment from, Moment to) const {
    uint64_t jobs = 0;
    for (const auto& [name, due] : dues) jobs += (topic.empty() || name == topic) && due >= from && due < to;
    return jobs;
  }

  /// Every bin may be wrong by the jobs within the resolution around its edges.
  void expect_near(std::string_view topic, Moment from, Moment to, uint32_t bins) {
    ForecastRequest request{topic, from, to, bins};
    const Forecast forecast = store.forecast(topic.empty() ? kNoTopic : store.topics.find(topic), request);
    ASSERT_EQ(forecast.bins.size(), bins);
    const Millis off = forecast.resolution;
    for (uint32_t i = 0; i < bins; ++i) {
      const Moment start = from + (to - from) * i / bins;
      const Moment end = from + (to - from) * (i + 1) / bins;
      EXPECT_LE(forecast.bins[i], count(topic, start - off, end + off)) << "bin " << i;
      if (end - start <= 2 * off) continue;
      EXPECT_GE(forecast.bins[i], count(topic, start + off, end - off)) << "bin " << i;
    }
  }

  Store store{SipKey{1, 2}};
  std::vector<std::pair<std::string, Moment>> dues;
  uint64_t seq = 0;
};

TEST_F(ForecastTest, a_small_topic_is_counted_exactly) {
  Random random{3};
  for (int i = 0; i < 2000; ++i)
    add(i % 2 == 0 ? "a" : "b", at(1 + static_cast<int64_t>(random.below(100'000'000))));
  const Forecast forecast = store.forecast(store.topics.find("a"), {"a", kStart, at(100'000'001), 10});
  EXPECT_EQ(forecast.resolution, Millis{1});
  for (uint32_t i = 0; i < 10; ++i) {
    EXPECT_NEAR(static_cast<double>(forecast.bins[i]),
                static_cast<double>(count("a", at(i * 10'000'000), at((i + 1) * 10'000'000))), 1)
        << i;
  }
}

TEST_F(ForecastTest, all_topics_and_large_ones_are_right_within_the_resolution) {
  Random random{4};
  for (int i = 0; i < 20'000; ++i) {
    const auto bits = random.between(8, 36);
    add(i % 8 == 0 ? "small" : "large",
        at(1 + static_cast<int64_t>(random.next() & ((uint64_t{1} << bits) - 1))));
  }
  for (const std::string_view topic : {"", "large", "small"}) {
    SCOPED_TRACE(topic);
    expect_near(topic, kStart, at(60'000), 10);
    expect_near(topic, kStart, at(3'600'000), 12);
    expect_near(topic, kStart, at(86'400'000), 24);
    expect_near(topic, at(1'000'000), at(30LL * 86'400'000), 30);
  }
}

TEST_F(ForecastTest, follows_the_clock) {
  Random random{5};
  for (int i = 0; i < 20'000; ++i) add("large", at(1 + static_cast<int64_t>(random.below(40'000'000))));
  const Moment now = at(10'000'000);
  store.wheel.advance(now, 1'000'000, [](Slot) {});
  std::erase_if(dues, [&](const auto& row) { return row.second <= now; });
  expect_near("", now, now + std::chrono::hours{6}, 12);
}

TEST_F(ForecastTest, nothing_lies_in_an_empty_range) {
  add("a", at(5));
  const Forecast forecast = store.forecast(kNoTopic, {{}, at(10), at(10), 4});
  EXPECT_EQ(forecast.bins, (std::vector<uint64_t>{0, 0, 0, 0}));
}

}  // namespace
}  // namespace delayq::journal
