#include "resp/value.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "resp/writer.h"

namespace delayq::resp {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using Type = Value::Type;

/// Reads `text`, which is one whole reply, after every beginning of it was found to be partial.
Value read_value_growing(const std::string& text) {
  for (size_t size = 0; size < text.size(); ++size) {
    const std::string part = text.substr(0, size);
    std::string_view rest = part;
    const auto reply = take_reply(rest);
    EXPECT_TRUE(reply.ok() && !*reply) << "the first " << size << " of " << text;
    EXPECT_EQ(rest.size(), size);
  }
  const std::string more = text + "+";
  std::string_view rest = more;
  const auto size = reply_size(rest);
  EXPECT_TRUE(size.ok() && *size == text.size());
  auto reply = take_reply(rest);
  EXPECT_EQ(rest, "+");
  if (reply.ok() && *reply) return std::move(**reply);
  ADD_FAILURE() << "not read: " << text;
  return {};
}

std::string value_error(std::string_view text, const ValueLimits& limits = {}) {
  const auto reply = take_reply(text, limits);
  EXPECT_FALSE(reply.ok()) << text;
  return reply.ok() ? "" : reply.error().detail;
}

TEST(Value, ReadsTheWordsOfResp2) {
  EXPECT_EQ(read_value_growing("+OK\r\n").text, "OK");
  EXPECT_EQ(read_value_growing("+OK\r\n").type, Type::kSimple);
  const Value error = read_value_growing("-INVALID no such topic\r\n");
  EXPECT_TRUE(error.is_error());
  EXPECT_EQ(error.text, "INVALID no such topic");
  EXPECT_EQ(read_value_growing(":-42\r\n").integer, -42);
  EXPECT_EQ(read_value_growing("$6\r\na\r\nb\r\n\r\n").text, "a\r\nb\r\n");
  EXPECT_EQ(read_value_growing("$0\r\n\r\n").type, Type::kBulk);
  EXPECT_EQ(read_value_growing("$-1\r\n").type, Type::kNull);
  EXPECT_EQ(read_value_growing("*-1\r\n").type, Type::kNull);
  EXPECT_THAT(read_value_growing("*0\r\n").items, IsEmpty());
  EXPECT_EQ(read_value_growing("+\r\n").text, "");
}

TEST(Value, ReadsTheWordsOfResp3) {
  EXPECT_EQ(read_value_growing("_\r\n").type, Type::kNull);
  EXPECT_EQ(read_value_growing("#t\r\n").integer, 1);
  EXPECT_EQ(read_value_growing("#f\r\n").integer, 0);
  EXPECT_EQ(read_value_growing(",-1.5e3\r\n").number, -1500);
  EXPECT_TRUE(std::isinf(read_value_growing(",inf\r\n").number));
  EXPECT_EQ(read_value_growing("(12345678901234567890123\r\n").text, "12345678901234567890123");
  EXPECT_EQ(read_value_growing("=8\r\ntxt:text\r\n").text, "text");
  EXPECT_TRUE(read_value_growing("!7\r\nERR bad\r\n").is_error());
  EXPECT_THAT(read_value_growing("~2\r\n:1\r\n:2\r\n").items, SizeIs(2));
  EXPECT_THAT(read_value_growing(">1\r\n+message\r\n").items, SizeIs(1));
}

TEST(Value, FindsKeysInMapsAndInArraysOfPairs) {
  for (const char* const text :
       {"%2\r\n+a\r\n:1\r\n$1\r\nb\r\n*1\r\n:2\r\n", "*4\r\n+a\r\n:1\r\n+b\r\n*1\r\n:2\r\n"}) {
    const Value map = read_value_growing(text);
    ASSERT_NE(map.find("a"), nullptr);
    EXPECT_EQ(map.find("a")->integer, 1);
    EXPECT_THAT(map.find("b")->items, SizeIs(1));
    EXPECT_EQ(map.find("c"), nullptr);
  }
}

TEST(Value, ReadsTheJobsOfAPop) {
  const Value jobs =
      read_value_growing("*2\r\n*3\r\n$1\r\nl\r\n*0\r\n:5\r\n*3\r\n$-1\r\n%1\r\n+k\r\n*1\r\n#t\r\n_\r\n");
  ASSERT_THAT(jobs.items, SizeIs(2));
  EXPECT_EQ(jobs.items[0].items[2].integer, 5);
  EXPECT_EQ(jobs.items[1].items[1].find("k")->items[0].integer, 1);
}

TEST(Value, RefusesWhatIsNone) {
  EXPECT_THAT(value_error("hello\r\n"), HasSubstr("unknown type"));
  EXPECT_THAT(value_error("\r\n"), HasSubstr("without a type"));
  EXPECT_THAT(value_error(":x\r\n"), HasSubstr("not a number"));
  EXPECT_THAT(value_error(":\r\n"), HasSubstr("not a number"));
  EXPECT_THAT(value_error(",x\r\n"), HasSubstr("not a number"));
  EXPECT_THAT(value_error("$x\r\n"), HasSubstr("not a number"));
  EXPECT_THAT(value_error("$-2\r\n"), HasSubstr("a length of -2"));
  EXPECT_THAT(value_error("$1\r\nabc"), HasSubstr("without its end"));
  EXPECT_THAT(value_error("$9223372036854775807\r\n"), HasSubstr("a length of"));
  EXPECT_THAT(value_error("%9223372036854775807\r\n"), HasSubstr("a length of"));
}

TEST(Value, KeepsItsLimits) {
  const ValueLimits limits{.depth = 2, .bulk_bytes = 3, .items = 2, .line_bytes = 5};
  EXPECT_THAT(value_error("*1\r\n*1\r\n*1\r\n:1\r\n", limits), HasSubstr("too deep"));
  EXPECT_THAT(value_error("$4\r\n", limits), HasSubstr("at most 3"));
  EXPECT_THAT(value_error("*3\r\n", limits), HasSubstr("at most 2"));
  EXPECT_THAT(value_error("+123456", limits), HasSubstr("too long"));
  std::string deep;
  for (int i = 0; i < 1'000; ++i) deep += "*1\r\n";
  EXPECT_THAT(value_error(deep, {.depth = 100'000}), HasSubstr("too deep"));
}

RC_GTEST_PROP(ValueProperty, WhatTheWriterWritesIsRead,
              (const std::vector<std::string>& texts, const std::vector<int64_t>& numbers, bool is_new)) {
  const Version version = is_new ? Version::k3 : Version::k2;
  std::string out;
  Writer writer(out, version);
  writer.array(texts.size() + numbers.size());
  for (const std::string& text : texts) writer.bulk(text);
  for (const int64_t number : numbers) writer.integer(number);
  std::string_view rest = out;
  const auto reply = take_reply(rest);
  RC_ASSERT(reply.ok() && reply->has_value() && rest.empty());
  const std::vector<Value>& items = (*reply)->items;
  RC_ASSERT(items.size() == texts.size() + numbers.size());
  for (size_t i = 0; i < texts.size(); ++i) RC_ASSERT(items[i].text == texts[i]);
  for (size_t i = 0; i < numbers.size(); ++i) RC_ASSERT(items[texts.size() + i].integer == numbers[i]);
}

}  // namespace
}  // namespace delayq::resp
