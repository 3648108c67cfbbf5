#include "core/duration.h"

#include <array>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/support/evenly.h"

namespace delayq {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

/// The parsed milliseconds; -1 when refused.
int64_t ms(std::string_view text) {
  const Result<Millis> duration = parse_duration(text);
  return duration ? duration->count() : -1;
}

std::string detail(std::string_view text) {
  const Result<Millis> duration = parse_duration(text);
  return duration ? "accepted" : duration.error().detail;
}

TEST(Duration, reads_each_unit) {
  EXPECT_EQ(ms("250ms"), 250);
  EXPECT_EQ(ms("30s"), 30'000);
  EXPECT_EQ(ms("15m"), 900'000);
  EXPECT_EQ(ms("3h"), 10'800'000);
  EXPECT_EQ(ms("7d"), 604'800'000);
  EXPECT_EQ(ms("0ms"), 0);
  EXPECT_EQ(ms("007s"), 7'000);
}

TEST(Duration, a_bare_number_counts_seconds) {
  EXPECT_EQ(ms("0"), 0);
  EXPECT_EQ(ms("90"), 90'000);
  EXPECT_EQ(ms("0.25"), 250);
  EXPECT_EQ(ms("1.5"), 1'500);
}

TEST(Duration, reads_combinations) {
  EXPECT_EQ(ms("1h30m"), 5'400'000);
  EXPECT_EQ(ms("1d2h3m4s5ms"), 93'784'005);
  EXPECT_EQ(ms("1m1.5s"), 61'500);
  EXPECT_EQ(ms("1s500ms"), 1'500);
  EXPECT_EQ(ms("1h0.5m"), 3'630'000);
}

TEST(Duration, rounds_up_so_that_nothing_is_early) {
  EXPECT_EQ(ms("0.0001"), 1);
  EXPECT_EQ(ms("0.1ms"), 1);
  EXPECT_EQ(ms("1.0005s"), 1'001);
  EXPECT_EQ(ms("1.000s"), 1'000);
  EXPECT_EQ(ms("0.00000000001d"), 1);
}

TEST(Duration, refuses_what_is_not_a_duration) {
  for (std::string_view text :
       {"",      " ",    "s",    "ms",        "10x",     "-1s",       "+1s",    "-1",  "1 s",
        " 1s",   "1s ",  "1e3",  "1e3s",      "0x10",    "0x1s",      "nan",    "inf", "1.s",
        ".5s",   "1.",   ".5",   "1..5s",     "1.5.5",   "1S",        "1H",     "1mS", "1h30",
        "30m1h", "1h1h", "1s1s", "1ms1s",     "1.5h30m", "1,5s",      "1_000s", "1w",  "1y",
        "1us",   "1hh",  "1msm", "\xd9\xa3s", "1s\n",    "one second"}) {
    EXPECT_EQ(ms(text), -1) << text;
  }
  EXPECT_EQ(ms(std::string_view("1s\0", 3)), -1);
}

TEST(Duration, refuses_overflow_instead_of_clamping) {
  EXPECT_EQ(ms("9223372036854775807ms"), kMax);
  EXPECT_EQ(ms("9223372036854775808ms"), -1);
  EXPECT_EQ(ms("9223372036854775.807"), kMax);
  EXPECT_EQ(ms("9223372036854775.8071"), -1);
  EXPECT_EQ(ms("106751991167d7h12m55s807ms"), kMax);
  EXPECT_EQ(ms("106751991167d7h12m55s808ms"), -1);
  EXPECT_EQ(ms("106751991168d"), -1);
  EXPECT_EQ(ms(std::string(1'000, '9') + "d"), -1);
}

TEST(Duration, says_what_was_wrong_and_what_would_be_right) {
  EXPECT_EQ(detail("10x"),
            R"("10x" is not a duration: use a number with a unit such as "250ms", "30s", "15m", "3h", "7d")");
  EXPECT_EQ(detail("30m1h"),
            R"("30m1h" is not a duration: larger units come first, and each once, as in "1h30m")");
  EXPECT_EQ(detail("1.5h30m"),
            R"("1.5h30m" is not a duration: only the last number may have a fraction, as in "1m1.5s")");
  EXPECT_EQ(detail("999999999999d"),
            R"("999999999999d" is not a duration: it is longer than can be counted in milliseconds)");
  EXPECT_EQ(parse_duration("10x").error().code, ErrorCode::kInvalid);
}

TEST(Duration, is_written_as_a_person_would) {
  const std::vector<std::pair<int64_t, std::string>> forms{{0, "0s"},
                                                           {1, "1ms"},
                                                           {250, "250ms"},
                                                           {1'000, "1s"},
                                                           {1'500, "1.5s"},
                                                           {1'050, "1.05s"},
                                                           {1'001, "1.001s"},
                                                           {30'000, "30s"},
                                                           {90'000, "1m30s"},
                                                           {900'000, "15m"},
                                                           {60'500, "1m0.5s"},
                                                           {3'600'000, "1h"},
                                                           {5'400'000, "1h30m"},
                                                           {86'400'000, "1d"},
                                                           {129'600'000, "1d12h"},
                                                           {604'800'000, "7d"},
                                                           {86'400'001, "1d0.001s"},
                                                           {-1'500, "-1.5s"},
                                                           {-3'600'000, "-1h"}};
  for (const auto& [count, text] : forms) EXPECT_EQ(format_duration(Millis{count}), text);
}

TEST(Duration, the_ends_of_the_range_can_be_written) {
  EXPECT_EQ(format_duration(Millis::max()), "106751991167d7h12m55.807s");
  EXPECT_EQ(format_duration(Millis::min()), "-106751991167d7h12m55.808s");
}

RC_GTEST_PROP(Duration, what_is_written_is_read_back, ()) {
  // Small and large ones alike.
  const Millis duration{*evenly<int64_t>(0, kMax) >> *evenly(0, 63)};
  const Result<Millis> again = parse_duration(format_duration(duration));
  RC_ASSERT(again.ok());
  RC_ASSERT(*again == duration);
}

RC_GTEST_PROP(Duration, a_sum_of_parts_is_their_sum, ()) {
  constexpr std::array<std::pair<const char*, int64_t>, 5> kUnits{
      {{"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1'000}, {"ms", 1}}};
  std::string text;
  int64_t expected = 0;
  const auto chosen = *evenly(1, 32);
  for (size_t i = 0; i < kUnits.size(); ++i) {
    if ((chosen & (1 << i)) == 0) continue;
    const auto count = *evenly<int64_t>(0, 1'000'000);
    text += std::to_string(count) + kUnits[i].first;
    expected += count * kUnits[i].second;
  }
  RC_ASSERT(ms(text) == expected);
}

/// Strings of the characters that durations are made of, so that many are nearly right.
rc::Gen<std::string> nearly_a_duration() {
  return rc::gen::container<std::string>(
      rc::gen::element('0', '1', '9', '.', 'm', 's', 'h', 'd', '-', 'e', ' '));
}

RC_GTEST_PROP(Duration, any_text_is_refused_or_means_one_thing, ()) {
  const std::string text = *nearly_a_duration();
  const Result<Millis> duration = parse_duration(text);
  if (!duration) {
    RC_ASSERT(duration.error().code == ErrorCode::kInvalid);
    RC_ASSERT(!duration.error().detail.empty());
    return;
  }
  RC_ASSERT(*duration >= Millis::zero());
  RC_ASSERT(ms(format_duration(*duration)) == duration->count());
  RC_ASSERT(ms("0" + text) == duration->count());
}

}  // namespace
}  // namespace delayq
