#include "delivery/webhook/retry_after.h"

#include <gtest/gtest.h>

namespace delayq::webhook {
namespace {

using std::chrono::seconds;

TEST(RetryAfter, IsANumberOfSeconds) {
  EXPECT_EQ(parse_retry_after("0"), (RetryAfter{seconds(0), {}}));
  EXPECT_EQ(parse_retry_after(" 120\t"), (RetryAfter{seconds(120), {}}));
  EXPECT_EQ(parse_retry_after("99999999999999999999999"), (RetryAfter{std::chrono::days(365), {}}));
}

TEST(RetryAfter, OrADate) {
  const Moment moment = from_unix_ms(784'111'777'000);
  for (const std::string_view text :
       {"Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"}) {
    EXPECT_EQ(parse_retry_after(text), (RetryAfter{{}, moment})) << text;
  }
}

TEST(RetryAfter, OrNothing) {
  for (const std::string_view text :
       {"", " ", "soon", "-1", "1.5", "10s", "2030-01-01", "Sun, 99 Nov 1994 08:49:37 GMT"}) {
    EXPECT_EQ(parse_retry_after(text), std::nullopt) << text;
  }
  EXPECT_EQ(parse_retry_after("Sun" + std::string(1000, ' ') + "06 Nov 1994 08:49:37 GMT"), std::nullopt);
}

TEST(RetryAfter, IsCountedFromNow) {
  const Moment now = from_unix_ms(1'000'000);
  EXPECT_EQ((RetryAfter{seconds(5), {}}).from(now), seconds(5));
  EXPECT_EQ((RetryAfter{{}, now + seconds(7)}).from(now), seconds(7));
  EXPECT_EQ((RetryAfter{{}, now - seconds(7)}).from(now), Millis::zero());
}

}  // namespace
}  // namespace delayq::webhook
