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

}  // namespace
}  // namespace delayq::webhook
