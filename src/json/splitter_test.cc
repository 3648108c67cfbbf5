#include "json/splitter.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace delayq::json {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Cut {
  std::vector<std::string> values;
  std::string error;
};

/// Everything in `text`, which comes in pieces of `piece` bytes.
Cut cut(Splitter::Form form, std::string_view text, size_t piece, size_t value_bytes = 1000) {
  Splitter splitter(form, value_bytes);
  Cut result;
  while (!text.empty()) {
    // Each piece in memory of its own: what was seen before is gone.
    const std::string part(text.substr(0, piece));
    text.remove_prefix(part.size());
    std::string_view rest = part;
    for (;;) {
      const Splitter::Outcome outcome = splitter.next(rest);
      if (outcome == Splitter::Outcome::kMore) break;
      if (outcome == Splitter::Outcome::kBroken) {
        result.error = splitter.error();
        return result;
      }
      result.values.emplace_back(splitter.value());
    }
    EXPECT_TRUE(rest.empty());
  }
  const Splitter::Outcome last = splitter.finish();
  if (last == Splitter::Outcome::kValue) result.values.emplace_back(splitter.value());
  if (last == Splitter::Outcome::kBroken) result.error = splitter.error();
  return result;
}

constexpr auto kArray = Splitter::Form::kArray;
constexpr auto kSequence = Splitter::Form::kSequence;

TEST(Splitter, finds_the_items_of_an_array_however_it_is_cut) {
  constexpr std::string_view kText = R"( [ {"a": "]}\"\\"} ,[1,[2]], "x,y", 17 ,true,{"b":{}}] )";
  for (size_t piece = 1; piece <= kText.size(); ++piece) {
    const Cut result = cut(kArray, kText, piece);
    EXPECT_EQ(result.error, "") << piece;
    EXPECT_THAT(result.values,
                ElementsAre(R"({"a": "]}\"\\"})", "[1,[2]]", "\"x,y\"", "17", "true", R"({"b":{}})"))
        << piece;
  }
}

TEST(Splitter, finds_values_one_after_another_however_they_are_cut) {
  constexpr std::string_view kText = "{\"a\":1}\n\n{\"b\":\"\\n\"}{\"c\":[]}\r\n12 13";
  for (size_t piece = 1; piece <= kText.size(); ++piece) {
    const Cut result = cut(kSequence, kText, piece);
    EXPECT_EQ(result.error, "") << piece;
    EXPECT_THAT(result.values, ElementsAre("{\"a\":1}", "{\"b\":\"\\n\"}", "{\"c\":[]}", "12", "13"))
        << piece;
  }
}

TEST(Splitter, nothing_is_nothing) {
  EXPECT_THAT(cut(kArray, "[]", 1).values, IsEmpty());
  EXPECT_EQ(cut(kArray, " [ ] ", 1).error, "");
  EXPECT_THAT(cut(kSequence, " \n ", 1).values, IsEmpty());
  EXPECT_EQ(cut(kSequence, "", 1).error, "");
}

TEST(Splitter, says_what_is_wrong) {
  EXPECT_THAT(cut(kArray, "{}", 1).error, HasSubstr("expected an array"));
  EXPECT_THAT(cut(kArray, "[1 2]", 1).error, HasSubstr("comma"));
  EXPECT_THAT(cut(kArray, "[1,]", 1).error, HasSubstr("expected a value"));
  EXPECT_THAT(cut(kArray, "[,1]", 1).error, HasSubstr("expected a value"));
  EXPECT_THAT(cut(kArray, "[1]2", 1).error, HasSubstr("behind the array"));
  EXPECT_THAT(cut(kArray, "[1", 1).error, HasSubstr("in the middle"));
  EXPECT_THAT(cut(kArray, "", 1).error, HasSubstr("in the middle"));
  EXPECT_THAT(cut(kSequence, "{\"a\":", 1).error, HasSubstr("in the middle"));
}

TEST(Splitter, a_value_has_a_bound_wherever_it_is_cut) {
  for (const size_t piece : {1, 5, 100}) {
    EXPECT_EQ(cut(kSequence, "{\"a\":\"1234\"}", piece, 12).error, "");
    EXPECT_THAT(cut(kSequence, "{\"a\":\"12345\"}", piece, 12).error, HasSubstr("more than 12 bytes"));
  }
}

}  // namespace
}  // namespace delayq::json
