#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/field.h"

namespace delayq {
namespace {

TEST(Size, is_read) {
  EXPECT_EQ(*parse_size("0"), 0u);
  EXPECT_EQ(*parse_size("4096"), 4'096u);
  EXPECT_EQ(*parse_size("7B"), 7u);
  EXPECT_EQ(*parse_size("64KB"), 64'000u);
  EXPECT_EQ(*parse_size("32MiB"), 32u << 20);
  EXPECT_EQ(*parse_size("2TiB"), uint64_t{2} << 40);
  EXPECT_EQ(*parse_size("18446744073709551615"), std::numeric_limits<uint64_t>::max());
}

TEST(Size, says_what_is_right) {
  for (const std::string text :
       {"", "MiB", "1.5MiB", "-1", "1 MiB", "1mib", "1K", "18446744073709551616", "16777216TiB"}) {
    const Result<uint64_t> size = parse_size(text);
    ASSERT_FALSE(size) << text;
    EXPECT_THAT(size.error().detail, testing::HasSubstr(" is not a size: "));
  }
}

TEST(Size, is_written_as_it_is_read) {
  EXPECT_EQ(format_size(0), "0B");
  EXPECT_EQ(format_size(1'000), "1000B");
  EXPECT_EQ(format_size(1'536), "1536B");
  EXPECT_EQ(format_size(uint64_t{32} << 20), "32MiB");
  for (const uint64_t bytes :
       {uint64_t{0}, uint64_t{1}, uint64_t{1'024}, uint64_t{3} << 40, std::numeric_limits<uint64_t>::max()}) {
    EXPECT_EQ(*parse_size(format_size(bytes)), bytes);
  }
}

}  // namespace
}  // namespace delayq
