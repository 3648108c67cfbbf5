#include <gtest/gtest.h>

#include "core/encoding.h"

namespace delayq {
namespace {

TEST(Hex, knows_its_digits) {
  for (int value = 0; value < 16; ++value) {
    EXPECT_EQ(hex_digit("0123456789abcdef"[value]), value);
    EXPECT_EQ(hex_digit("0123456789ABCDEF"[value]), value);
  }
  for (const char c : {'/', ':', '@', 'G', '`', 'g', '\0', '\xff'}) EXPECT_EQ(hex_digit(c), -1);
}

TEST(Hex, writes_bytes) {
  EXPECT_EQ(to_hex(""), "");
  EXPECT_EQ(to_hex(std::string_view("\0\x0f\xf0\xff", 4)), "000ff0ff");
}

}  // namespace
}  // namespace delayq
