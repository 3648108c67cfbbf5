#include "engine/redis/layout.h"

#include <gmock/gmock.h>

namespace delayq::redis {
namespace {

using testing::HasSubstr;

std::string problem_of(const Layout& layout, uint32_t configured) {
  const Result<uint32_t> shards = shards_of(layout, "p", configured);
  if (shards.ok()) return "none";
  EXPECT_EQ(shards.error().code, ErrorCode::kUnavailable);
  return shards.error().detail;
}

TEST(Layout, SaysHowManyShardsThereAre) {
  EXPECT_EQ(*shards_of({"1", "4"}, "p", 4), 4U);
  EXPECT_EQ(*shards_of({"1", "4"}, "p", 0), 4U) << "whatever there is";
}

TEST(Layout, IsRefusedWithWhatToDo) {
  EXPECT_THAT(problem_of({"1", "4"}, 2),
              HasSubstr("prefix \"p\" are in 4 shards, and redis.shards is 2: leave it out"));
  EXPECT_THAT(problem_of({"2", "4"}, 4), HasSubstr("have layout 2; this program knows layout 1"));
  EXPECT_THAT(problem_of({"", ""}, 4), HasSubstr("layout"));
  for (const char* odd : {"", "0", "x", "4x", "-1", "99999999999"})
    EXPECT_THAT(problem_of({"1", odd}, 0), HasSubstr("which is no number")) << odd;
}

TEST(Layout, IsReadFromTwoTextsOnly) {
  resp::Value answer{.type = resp::Value::Type::kArray, .text = {}, .items = {}};
  EXPECT_FALSE(read_layout(answer));
  answer.items.resize(2);
  answer.items[0].text = "1";
  answer.items[1].text = "16";
  const std::optional<Layout> layout = read_layout(answer);
  ASSERT_TRUE(layout);
  EXPECT_EQ(*shards_of(*layout, "p", 0), 16U);
}

}  // namespace
}  // namespace delayq::redis
