#include "json/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "json/writer.h"

namespace delayq::json {
namespace {

using testing::HasSubstr;

TEST(JsonReader, a_value_is_a_slice_of_its_text) {
  for (const std::string_view text :
       {"null", "true", "false", "0", "-0.5e+10", "12345678901234567890123", "\"\"", "\"a\\u00e9\\n\"", "[]",
        "[1, [2]]", "{}", R"({"a": {"b": [null]}, "c": "d"})", "\"\xf0\x9f\x98\x80\""}) {
    const Result<Slice> value = parse(" \n" + std::string(text) + "\t ");
    ASSERT_TRUE(value.ok()) << text << ": " << value.error().detail;
  }
  const std::string text = " 1.10 ";
  EXPECT_EQ(parse(text)->text, "1.10") << "as it was written";
}

TEST(JsonReader, what_is_not_json_is_refused_with_its_place) {
  for (const std::string_view text : {"",
                                      " ",
                                      "nul",
                                      "tru",
                                      "01",
                                      "1.",
                                      ".5",
                                      "-",
                                      "+1",
                                      "1e",
                                      "0x1",
                                      "NaN",
                                      "\"",
                                      "\"\\x\"",
                                      "\"\\u12\"",
                                      "\"\x01\"",
                                      "\"\xff\"",
                                      "[",
                                      "[1",
                                      "[1,]",
                                      "[,1]",
                                      "{",
                                      "{a:1}",
                                      "{\"a\"}",
                                      "{\"a\":}",
                                      "{\"a\":1,}",
                                      "{\"a\":1 \"b\":2}",
                                      "1 2",
                                      "'a'",
                                      "[1}",
                                      "\"\xed\xa0\x80\""}) {
    const Result<Slice> value = parse(text);
    ASSERT_FALSE(value.ok()) << text;
    EXPECT_THAT(value.error().detail, HasSubstr("at byte")) << text;
  }
}

TEST(JsonReader, depth_has_a_bound) {
  const auto nested = [](int depth) {
    return std::string(static_cast<size_t>(depth), '[') + std::string(static_cast<size_t>(depth), ']');
  };
  EXPECT_TRUE(parse(nested(kMaxDepth)).ok());
  EXPECT_FALSE(parse(nested(kMaxDepth + 1)).ok());
  EXPECT_FALSE(parse(std::string(1'000'000, '[')).ok());
}

TEST(JsonReader, members_and_items_keep_their_order) {
  const std::string text = R"( { "a" : 1 , "b\n":[ "x" , {} , true ],"a":null } )";
  const std::vector<Member> members = members_of(*parse(text));
  ASSERT_EQ(members.size(), 3U);
  EXPECT_EQ(members[0].name, "a");
  EXPECT_EQ(members[1].name, "b\n");
  EXPECT_EQ(members[2].value.type, Type::kNull);
  const std::vector<Slice> items = items_of(members[1].value);
  ASSERT_EQ(items.size(), 3U);
  EXPECT_EQ(*text_of(items[0]), "x");
  EXPECT_EQ(items[1].text, "{}");
  EXPECT_TRUE(items[2].is_true());
  EXPECT_TRUE(members_of(*parse("{ }")).empty());
  EXPECT_TRUE(items_of(*parse("[ ]")).empty());
}

TEST(JsonReader, strings_are_read_as_utf8) {
  EXPECT_EQ(*text_of(*parse(R"("\"\\\/\b\f\n\r\t")")), "\"\\/\b\f\n\r\t");
  EXPECT_EQ(*text_of(*parse(R"("\u0041\u00e9\u20ac\ud83d\ude00")")), "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
  for (const char* half : {R"("\ud83d")", R"("\ud83dx")", R"("\ud83d\u0041")", R"("\ude00")"}) {
    EXPECT_FALSE(text_of(*parse(half)).ok()) << half;
  }
}

TEST(JsonReader, whole_numbers) {
  EXPECT_EQ(*whole_number_of(*parse("18446744073709551615")), UINT64_MAX);
  for (const char* other : {"-1", "1.5", "1e-3", "18446744073709551616", "\"1\""}) {
    EXPECT_FALSE(whole_number_of(*parse(other)).ok()) << other;
  }
}

TEST(JsonReader, values_one_after_another) {
  std::string_view text = "{\"a\":1}\n[2]\n\n3 ";
  EXPECT_EQ(take_value(text)->text, "{\"a\":1}");
  EXPECT_EQ(take_value(text)->text, "[2]");
  EXPECT_EQ(take_value(text)->text, "3");
  EXPECT_TRUE(text.empty());
}

TEST(JsonWriter, commas_and_brackets) {
  std::string out;
  Writer json(out);
  json.begin_object().key("a").begin_array().number(uint64_t{1}).text("x\"\x01").null().end_array();
  json.key("b")
      .boolean(true)
      .key("c")
      .raw("{}")
      .key("d")
      .number(0.5)
      .bytes("e", "\xff\xfe")
      .bytes("f", "ok")
      .end_object();
  EXPECT_EQ(out, R"({"a":[1,"x\"\u0001",null],"b":true,"c":{},"d":0.5,"e_base64":"//4=","f":"ok"})");
  EXPECT_TRUE(parse(out).ok());
}

TEST(JsonWriter, objects) {
  EXPECT_EQ(Object().finish(), "{}");
  EXPECT_EQ(Object().text("a", "x\r\n").number("b", -1).boolean("c", true).text("d", "\xff").finish(),
            R"({"a":"x\r\n","b":-1,"c":true,"d_base64":"/w=="})");
}

RC_GTEST_PROP(JsonWriter, any_text_survives, (std::string text)) {
  for (char& c : text) c = static_cast<char>(c & 0x7f);  // any ASCII
  text += "\xc3\xa9";
  std::string out;
  append_string(out, text);
  const Result<Slice> value = parse(out);
  RC_ASSERT(value.ok());
  RC_ASSERT(*text_of(*value) == text);
}

TEST(JsonReader, numbers_have_plain_digits_however_they_are_written) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"0", "0"},
      {"-0", "0"},
      {"-0.0", "0"},
      {"5.0", "5"},
      {"1e3", "1000"},
      {"1.50e3", "1500"},
      {"1.5E+0", "1.5"},
      {"1e-5", "0.00001"},
      {"120e-1", "12"},
      {"-2.5", "-2.5"},
      {"0.10", "0.1"},
      {"0e5", "0"},
      {"12345678901234567890", "12345678901234567890"},
  };
  for (const auto& [text, digits] : cases) {
    EXPECT_EQ(plain_digits_of({text, Type::kNumber}), digits) << text;
  }
  EXPECT_EQ(plain_digits_of({"1e401", Type::kNumber}), std::nullopt);
  EXPECT_EQ(plain_digits_of({"1e99999999999", Type::kNumber}), std::nullopt);
  EXPECT_EQ(*whole_number_of({"1.2e1", Type::kNumber}), 12u);
  for (const std::string_view text : {"1.5", "-1", "1e-1", "1e20", "1e999", "18446744073709551616"})
    EXPECT_FALSE(whole_number_of({text, Type::kNumber}).ok()) << text;
}

}  // namespace
}  // namespace delayq::json
