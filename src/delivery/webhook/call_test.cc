#include "delivery/webhook/call.h"

#include <gtest/gtest.h>

namespace delayq::webhook {
namespace {

TEST(HeaderLines, AreKeptInTheirOrder) {
  HeaderLines headers;
  headers.add("a", "1");
  headers.add("empty", "");
  headers.add("aa", "2: 3");
  EXPECT_EQ(headers.lines(), std::string("a: 1\0aa: 2: 3\0", 14));
  EXPECT_EQ(headers.find("a"), "1");
  EXPECT_EQ(headers.find("aa"), "2: 3");
  EXPECT_EQ(headers.find("empty"), std::nullopt);
  EXPECT_TRUE(headers.valid());
}

TEST(HeaderLines, NoticeALineInALine) {
  const std::pair<std::string, std::string> rows[] = {
      {"a", "1\r\nb: 2"}, {"a", "1\n"},  {"a", std::string("1\0b: 2", 6)},
      {"a\r\n", "1"},     {"a: b", "1"}, {"", "1"},
      {"a;", "1"},        {"a", "\x7f"},
  };
  for (const auto& [name, value] : rows) {
    HeaderLines headers;
    headers.add(name, value);
    EXPECT_FALSE(headers.valid()) << name << value;
    EXPECT_EQ(headers.lines(), "");
  }
}

TEST(CallError, HasANameEach) {
  EXPECT_EQ(name_of(CallError::kNone), "none");
  EXPECT_EQ(name_of(CallError::kTimeout), "timeout");
  EXPECT_EQ(name_of(CallError::kNoRoom), "no_room");
}

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
