#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/http/dialect.h"

namespace delayq::http {
namespace {

using testing::ElementsAre;

TEST(Target, paths_and_queries_are_taken_apart) {
  const Result<Target> target = parse_target("/v1/topics/a%20b/jobs?limit=5&prefix=x%2Fy+z&flag&=&a=b=c");
  ASSERT_TRUE(target.ok());
  EXPECT_THAT(target->path, ElementsAre("v1", "topics", "a b", "jobs"));
  EXPECT_EQ(target->find("limit"), "5");
  EXPECT_EQ(target->find("prefix"), "x/y z");
  EXPECT_EQ(target->find("flag"), "");
  EXPECT_EQ(target->find("a"), "b=c");
  EXPECT_EQ(target->find("nothing"), std::nullopt);
  EXPECT_TRUE(parse_target("/")->path.empty());
  EXPECT_THAT(parse_target("/a/")->path, ElementsAre("a"));
  EXPECT_THAT(parse_target("/a%2Fb")->path, ElementsAre("a/b"));
}

TEST(Target, broken_ones_are_refused) {
  for (const char* text : {"", "a", "*", "/%", "/%4", "/%zz", "/?%", "/a?b=%f"}) {
    EXPECT_FALSE(parse_target(text).ok()) << text;
  }
}

}  // namespace
}  // namespace delayq::http
