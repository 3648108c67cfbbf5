#include <initializer_list>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/text.h"

namespace delayq {
namespace {

using CodePoints = std::initializer_list<char32_t>;

/// The code points of `text`, or nothing when it is not well-formed.
std::optional<std::u32string> decode(std::string_view text) {
  std::u32string out;
  while (!text.empty()) {
    const std::string_view before = text;
    const std::optional<char32_t> code_point = take_code_point(text);
    if (!code_point) {
      EXPECT_EQ(text, before) << "a refusal takes nothing";
      return std::nullopt;
    }
    EXPECT_LT(text.size(), before.size());
    out += *code_point;
  }
  return out;
}

std::string encode(char32_t c) {
  const auto byte = [](char32_t value) { return static_cast<char>(static_cast<unsigned char>(value)); };
  if (c < 0x80) return {byte(c)};
  if (c < 0x800) return {byte(0xc0 | (c >> 6)), byte(0x80 | (c & 0x3f))};
  if (c < 0x10000) return {byte(0xe0 | (c >> 12)), byte(0x80 | ((c >> 6) & 0x3f)), byte(0x80 | (c & 0x3f))};
  return {byte(0xf0 | (c >> 18)), byte(0x80 | ((c >> 12) & 0x3f)), byte(0x80 | ((c >> 6) & 0x3f)),
          byte(0x80 | (c & 0x3f))};
}

TEST(Utf8, decodes_one_to_four_bytes) {
  EXPECT_EQ(decode("a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"), U"a\u00e9\u20ac\U0001f600");
  EXPECT_EQ(decode(""), U"");
  EXPECT_EQ(decode(std::string_view("\0", 1)), std::u32string(1, U'\0'));
}

TEST(Utf8, every_code_point_comes_back_except_surrogates) {
  for (char32_t c = 0; c <= 0x10ffff; ++c) {
    const std::string bytes = encode(c);
    std::string_view text = bytes;
    const std::optional<char32_t> code_point = take_code_point(text);
    const bool surrogate = c >= 0xd800 && c <= 0xdfff;
    ASSERT_EQ(code_point.has_value(), !surrogate) << std::hex << static_cast<uint32_t>(c);
    if (code_point) {
      ASSERT_EQ(*code_point, c);
      ASSERT_TRUE(text.empty());
    }
  }
}

TEST(Utf8, refuses_what_is_not_well_formed) {
  const std::vector<std::string> broken{
      "\x80",              // a continuation byte alone
      "\xbf",              //
      "\xc3",              // cut short
      "\xe2\x82",          //
      "\xf0\x9f\x98",      //
      "\xc3(",             // not a continuation
      "\xe2\x82(",         //
      "\xc0\x80",          // overlong U+0000
      "\xc1\xbf",          // overlong U+007F
      "\xe0\x9f\xbf",      // overlong U+07FF
      "\xf0\x8f\xbf\xbf",  // overlong U+FFFF
      "\xed\xa0\x80",      // the first surrogate
      "\xed\xbf\xbf",      // the last one
      "\xf4\x90\x80\x80",  // U+110000
      "\xf5\x80\x80\x80",  //
      "\xf8\x88\x80\x80\x80",
      "\xfe",
      "\xff",
  };
  for (const std::string& text : broken)
    EXPECT_EQ(decode(text), std::nullopt) << testing::PrintToString(text);
}

TEST(Utf8, does_not_look_beyond_the_end) {
  const std::string_view whole = "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80";
  for (size_t cut : {1U, 3U, 4U, 6U, 7U, 8U}) EXPECT_EQ(decode(whole.substr(0, cut)), std::nullopt) << cut;
}

TEST(Utf8, knows_controls_spaces_and_private_use) {
  for (char32_t c : CodePoints{0x00, 0x1f, 0x7f, 0x80, 0x9f}) EXPECT_TRUE(is_control(c));
  for (char32_t c : CodePoints{0x20, 0x7e, 0xa0}) EXPECT_FALSE(is_control(c));
  for (char32_t c :
       CodePoints{0x20, 0xa0, 0x1680, 0x2000, 0x200a, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000, 0xfeff}) {
    EXPECT_TRUE(is_space(c));
  }
  for (char32_t c : CodePoints{0x21, 0xa1, 0x1fff, 0x200b, 0x3001}) EXPECT_FALSE(is_space(c));
  for (char32_t c : CodePoints{0xe000, 0xf8ff, 0xf0000, 0x10ffff, 0xfdd0, 0xfdef, 0xfffe, 0xffff, 0x1fffe}) {
    EXPECT_TRUE(is_private_or_noncharacter(c));
  }
  for (char32_t c : CodePoints{0x41, 0xd7ff, 0xf900, 0xfdcf, 0xfdf0, 0xfffd, 0x1fffd, 0xeffff - 2}) {
    EXPECT_FALSE(is_private_or_noncharacter(c));
  }
}

RC_GTEST_PROP(Utf8, what_decodes_encodes_to_the_same_bytes, (const std::string& bytes)) {
  const std::optional<std::u32string> points = decode(bytes);
  if (!points) return;
  std::string again;
  for (char32_t c : *points) again += encode(c);
  RC_ASSERT(again == bytes);
}

}  // namespace
}  // namespace delayq
