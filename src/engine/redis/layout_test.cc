#include <gmock/gmock.h>

#include "engine/redis/keys.h"

namespace delayq::redis {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string problem_of(const Layout& layout, uint32_t configured) {
  const Result<Shards> shards = shards_of(layout, "p", configured);
  if (shards.ok()) return "none";
  EXPECT_EQ(shards.error().code, ErrorCode::kUnavailable);
  return shards.error().detail;
}

TEST(Layout, SaysWhichShardsThereAre) {
  EXPECT_THAT(shards_of({"1", "4"}, "p", 4)->tags, ElementsAre("0", "1", "2", "3"));
  EXPECT_EQ(shards_of({"1", "4"}, "p", 0)->tags.size(), 4U) << "whatever there is";
  for (const char* version : {"2", "3"})
    EXPECT_THAT(shards_of({version, "3", "51 7 900"}, "p", 3)->tags, ElementsAre("51", "7", "900"));
}

TEST(Layout, SaysWhetherAScheduleAndItsJobsAreTogether) {
  const auto has_schedules = [](const Layout& layout) {
    return Keyspace("p", *shards_of(layout, "p", 0)).has_schedules();
  };
  EXPECT_TRUE(has_schedules({"1", "1"}));
  EXPECT_FALSE(has_schedules({"1", "3"}));
  EXPECT_FALSE(has_schedules({"2", "3", "51 7 900"}));
  EXPECT_TRUE(has_schedules({"3", "3", "51 7 900"}));
}

TEST(Layout, IsRefusedWithWhatToDo) {
  EXPECT_THAT(problem_of({"1", "4"}, 2),
              HasSubstr("prefix \"p\" are in 4 shards, and redis.shards is 2: leave it out"));
  EXPECT_THAT(problem_of({"2", "2", "7 9"}, 4), HasSubstr("are in 2 shards, and redis.shards is 4"));
  EXPECT_THAT(problem_of({"4", "4"}, 4), HasSubstr("have layout 4; this program knows layouts 1 to 3"));
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
  EXPECT_EQ(shards_of(*layout, "p", 0)->tags.size(), 16U);
}

}  // namespace
}  // namespace delayq::redis
