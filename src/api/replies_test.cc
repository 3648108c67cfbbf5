#include <gtest/gtest.h>

#include "api/conversation.h"

namespace delayq::api {
namespace {

auto text(std::string_view words) {
  return [words](std::string& out) { out += words; };
}

TEST(Replies, leave_in_the_order_of_their_places) {
  Replies replies;
  const auto a = replies.reserve();
  const auto b = replies.reserve();
  const auto c = replies.reserve();
  replies.fill(b, text("b"));
  EXPECT_EQ(replies.output(), "");
  replies.fill(a, text("a"));
  EXPECT_EQ(replies.output(), "ab");
  replies.fill(c, text("c"));
  EXPECT_EQ(replies.output(), "abc");
  EXPECT_EQ(replies.waiting(), 0U);
}

TEST(Replies, may_come_in_parts) {
  Replies replies;
  const auto a = replies.reserve();
  const auto b = replies.reserve();
  const auto c = replies.reserve();
  replies.extend(b, text("b1"));
  replies.fill(c, text("c"));
  replies.fill(a, text("a"));
  EXPECT_EQ(replies.output(), "ab1") << "what there is of the first leaves";
  replies.extend(b, text("b2"));
  EXPECT_EQ(replies.output(), "ab1b2");
  replies.fill(b, text("b3"));
  EXPECT_EQ(replies.output(), "ab1b2b3c");
}

TEST(Replies, are_counted_from_their_promise_until_they_are_taken_away) {
  Replies replies;
  const auto a = replies.reserve(100);
  const auto b = replies.reserve(1'000);
  EXPECT_EQ(replies.bytes(), 1'100U);
  replies.promise(a, 10);
  EXPECT_EQ(replies.bytes(), 1'010U);
  replies.fill(b, text("four"));
  EXPECT_EQ(replies.bytes(), 14U);
  replies.extend(a, text("xy"));
  EXPECT_EQ(replies.bytes(), 16U);
  replies.fill(a, text("z"));
  EXPECT_EQ(replies.bytes(), 7U);
  EXPECT_GE(replies.footprint(), 7U);
  replies.output().clear();
  EXPECT_EQ(replies.bytes(), 0U);
}

}  // namespace
}  // namespace delayq::api
