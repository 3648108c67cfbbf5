// Schedules that leave a queue by export and arrive in another one by restore.
#include <gmock/gmock.h>

#include "engine/memory/memory_engine.h"
#include "queue/queue.h"
#include "tests/support/queue_driver.h"

namespace delayq {
namespace {

using std::chrono::seconds;
using support::at;
using testing::ElementsAre;
using testing::IsEmpty;

/// One place with schedules.
struct Spot {
  explicit Spot(const QueueConfig& config = {}) : driver(engine, config) {}

  Result<ScheduleReceipt> set(const ScheduleSpec& spec) {
    return driver.ask<ScheduleReceipt>("set_schedule", [&](auto reply) {
      driver.queue().set_schedule(driver.now(), spec, kAllTopics, std::move(reply));
    });
  }
  std::optional<ScheduleView> show(std::string_view name) {
    return driver.must<std::optional<ScheduleView>>("get_schedule", [&](auto reply) {
      driver.queue().get_schedule(driver.now(), name, kAllTopics, std::move(reply));
    });
  }
  Result<RestoreOutcome> restore(const ScheduleSpec& spec, const ScheduleProgress& progress,
                                 OnConflict on_conflict = OnConflict::kKeep) {
    return driver.ask<RestoreOutcome>("restore_schedule", [&](auto reply) {
      driver.queue().restore_schedule(driver.now(), spec, progress, on_conflict, std::move(reply));
    });
  }
  Result<RestoreOutcome> mark(std::string_view name, bool moving) {
    return driver.ask<RestoreOutcome>("mark_moving", [&](auto reply) {
      driver.queue().mark_moving(driver.now(), name, moving, std::move(reply));
    });
  }
  Result<ScheduleView> pause(std::string_view name, bool pauses) {
    return driver.ask<ScheduleView>("pause_schedule", [&](auto reply) {
      if (pauses) return driver.queue().pause_schedule(driver.now(), name, kAllTopics, std::move(reply));
      driver.queue().resume_schedule(driver.now(), name, kAllTopics, std::move(reply));
    });
  }
  /// What an export has: "schedule NAME" and "TOPIC/ID" and "TOPIC settings".
  std::vector<std::string> exported(ExportRequest request) {
    std::vector<std::string> seen;
    std::string cursor;
    for (int pages = 0; pages < 1'000; ++pages) {
      request.cursor = cursor;
      const auto page = driver.must<ExportPage>(
          "export", [&](auto reply) { driver.queue().export_page(driver.now(), request, std::move(reply)); });
      EXPECT_LE(page.items.size(), request.limit + 1);
      for (const ExportItem& item : page.items) {
        seen.push_back(item.schedule != nullptr ? "schedule " + std::string(item.schedule->spec.name)
                       : item.settings          ? std::string(item.job.topic) + " settings"
                                       : std::string(item.job.topic) + "/" + std::string(item.job.id));
      }
      cursor = page.cursor;
      if (cursor.empty()) return seen;
    }
    return {"it never ends"};
  }
  /// Lets time pass, and returns the occurrences of the jobs that are ready then, as milliseconds of the
  /// test.
  std::vector<int64_t> made(Moment until) {
    for (Moment now = driver.now(); now < until; now += seconds{1}) driver.run_to(now);
    driver.run_to(until);
    std::vector<int64_t> all;
    for (const auto& taken : driver.pop("t", 1'000)) {
      all.push_back((taken.job.due - support::kStart).count());
      EXPECT_TRUE(driver.ack(taken.lease).ok());
    }
    return all;
  }

  MemoryEngine engine;
  support::QueueDriver driver;
};

ScheduleSpec every_ten(std::string_view name = "s", std::string_view topic = "t") {
  return {.name = name, .every = seconds{10}, .topic = topic, .body = "body"};
}

TEST(MovingSchedules, AnExportHasThemBeforeTheTopics) {
  Spot spot;
  spot.driver.set(kDefaultsName, {.attempts = 3});
  spot.driver.push({.topic = "a", .id = "1", .body = "x"});
  spot.driver.push({.topic = "t", .id = "2", .body = "x"});
  for (const char* name : {"z", "b", "c"})
    ASSERT_TRUE(spot.set(every_ten(name, name[0] == 'c' ? "a" : "t")).ok());
  const auto everything = ElementsAre("* settings", "schedule b", "schedule c", "schedule z", "a/1", "t/2");
  for (const uint32_t limit : {1U, 2U, 3U, 4U, 1'000U})
    EXPECT_THAT(spot.exported({.limit = limit}), everything) << limit;
  for (const uint32_t limit : {1U, 2U, 1'000U})
    EXPECT_THAT(spot.exported({.limit = limit, .topic = "t"}), ElementsAre("schedule b", "schedule z", "t/2"))
        << "those that make jobs of the topic";
  EXPECT_THAT(spot.exported({.state = JobState::kReady}), ElementsAre("a/1", "t/2")) << "only jobs";
}

TEST(MovingSchedules, LargeOnesTakeSeveralPages) {
  Spot spot;
  const std::string body(300'000, 'x');
  std::vector<std::string> wanted;
  for (int i = 0; i < 9; ++i) {
    const std::string name = "s" + std::to_string(i);
    ScheduleSpec spec = every_ten(name);
    spec.body = body;
    ASSERT_TRUE(spot.set(spec).ok());
    wanted.push_back("schedule " + name);
  }
  EXPECT_EQ(spot.exported({}), wanted);
}

TEST(MovingSchedules, ACursorAmongSchedulesIsChecked) {
  Spot spot;
  const auto page = [&](std::string_view cursor) {
    return spot.driver.ask<ExportPage>("export", [&](auto reply) {
      spot.driver.queue().export_page(spot.driver.now(), {.cursor = cursor}, std::move(reply));
    });
  };
  EXPECT_TRUE(page("732e").ok()) << "s.";
  EXPECT_TRUE(page("732e61").ok()) << "s.a";
  EXPECT_EQ(page("732e2020").error().code, ErrorCode::kInvalid) << "not a name";
  EXPECT_EQ(page("73").error().code, ErrorCode::kInvalid);
}

TEST(MovingSchedules, ARestoredOneGoesOnWhereItWas) {
  Spot source;
  ASSERT_TRUE(source.set(every_ten()).ok());
  EXPECT_THAT(source.made(at(25'000)), ElementsAre(10'000, 20'000));
  const std::optional<ScheduleView> seen = source.show("s");
  Spot target;
  target.driver.go_to(at(26'000));
  EXPECT_EQ(*target.restore(seen->spec, seen->progress), RestoreOutcome::kCreated);
  EXPECT_THAT(target.made(at(45'000)), ElementsAre(30'000, 40'000))
      << "the same phase, none twice, none lost";
  EXPECT_EQ(target.show("s")->progress.made, 4U);
  EXPECT_EQ(target.show("s")->progress.created, seen->progress.created);
}

TEST(MovingSchedules, ConflictsAreThoseOfJobs) {
  Spot spot;
  ASSERT_TRUE(spot.set(every_ten()).ok());
  ScheduleSpec other = every_ten();
  other.body = "another";
  ScheduleProgress progress;
  progress.created = progress.decided = at(-1'000);
  EXPECT_EQ(*spot.restore(other, progress, OnConflict::kKeep), RestoreOutcome::kKept);
  EXPECT_EQ(spot.restore(other, progress, OnConflict::kReject).error().code, ErrorCode::kConflict);
  EXPECT_EQ(spot.show("s")->spec.body, "body");
  EXPECT_EQ(*spot.restore(other, progress, OnConflict::kReplace), RestoreOutcome::kReplaced);
  EXPECT_EQ(spot.show("s")->spec.body, "another");
  EXPECT_EQ(spot.show("s")->progress, progress);
}

TEST(MovingSchedules, TheSameOneIsNeverLeftBehind) {
  Spot spot;
  ASSERT_TRUE(spot.set(every_ten()).ok());
  ASSERT_TRUE(spot.pause("s", true).ok());
  ScheduleProgress further = spot.show("s")->progress;
  further.paused = false;
  further.decided = at(30'000);
  further.made = 3;
  EXPECT_EQ(*spot.restore(every_ten(), further), RestoreOutcome::kReplaced);
  EXPECT_EQ(spot.show("s")->progress.made, 3U);
  EXPECT_TRUE(spot.show("s")->progress.paused) << "that is a matter of this place";
  further.decided = at(20'000);
  further.made = 2;
  EXPECT_EQ(*spot.restore(every_ten(), further), RestoreOutcome::kKept) << "it is ahead";
  ASSERT_TRUE(spot.pause("s", false).ok());
  EXPECT_THAT(spot.made(at(45'000)), ElementsAre(40'000)) << "what was made elsewhere is not made again";
}

TEST(MovingSchedules, WhatIsMovingMakesNoJobsAndLosesNone) {
  Spot source;
  ASSERT_TRUE(source.set(every_ten()).ok());
  EXPECT_THAT(source.made(at(10'000)), ElementsAre(10'000));
  EXPECT_EQ(*source.mark("s", true), RestoreOutcome::kReplaced);
  EXPECT_EQ(*source.mark("s", true), RestoreOutcome::kKept);
  EXPECT_THAT(source.made(at(25'000)), IsEmpty());
  const std::optional<ScheduleView> seen = source.show("s");
  EXPECT_EQ(seen->state, ScheduleState::kPaused);
  EXPECT_FALSE(seen->progress.paused) << "nobody paused it";
  Spot target;
  target.driver.go_to(at(25'000));
  EXPECT_EQ(*target.restore(seen->spec, seen->progress), RestoreOutcome::kCreated);
  EXPECT_FALSE(target.show("s")->progress.moving);
  EXPECT_THAT(target.made(at(35'000)), ElementsAre(20'000, 30'000));
  EXPECT_EQ(source.mark("other", true).error().code, ErrorCode::kNotFound);
}

TEST(MovingSchedules, AMoveThatIsGivenUpEnds) {
  Spot spot;
  ASSERT_TRUE(spot.set(every_ten()).ok());
  ASSERT_TRUE(spot.mark("s", true).ok());
  ASSERT_TRUE(spot.mark("s", false).ok());
  EXPECT_THAT(spot.made(at(10'000)), ElementsAre(10'000));
  ASSERT_TRUE(spot.mark("s", true).ok());
  ASSERT_TRUE(spot.set(every_ten()).ok());
  EXPECT_TRUE(spot.show("s")->progress.moving) << "a client does not stop a move by accident";
  ASSERT_TRUE(spot.pause("s", false).ok());
  EXPECT_FALSE(spot.show("s")->progress.moving);
  EXPECT_THAT(spot.made(at(20'000)), ElementsAre(20'000));
}

TEST(MovingSchedules, AProgramThatOnlyCopiesMakesNoJobs) {
  QueueConfig config;
  config.makes_occurrences = false;
  Spot spot(config);
  ASSERT_TRUE(spot.set(every_ten()).ok());
  EXPECT_THAT(spot.made(at(60'000)), IsEmpty());
  EXPECT_EQ(spot.show("s")->progress.made, 0U);
}

TEST(MovingSchedules, WrongProgressIsRefused) {
  Spot spot;
  ScheduleProgress progress;
  progress.previous = at(1);
  EXPECT_EQ(spot.restore(every_ten(), progress).error().field, "previous_topic");
  progress.previous_topic = "no spaces";
  EXPECT_EQ(spot.restore(every_ten(), progress).error().field, "previous_topic");
  progress.previous_topic = "t";
  progress.decided = Moment{Millis{-1}};
  EXPECT_EQ(spot.restore(every_ten(), progress).error().field, "decided_until");
  progress.decided = kNever;
  EXPECT_EQ(spot.restore(every_ten(), progress).error().field, "decided_until");
  EXPECT_FALSE(spot.show("s"));
}

}  // namespace
}  // namespace delayq
