#include <gtest/gtest.h>

#include "core/text.h"

namespace delayq {
namespace {

TEST(Ascii, lowers_capitals_and_nothing_else) {
  EXPECT_EQ(lowered("Text/Plain; Ä@[`{"), "text/plain; Ä@[`{");
  EXPECT_EQ(lowered("AZaz09"), "azaz09");
}

TEST(Ascii, trims_what_it_is_told_to) {
  EXPECT_EQ(trimmed(" \ta b\t "), "a b");
  EXPECT_EQ(trimmed("a\r\n"), "a\r\n");
  EXPECT_EQ(trimmed("a\r\n", " \t\r\n"), "a");
  EXPECT_EQ(trimmed(" \t"), "");
  EXPECT_EQ(trimmed(""), "");
}

}  // namespace
}  // namespace delayq
