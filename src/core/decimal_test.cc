#include <limits>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/duration.h"
#include "tests/support/evenly.h"

namespace delayq {
namespace {

std::optional<int64_t> scaled(std::string_view text, int64_t scale) {
  const std::optional<Decimal> number = take_decimal(text);
  EXPECT_TRUE(number && text.empty());
  return number ? scale_up(*number, scale) : std::nullopt;
}

TEST(Decimal, takes_the_number_and_leaves_the_rest) {
  std::string_view text = "12.50s";
  const std::optional<Decimal> number = take_decimal(text);
  ASSERT_TRUE(number);
  EXPECT_EQ(number->whole, "12");
  EXPECT_EQ(number->fraction, "50");
  EXPECT_EQ(text, "s");
}

TEST(Decimal, takes_nothing_from_what_is_not_a_number) {
  for (std::string_view wrong : {"", ".5", "5.", "5.x", "-1", "+1", " 1", "x", "\xd9\xa3"}) {
    std::string_view text = wrong;
    EXPECT_FALSE(take_decimal(text)) << wrong;
    EXPECT_EQ(text, wrong);
  }
}

TEST(Decimal, rounds_up_and_only_up) {
  EXPECT_EQ(scaled("1", 1000), 1000);
  EXPECT_EQ(scaled("1.5", 1000), 1500);
  EXPECT_EQ(scaled("1.0001", 1000), 1001);
  EXPECT_EQ(scaled("1.001", 1000), 1001);
  EXPECT_EQ(scaled("0.9999", 1000), 1000);
  EXPECT_EQ(scaled("0.0", 1000), 0);
  EXPECT_EQ(scaled("0." + std::string(500, '0') + "1", 1), 1);
  EXPECT_EQ(scaled("0." + std::string(500, '0'), 1), 0);
  EXPECT_EQ(scaled("0." + std::string(500, '9'), 1'000'000), 1'000'000);
  EXPECT_EQ(scaled("0.000000000011574074074074074074", 86'400'000), 1) << "just below a microsecond, in days";
}

TEST(Decimal, knows_where_the_range_ends) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(scaled("9223372036854775807", 1), kMax);
  EXPECT_EQ(scaled("00009223372036854775807.0", 1), kMax);
  EXPECT_EQ(scaled("9223372036854775806.5", 1), kMax);
  EXPECT_EQ(scaled("9223372036854775807.5", 1), std::nullopt);
  EXPECT_EQ(scaled("9223372036854775808", 1), std::nullopt);
  EXPECT_EQ(scaled("9223372036854775", 1000), 9'223'372'036'854'775'000);
  EXPECT_EQ(scaled("9223372036854775.807", 1000), kMax);
  EXPECT_EQ(scaled("9223372036854775.8071", 1000), std::nullopt);
  EXPECT_EQ(scaled("9223372036854776", 1000), std::nullopt);
  EXPECT_EQ(scaled(std::string(400, '9'), 1), std::nullopt);
}

RC_GTEST_PROP(Decimal, agrees_with_integers, ()) {
  const auto whole = *evenly<uint64_t>(0, 1'000'000'000);
  const auto digits = *evenly<size_t>(1, 10);
  uint64_t power = 1;
  for (size_t i = 0; i < digits; ++i) power *= 10;
  const auto fraction = *evenly<uint64_t>(0, power);
  const auto scale = *evenly<uint64_t>(1, 1'000'000'000);
  std::string fraction_text = std::to_string(fraction);
  fraction_text.insert(0, digits - fraction_text.size(), '0');
  // fraction * scale is below 10^18, so none of this overflows.
  const uint64_t expected = whole * scale + (fraction * scale + power - 1) / power;
  const std::string text = std::to_string(whole) + "." + fraction_text;
  RC_ASSERT(scaled(text, static_cast<int64_t>(scale)) == static_cast<int64_t>(expected));
}

}  // namespace
}  // namespace delayq
