#include "cli/migration.h"

#include <gmock/gmock.h>

#include "tests/support/fake_place.h"

namespace delayq::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Moment kMigrationNow = from_unix_ms(1'800'000'000'000);

void fill(FakePlace& place) {
  for (int i = 0; i < 10; ++i) place.jobs[{"a", fmt::format("{}", i)}] = {i < 5 ? "delayed" : "ready", "a"};
  place.jobs[{"b", "done"}] = {"done", "d"};
  place.jobs[{"b", "dead"}] = {"dead", "e"};
  place.jobs[{"c", "one"}] = {"ready", "c"};
}

class Migrating : public testing::Test {
 protected:
  Migrating() { fill(source_); }

  /// What it says is not as it should be; or the error that ended it.
  std::vector<std::string> migrate(bool removes) {
    const auto before = count_topics(target_.place().ask);
    Migration migration(source_.place(), target_.place(), removes, {});
    const Status status = migration.run();
    lines_ = migration.lines();
    ledgers_ = migration.topics();
    if (!status) return {status.error().detail};
    const auto after = count_topics(target_.place().ask);
    const auto left = count_topics(source_.place().ask);
    return migration.differences(*before, *left, *after, kMigrationNow);
  }

  FakePlace source_{"source"};
  FakePlace target_{"target"};
  ImportCounts lines_;
  std::map<std::string, TopicLedger> ledgers_;
};

TEST_F(Migrating, ACopyLeavesTheSourceAndIsExact) {
  const size_t jobs = source_.jobs.size();
  EXPECT_THAT(migrate(false), IsEmpty());
  EXPECT_EQ(target_.jobs.size(), jobs);
  EXPECT_EQ(source_.jobs.size(), jobs);
  EXPECT_EQ(lines_.of("created"), jobs);
  EXPECT_EQ(ledgers_["b"].created, (TopicLedger::ByKind{0, 1, 1}));
  EXPECT_THAT(migrate(false), IsEmpty()) << "again";
  EXPECT_EQ(lines_.of("kept"), jobs);
}

TEST_F(Migrating, AMoveEmptiesTheSource) {
  const size_t jobs = source_.jobs.size();
  EXPECT_THAT(migrate(true), IsEmpty());
  EXPECT_EQ(target_.jobs.size(), jobs);
  EXPECT_THAT(source_.jobs, IsEmpty());
}

TEST_F(Migrating, WhatTheTargetHadIsNotCountedTwice) {
  target_.jobs[{"a", "own"}] = {"delayed", "x"};
  target_.jobs[{"z", "own"}] = {"dead", "x"};
  EXPECT_THAT(migrate(false), IsEmpty());
}

TEST_F(Migrating, AnIdOfAnotherJobIsToldAndStays) {
  target_.jobs[{"a", "3"}] = {"delayed", "another body"};
  EXPECT_THAT(migrate(true),
              ElementsAre(HasSubstr("topic a: 1 have ids that are other jobs'"), HasSubstr("1 are left")));
  EXPECT_EQ(source_.jobs.size(), 1);
  EXPECT_TRUE(source_.jobs.contains({"a", "3"}));
  EXPECT_EQ((target_.jobs[{"a", "3"}].body), "another body");
}

TEST_F(Migrating, WhatIsNotStoredIsToldAndStays) {
  target_.refuses = "c";
  EXPECT_THAT(migrate(true), ElementsAre(HasSubstr("topic c: 1 were not stored"), HasSubstr("1 are left")));
  EXPECT_TRUE(source_.jobs.contains({"c", "one"}));
  EXPECT_EQ(lines_.failed(), 1);
}

TEST_F(Migrating, ARunningJobIsCopiedAndNotMoved) {
  source_.jobs[{"c", "one"}].state = "reserved";
  EXPECT_THAT(migrate(true), ElementsAre(HasSubstr("topic c: 1 are with consumers of the source")));
  EXPECT_FALSE(target_.jobs.contains({"c", "one"}));
  EXPECT_THAT(migrate(false), IsEmpty());
  EXPECT_EQ((target_.jobs[{"c", "one"}].state), "delayed");
}

TEST_F(Migrating, AJobThatIsTakenMeanwhileIsTold) {
  target_.before = [this](const Words& command) {
    if (command[0] == "IMPORT") source_.jobs.erase({"a", "0"});
  };
  EXPECT_THAT(migrate(false), ElementsAre(HasSubstr("topic a: 1 waiting jobs went on in the source")));
}

TEST_F(Migrating, AJobThatComesMeanwhileIsTold) {
  target_.before = [this](const Words& command) {
    if (command[0] == "IMPORT") source_.jobs[{"0", "late"}] = {"delayed", "x"};
  };
  EXPECT_THAT(migrate(false), ElementsAre(HasSubstr("topic 0: 1 waiting jobs came into the source")));
}

TEST_F(Migrating, ATargetThatIsUsedIsTold) {
  target_.before = [this](const Words& command) {
    if (command[0] == "TOPICS") target_.jobs.erase({"a", "1"});
  };
  EXPECT_THAT(migrate(false),
              ElementsAre(HasSubstr("topic a: the target has 9 waiting jobs and should have 10")));
}

TEST_F(Migrating, ADirectoryIsEmptiedInOneStepAndNotWhenSomethingIsWrong) {
  FakePlace directory("./data", true);
  fill(directory);
  source_.jobs.clear();
  Migration whole(directory.place(), target_.place(), true, {});
  directory.before = [](const Words& command) { EXPECT_NE(command[0], "CANCEL"); };
  EXPECT_TRUE(whole.run().ok());
  EXPECT_THAT(directory.jobs, IsEmpty());
  directory.before = {};
  fill(directory);
  target_.jobs.clear();
  target_.jobs[{"a", "3"}] = {"delayed", "another body"};
  Migration partly(directory.place(), target_.place(), true, {});
  EXPECT_TRUE(partly.run().ok());
  EXPECT_EQ(directory.jobs.size(), 1);
}

/// Ends at every command of either side, carried out or not, and is run again.
TEST_F(Migrating, ItCanBeEndedAnywhereAndRunAgain) {
  FakePlace wanted("wanted");
  fill(wanted);
  for (const bool removes : {false, true}) {
    for (const bool is_source : {false, true}) {
      for (const bool is_carried_out : {false, true}) {
        for (uint64_t at = 1; at < 100; ++at) {
          SCOPED_TRACE(testing::Message() << removes << is_source << is_carried_out << " at " << at);
          source_.jobs = wanted.jobs;
          target_.jobs.clear();
          source_.asked = target_.asked = 0;
          FakePlace& victim = is_source ? source_ : target_;
          // The first question, how many there are, is outside.
          victim.dies_at = at + (is_source ? 0 : 1);
          victim.dies_after = is_carried_out;
          Migration first(source_.place(), target_.place(), removes, {});
          const bool is_over = first.run().ok();
          victim.dies_at = 0;
          ASSERT_THAT(migrate(removes), IsEmpty());
          ASSERT_EQ(target_.jobs.size(), wanted.jobs.size());
          ASSERT_EQ(source_.jobs.size(), removes ? 0 : wanted.jobs.size());
          if (is_over) break;
        }
      }
    }
  }
}

// ---- schedules

class MigratingSchedules : public Migrating {
 protected:
  /// A schedule that goes on in the target makes these jobs before the jobs there are counted.
  void make_meanwhile(int count) {
    target_.before = [this, count, looks = 0](const Words& command) mutable {
      if (command[0] != "TOPICS" || ++looks != 2) return;
      for (int i = 0; i < count; ++i) target_.jobs[{"a", fmt::format("nightly@{}", i)}] = {"ready", "x"};
      target_.schedules["nightly"].made += static_cast<uint64_t>(count);
    };
  }
};

TEST_F(MigratingSchedules, JobsThatTheyMakeInTheTargetMeanwhileAreNoDifference) {
  source_.schedules["nightly"] = {"a", "0 2 * * *", "x", 7};
  make_meanwhile(2);
  EXPECT_THAT(migrate(true), IsEmpty());
  EXPECT_EQ(target_.schedules["nightly"].made, 9U);
}

TEST_F(MigratingSchedules, AlsoThoseOfSchedulesThatWereThere) {
  target_.schedules["nightly"] = {"a", "0 2 * * *", "x", 7};
  make_meanwhile(2);
  EXPECT_THAT(migrate(true), IsEmpty());
}

TEST_F(MigratingSchedules, JobsThatAnotherProgramPutsThereAreTold) {
  source_.schedules["nightly"] = {"a", "0 2 * * *", "x", 7};
  target_.before = [this, looks = 0](const Words& command) mutable {
    if (command[0] != "TOPICS" || ++looks != 2) return;
    target_.jobs[{"a", "another"}] = {"ready", "x"};
    target_.jobs[{"a", "nightly@1"}] = {"ready", "x"};
    ++target_.schedules["nightly"].made;
  };
  EXPECT_THAT(migrate(true), ElementsAre(HasSubstr("the target has 12 waiting jobs and should have 10")));
}

TEST_F(MigratingSchedules, JobsThatTheyReplaceMeanwhileAreNoDifference) {
  for (const auto* overlap : {"replace", "allow"}) {
    target_.jobs.clear();
    fill(source_);
    target_.schedules["nightly"] = {"a", "0 2 * * *", "x", 7, false, overlap};
    target_.jobs[{"a", "nightly@0"}] = {"ready", "x"};
    target_.before = [this, looks = 0](const Words& command) mutable {
      if (command[0] != "TOPICS" || ++looks != 2) return;
      target_.jobs.erase({"a", "nightly@0"});
      target_.schedules["nightly"].made += 1;  // and its job is taken already
    };
    EXPECT_EQ(migrate(true).empty(), overlap == std::string_view("replace")) << overlap;
  }
}

TEST_F(Migrating, ACopyHasTheSchedulesToo) {
  source_.schedules["nightly"] = {"a", "0 2 * * *", "x", 7};
  const auto had = source_.schedules;
  EXPECT_THAT(migrate(false), IsEmpty());
  EXPECT_EQ(source_.schedules, had) << "it goes on in the source";
  EXPECT_EQ(target_.schedules, had);
  EXPECT_THAT(migrate(false), IsEmpty()) << "again";
}

TEST_F(Migrating, AMoveEndsAScheduleInTheSourceBeforeItGoesOnInTheTarget) {
  for (int i = 0; i < 8; ++i) source_.schedules[fmt::format("s{}", i)] = {"a", "0 2 * * *", "x", 1};
  target_.before = [this](const Words& command) {
    if (command[0] != "IMPORT") return;
    for (size_t i = 2; i < command.size(); ++i) {
      const auto line = read_exported(command[i]);
      if (!line->schedule.empty()) {
        EXPECT_TRUE(source_.schedules.at(line->schedule).moving);
      }
    }
  };
  // The last moment at which the source makes a job.
  source_.before = [this](const Words& command) {
    if (command[0] != "IMPORT") return;
    for (auto& each : source_.schedules) each.second.made = 5;
  };
  EXPECT_THAT(migrate(true), IsEmpty());
  EXPECT_THAT(source_.schedules, IsEmpty());
  ASSERT_EQ(target_.schedules.size(), 8);
  for (const auto& [name, each] : target_.schedules) {
    EXPECT_FALSE(each.moving);
    EXPECT_EQ(each.made, 5) << "the progress that it had at the end";
  }
}

TEST_F(Migrating, AScheduleThatTheTargetDoesNotTakeGoesOnInTheSource) {
  source_.schedules["nightly"] = {"a", "0 2 * * *", "x"};
  source_.schedules["weekly"] = {"a", "0 2 * * 1", "c"};
  target_.schedules["nightly"] = {"a", "0 3 * * *", "x"};
  target_.refuses = "c";
  source_.jobs.erase({"c", "one"});
  EXPECT_THAT(migrate(true), ElementsAre(HasSubstr("schedules: 1 were not stored"),
                                         HasSubstr("schedules: 1 have names that are other schedules'")));
  ASSERT_EQ(source_.schedules.size(), 2);
  EXPECT_FALSE(source_.schedules["nightly"].moving);
  EXPECT_FALSE(source_.schedules["weekly"].moving);
  EXPECT_EQ(target_.schedules["nightly"].cron, "0 3 * * *");
}

TEST_F(Migrating, SchedulesThatAreSetMeanwhileAreTold) {
  int number = 0;
  source_.before = [&](const Words& command) {
    if (command[0] == "EXPORT" && number < 100)
      source_.schedules[fmt::format("a{}", number++)] = {"a", "0 2 * * *", "x"};
  };
  source_.page_jobs = 1'000;
  EXPECT_THAT(migrate(true), testing::Contains(HasSubstr("were set in the source meanwhile")));
  source_.before = {};
  EXPECT_THAT(migrate(true), IsEmpty());
  EXPECT_THAT(source_.schedules, IsEmpty());
}

/// Ends at every command of either side, carried out or not, and is run again.
TEST_F(Migrating, AMoveOfSchedulesCanBeEndedAnywhereAndRunAgain) {
  std::map<std::string, FakePlace::Schedule> wanted;
  for (int i = 0; i < 4; ++i) wanted[fmt::format("s{}", i)] = {"a", "0 2 * * *", "x", 3};
  for (const bool is_source : {false, true}) {
    for (const bool is_carried_out : {false, true}) {
      for (uint64_t at = 1; at < 100; ++at) {
        SCOPED_TRACE(testing::Message() << is_source << is_carried_out << " at " << at);
        source_.schedules = wanted;
        target_.schedules.clear();
        target_.jobs.clear();
        fill(source_);
        source_.asked = target_.asked = 0;
        FakePlace& victim = is_source ? source_ : target_;
        victim.dies_at = at;
        victim.dies_after = is_carried_out;
        Migration first(source_.place(), target_.place(), true, {});
        const bool is_over = first.run().ok();
        victim.dies_at = 0;
        ASSERT_THAT(migrate(true), IsEmpty());
        ASSERT_EQ(target_.schedules, wanted);
        ASSERT_THAT(source_.schedules, IsEmpty());
        if (is_over) break;
      }
    }
  }
}

TEST(ExportedLine, SchedulesAreKnown) {
  const auto line = read_exported(
      R"({"schedule":"n","topic":"t","cron":"@daily","body":1,"progress":{"made":1,"moving":true}})");
  ASSERT_TRUE(line.ok());
  EXPECT_EQ(line->schedule, "n");
  EXPECT_EQ(line->topic, "t");
  EXPECT_EQ(line->body, "1");
  EXPECT_EQ(line->rule, "cron @daily UTC");
  EXPECT_TRUE(line->is_moving);
  EXPECT_TRUE(read_exported(R"({"schedule":"n","damaged":"x"})")->topic.empty());
  EXPECT_EQ(read_exported(R"({"schedule":7})")->schedule, "7");
  EXPECT_FALSE(read_exported(R"({"schedule":""})").ok());
}

TEST(ExportedLine, OnlyLinesOfAnExportAreRead) {
  const auto text = read_exported(R"({"topic":"t","id":"1","state":"delayed","body_text":"x\n"})");
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(text->body, "x\n");
  EXPECT_EQ(read_exported(R"({"topic":"t","id":"1","state":"dead","body_base64":"/wA="})")->body,
            std::string_view("\xff\0", 2));
  EXPECT_EQ(read_exported(R"({"topic":"t","id":"1","state":"ready","body":{ "a" : 1 }})")->body,
            R"({ "a" : 1 })");
  EXPECT_TRUE(read_exported(R"({"topic":"t","settings":{}})")->id.empty());
  for (const char* line : {"", "[]", "{}", R"({"topic":"t"})", R"({"topic":"t","id":"1"})",
                           R"({"topic":"t","id":"1","state":"?"})",
                           R"({"topic":"t","id":"1","state":"done","body_base64":"*"})"})
    EXPECT_EQ(read_exported(line).error().code, ErrorCode::kCorrupt) << line;
}

}  // namespace
}  // namespace delayq::cli
