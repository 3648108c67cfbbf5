#include <gmock/gmock.h>

#include "app/server.h"
#include "tests/support/memory_queue.h"

namespace delayq {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ConfiguredSchedulesTest : public testing::Test {
 protected:
  static Config::Schedule every(Millis interval) {
    Config::Schedule schedule;
    schedule.every = interval;
    schedule.topic = "t";
    return schedule;
  }
  std::vector<std::string> apply(const ConfiguredSchedules::Wanted& wanted) {
    told_.clear();
    configured_.apply(wanted);
    queue_.settle();
    EXPECT_TRUE(configured_.is_settled());
    return told_;
  }
  std::optional<ScheduleView> show(std::string_view name) {
    std::optional<ScheduleView> seen;
    queue_.queue.get_schedule(queue_.now, name, kAllTopics,
                              [&](Result<std::optional<ScheduleView>> found) { seen = std::move(*found); });
    queue_.settle();
    return seen;
  }
  void set_by_client(const ScheduleSpec& spec) {
    queue_.queue.set_schedule(queue_.now, spec, kAllTopics,
                              [](const Result<ScheduleReceipt>& receipt) { EXPECT_TRUE(receipt.ok()); });
    queue_.settle();
  }

  MemoryQueue queue_;
  std::vector<std::string> told_;
  ConfiguredSchedules configured_{
      queue_.queue, [this] { return queue_.now; },
      [this](bool is_bad, const std::string& what) { told_.push_back((is_bad ? "bad: " : "") + what); }};
};

TEST_F(ConfiguredSchedulesTest, SetsThemAndChangesThem) {
  EXPECT_THAT(apply({{"a", every(std::chrono::seconds{10})}, {"b", every(std::chrono::seconds{20})}}),
              IsEmpty());
  EXPECT_TRUE(show("a")->spec.from_configuration);
  const uint64_t revision = show("a")->storage->revision;
  queue_.pass(std::chrono::seconds{1});
  EXPECT_THAT(apply({{"a", every(std::chrono::seconds{10})}, {"b", every(std::chrono::seconds{30})}}),
              IsEmpty());
  EXPECT_EQ(show("a")->storage->revision, revision) << "it is as it was";
  EXPECT_EQ(show("b")->spec.every, std::chrono::seconds{30});
}

TEST_F(ConfiguredSchedulesTest, WhatTheFileNoLongerNamesIsToldOnceAndStays) {
  EXPECT_THAT(apply({{"a", every(std::chrono::seconds{10})}}), IsEmpty());
  set_by_client({.name = "b", .every = std::chrono::seconds{10}, .topic = "t"});
  EXPECT_THAT(apply({}), ElementsAre("schedule \"a\" is no longer in the configuration; it is left as it is: "
                                     "delayq schedule remove a"));
  EXPECT_THAT(apply({}), IsEmpty());
  EXPECT_TRUE(show("a"));
  EXPECT_THAT(apply({{"a", every(std::chrono::seconds{10})}}), IsEmpty());
  EXPECT_THAT(apply({}), ElementsAre(HasSubstr("no longer"))) << "it was there again meanwhile";
}

TEST_F(ConfiguredSchedulesTest, TheFileWinsOverAClient) {
  set_by_client({.name = "a", .every = std::chrono::seconds{50}, .topic = "u"});
  EXPECT_THAT(apply({{"a", every(std::chrono::seconds{10})}}), ElementsAre(HasSubstr("was set by a client")));
  EXPECT_EQ(show("a")->spec.every, std::chrono::seconds{10});
  EXPECT_THAT(apply({{"a", every(std::chrono::seconds{10})}}), IsEmpty());
}

TEST_F(ConfiguredSchedulesTest, WhatCannotBeSetIsToldAndTriedAgain) {
  Config::Schedule wrong = every(std::chrono::seconds{10});
  wrong.zone = "UTC";
  EXPECT_THAT(apply({{"a", wrong}, {"b", every(std::chrono::seconds{10})}}),
              ElementsAre(HasSubstr("bad: schedule \"a\" is not as configured")));
  EXPECT_FALSE(show("a"));
  EXPECT_TRUE(show("b")) << "the others are set";
  EXPECT_THAT(apply({{"a", every(std::chrono::seconds{10})}, {"b", every(std::chrono::seconds{10})}}),
              IsEmpty());
  EXPECT_TRUE(show("a"));
}

TEST_F(ConfiguredSchedulesTest, SchedulesThatMakeNoJobsAreTold) {
  const auto damage = [this](std::string_view name) {
    const TurnRequest request{
        .name = name, .revision = 1, .next = queue_.now, .definition = "no definition", .progress = "x"};
    queue_.engine.turn(queue_.now, {&request, 1}, [](const Result<std::vector<TurnAnswer>>&) {});
    queue_.settle();
  };
  damage("a");
  EXPECT_THAT(apply({}),
              ElementsAre("bad: schedule \"a\" makes no jobs: what is stored of this schedule cannot "
                          "be read: set it again or remove it"));
  damage("b");
  EXPECT_THAT(apply({}), ElementsAre(HasSubstr("2 schedules make no jobs; schedule \"a\" makes no jobs: ")));
}

TEST_F(ConfiguredSchedulesTest, ManyOthersAreLookedThrough) {
  ConfiguredSchedules::Wanted many;
  for (int i = 0; i < 1'200; ++i) many[std::to_string(i)] = every(std::chrono::hours{1});
  EXPECT_THAT(apply(many), IsEmpty());
  many.erase("999");
  EXPECT_THAT(apply(many), ElementsAre(HasSubstr("\"999\" is no longer")));
}

}  // namespace
}  // namespace delayq
