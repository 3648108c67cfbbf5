#include <gmock/gmock.h>

#include "engine/redis/keys.h"

namespace delayq::redis {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string problem_of(const Layout& layout, uint32_t configured) {
  const Result<Tags> tags = tags_of(layout, "p", configured);
  if (tags.ok()) return "none";
  EXPECT_EQ(tags.error().code, ErrorCode::kUnavailable);
  return tags.error().detail;
}

TEST(Layout, SaysWhichShardsThereAre) {
  EXPECT_THAT(*tags_of({"1", "4"}, "p", 4), ElementsAre("0", "1", "2", "3"));
  EXPECT_EQ(tags_of({"1", "4"}, "p", 0)->size(), 4U) << "whatever there is";
  EXPECT_THAT(*tags_of({"2", "3", "51 7 900"}, "p", 3), ElementsAre("51", "7", "900"));
}

TEST(Layout, IsRefusedWithWhatToDo) {
  EXPECT_THAT(problem_of({"1", "4"}, 2),
              HasSubstr("prefix \"p\" are in 4 shards, and redis.shards is 2: leave it out"));
  EXPECT_THAT(problem_of({"2", "2", "7 9"}, 4), HasSubstr("are in 2 shards, and redis.shards is 4"));
  EXPECT_THAT(problem_of({"3", "4"}, 4), HasSubstr("have layout 3; this program knows layouts 1 and 2"));
  EXPECT_THAT(problem_of({"", ""}, 4), HasSubstr("layout"));
  for (const char* odd : {"", "0", "x", "4x", "-1", "99999999999"})
    EXPECT_THAT(problem_of({"1", odd}, 0), HasSubstr("which is no number")) << odd;
  for (const char* odd : {"", "7", "7 9 11", "7  9", "7 }", " 7", "7 x"})
    EXPECT_THAT(problem_of({"2", "2", odd}, 0), HasSubstr("their tags are")) << odd;
}

TEST(Layout, IsReadFromThreeTextsOnly) {
  resp::Value answer{.type = resp::Value::Type::kArray, .text = {}, .items = {}};
  EXPECT_FALSE(read_layout(answer));
  answer.items.resize(3);
  answer.items[0].text = "1";
  answer.items[1].text = "16";
  const std::optional<Layout> layout = read_layout(answer);
  ASSERT_TRUE(layout);
  EXPECT_EQ(tags_of(*layout, "p", 0)->size(), 16U);
}

}  // namespace
}  // namespace delayq::redis
