#include <gtest/gtest.h>

#include "resp/value.h"

namespace delayq::resp {
namespace {

constexpr std::string_view kInfo =
    "redis_version:7.0.15\r\n# "
    "Memory\r\nused_memory_peak:9\r\nused_memory:123\r\nmaxmemory_policy:noeviction\r\n"
    "empty:\r\nuptime:5";

TEST(InfoLine, IsFoundAtTheStartInTheMiddleAndAtTheEnd) {
  EXPECT_EQ(info_line(kInfo, "redis_version"), "7.0.15");
  EXPECT_EQ(info_line(kInfo, "maxmemory_policy"), "noeviction");
  EXPECT_EQ(info_line(kInfo, "uptime"), "5");
}

TEST(InfoLine, HasThatNameAndNoOtherThatBeginsOrEndsWithIt) {
  EXPECT_EQ(info_line(kInfo, "used_memory"), "123");
  EXPECT_EQ(info_line(kInfo, "memory"), "");
  EXPECT_EQ(info_line(kInfo, "maxmemory"), "");
  EXPECT_EQ(info_line(kInfo, "version"), "");
}

TEST(InfoLine, MayHaveNoValue) {
  EXPECT_EQ(info_line(kInfo, "empty"), "");
  EXPECT_EQ(info_line(kInfo, "up"), "");
  EXPECT_EQ(info_line("uptime", "uptime"), "");
  EXPECT_EQ(info_line("", "uptime"), "");
}

}  // namespace
}  // namespace delayq::resp
