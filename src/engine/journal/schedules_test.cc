// Schedules on disk: a turn is one step whatever the power does, its records are compacted like others, and
// what is removed stays removed.
#include <map>
#include <string>

#include <gmock/gmock.h>

#include "core/moment.h"
#include "core/random.h"
#include "engine/journal/check.h"
#include "tests/support/journal_on_disk.h"
#include "tests/support/segment_builder.h"

namespace delayq::journal {
namespace {

using support::at;
using support::JobSpec;
using support::JournalOnDisk;
using support::kStart;
using support::SegmentBuilder;
using testing::HasSubstr;
using Turned = Result<std::vector<TurnAnswer>>;

JobSpec occurrence(std::string_view schedule, Moment moment, std::string topic = "t") {
  return JobSpec(std::move(topic), occurrence_id(schedule, moment)).due_at(moment).or_keep();
}

TurnRequest defining(std::string_view name, std::string_view definition, uint64_t revision = 1) {
  TurnRequest request;
  request.name = name;
  request.revision = revision;
  request.next = at(1'000);
  request.definition = definition;
  request.progress = "none";
  return request;
}

TurnRequest turning(std::string_view name, uint64_t expected, Moment next, std::string_view progress) {
  TurnRequest request;
  request.name = name;
  request.expected = expected;
  request.revision = expected + 1;
  request.next = next;
  request.progress = progress;
  return request;
}

TurnRequest removing(std::string_view name, uint64_t expected) {
  TurnRequest request;
  request.name = name;
  request.expected = expected;
  return request;
}

class JournalSchedulesTest : public testing::Test {
 protected:
  JournalSchedulesTest() { on_disk.options.segment_bytes = 4096; }

  Turned try_turn(const TurnRequest& request) {
    return on_disk.driver->ask<std::vector<TurnAnswer>>("turn", [&](auto reply) {
      on_disk.engine->turn(on_disk.driver->now(), std::vector{request}, std::move(reply));
    });
  }
  /// Jobs that come and go, and leave something in each segment, until those of before are compacted.
  void churn(int rounds) {
    for (int i = 0; i < rounds; ++i) {
      const JobSpec spec = JobSpec("churn", "x").due_at(at(1'000'000)).with_body(std::string(900, 'x'));
      on_disk.driver->push(spec);
      on_disk.driver->cancel("churn", "x");
      on_disk.driver->push(
          JobSpec("fill", std::to_string(fill_++)).due_at(at(9'000'000)).with_body(std::string(800, 'f')));
      on_disk.settle();
    }
  }
  bool is_there(uint32_t segment) { return on_disk.disk.open(segment_name(segment)).ok(); }

  JournalOnDisk on_disk;
  int fill_ = 0;
};

// ---- one step on disk

/// A directory in which a turn is the last commit: the turn can be cut anywhere.
class TornTurnTest : public JournalSchedulesTest {
 protected:
  /// A schedule whose job of before waits, and whose next one was made and is kept as done; then `turn`.
  void write(const TurnRequest& turn) {
    on_disk.options.segment_bytes = 64 << 10;
    support::EngineDriver& driver = on_disk.open();
    driver.turn(defining("s", "rule"));
    const JobSpec done = occurrence("s", at(2'000));
    driver.push(JobSpec(done).due_at(kStart));
    driver.ack(driver.take_one("t"));
    TurnRequest first = turning("s", 1, at(2'000), "one");
    const JobSpec job = occurrence("s", at(1'000));
    first.job = job.view();
    driver.turn(first);
    before_ = *driver.get_schedule("s");
    on_disk.settle();
    const uint64_t start = on_disk.engine->usage().written_bytes;
    driver.turn(turn);
    on_disk.settle();
    after_ = driver.get_schedule("s");
    written_ = on_disk.engine->usage().written_bytes - start;
    on_disk.die(false);
    for (const std::string& name : support::file_names(on_disk.disk))
      files_[name] = support::file_bytes(on_disk.disk, name);
    std::vector<std::byte>& bytes = files_.at(kLog);
    SegmentScanner scanner(bytes, find_segments(on_disk.disk)->front().header, false);
    while (scanner.next()) continue;
    bytes.resize(scanner.offset());
  }

  enum class Tear { kCut, kZeros, kSector };
  /// The directory with only the first `kept` bytes of the turn's commit. kSector: one byte is wrong there,
  /// and all behind it arrived. Returns whether that is all of it.
  bool tear(JournalOnDisk& torn, size_t kept, Tear how) {
    for (const auto& [name, bytes] : files_) {
      if (name != kLog) SegmentBuilder::save_file(torn.disk, name, bytes);
    }
    const std::vector<std::byte>& whole = files_.at(kLog);
    const size_t place = whole.size() - written_ + kept;
    std::vector<std::byte> log = whole;
    if (how == Tear::kSector) {
      log[place] ^= std::byte{0x5a};
    } else {
      log.resize(place);
    }
    if (how == Tear::kZeros) log.resize(whole.size() + 1000);
    SegmentBuilder::save_file(torn.disk, kLog, log);
    return log.size() >= whole.size() && std::equal(whole.begin(), whole.end(), log.begin());
  }

  /// True: the turn happened. Neither may be there in part.
  bool has_happened(JournalOnDisk& torn) {
    support::EngineDriver& driver = *torn.driver;
    const auto schedule = driver.get_schedule("s");
    const bool has_moved = schedule == after_;
    EXPECT_TRUE(has_moved || schedule == before_);
    const auto job = driver.get("t", occurrence_id("s", at(2'000)));
    EXPECT_TRUE(job);
    EXPECT_EQ(job && job->state == JobState::kDelayed, has_moved) << "job and schedule disagree";
    EXPECT_EQ(driver.get("t", occurrence_id("s", at(1'000))).has_value(), !has_moved) << "the job before";
    return has_moved;
  }

  void expect_all_or_nothing() {
    ASSERT_GT(written_, 100U);
    for (const Tear how : {Tear::kCut, Tear::kZeros, Tear::kSector}) {
      for (size_t kept = 0; kept <= written_; kept += how == Tear::kCut ? 1 : 3) {
        if (how == Tear::kSector && kept == written_) break;
        JournalOnDisk torn;
        const bool is_whole = tear(torn, kept, how);
        const Result<CheckReport> report = check(torn.disk);
        ASSERT_TRUE(report.ok() && report->is_clean()) << kept;
        torn.open();
        const bool happened = has_happened(torn);
        EXPECT_EQ(happened, is_whole) << kept;
        EXPECT_EQ(report->schedules, torn.engine->usage().schedules);
        for (int again = 0; again < 2; ++again) {
          torn.restart(kStart);
          EXPECT_EQ(has_happened(torn), happened) << kept << " after restart " << again;
        }
        if (HasFailure()) FAIL() << "with " << kept << " of " << written_ << " bytes";
      }
    }
  }

  static constexpr const char* kLog = "segment-0000000001";
  std::map<std::string, std::vector<std::byte>> files_;
  std::optional<StoredSchedule> before_;
  std::optional<StoredSchedule> after_;
  size_t written_ = 0;
};

TEST_F(TornTurnTest, with_a_job_that_replaces_two_others) {
  TurnRequest turn = turning("s", 2, at(3'000), "two");
  const JobSpec job = occurrence("s", at(2'000)).with_body("body");
  const std::string previous = occurrence_id("s", at(1'000));
  turn.job = job.view();
  turn.previous = JobRef{"t", previous};
  turn.overlap = Overlap::kReplace;
  write(turn);
  expect_all_or_nothing();
}

TEST_F(TornTurnTest, with_a_new_definition_and_a_job) {
  TurnRequest turn = turning("s", 2, at(3'000), "two");
  const JobSpec job = occurrence("s", at(2'000)).with_body("body");
  const std::string previous = occurrence_id("s", at(1'000));
  turn.definition = "another rule";
  turn.job = job.view();
  turn.previous = JobRef{"t", previous};
  turn.overlap = Overlap::kReplace;
  write(turn);
  expect_all_or_nothing();
}

TEST_F(TornTurnTest, that_removes_the_schedule_and_pushes_a_last_job) {
  TurnRequest turn = removing("s", 2);
  const JobSpec job = occurrence("s", at(2'000)).with_body("body");
  const std::string previous = occurrence_id("s", at(1'000));
  turn.job = job.view();
  turn.previous = JobRef{"t", previous};
  turn.overlap = Overlap::kReplace;
  write(turn);
  expect_all_or_nothing();
}

// ---- compaction

TEST_F(JournalSchedulesTest, ten_thousand_turns_leave_a_bounded_directory) {
  support::EngineDriver& driver = on_disk.open();
  const std::string rule(700, 'r');
  constexpr uint64_t kSchedules = 5;
  for (uint64_t i = 0; i < kSchedules; ++i) driver.turn(defining("s" + std::to_string(i), rule));
  uint64_t revision = 1;
  uint64_t most_disk = 0;
  for (; revision <= 2'000; ++revision) {
    const Moment moment = at(static_cast<int64_t>(revision));
    for (uint64_t i = 0; i < kSchedules; ++i) {
      const std::string name = "s" + std::to_string(i);
      const std::string progress = "progress " + std::to_string(revision);
      TurnRequest turn = turning(name, revision, moment, progress);
      const JobSpec job = occurrence(name, moment);
      turn.job = job.view();
      driver.turn(turn);
      driver.cancel("t", job.id);
    }
    on_disk.settle();
    most_disk = std::max(most_disk, on_disk.engine->usage().disk_bytes);
  }
  const uint64_t live = on_disk.engine->usage().live_bytes;
  EXPECT_LT(live, kSchedules * (rule.size() + 200));
  EXPECT_LT(most_disk, 2 * live + 6 * 4096);
  on_disk.restart(kStart);
  EXPECT_EQ(on_disk.engine->usage().live_bytes, live) << "what is needed is counted otherwise after a start";
  for (uint64_t i = 0; i < kSchedules; ++i) {
    const std::string name = "s" + std::to_string(i);
    const StoredSchedule expected{name, revision, at(2'000), rule, "progress 2000"};
    EXPECT_EQ(driver.get_schedule(name), expected);
  }
}

TEST_F(JournalSchedulesTest, a_turn_that_changes_no_definition_does_not_write_it_again) {
  support::EngineDriver& driver = on_disk.open();
  const std::string rule(1'000, 'r');
  driver.turn(defining("s", rule));
  on_disk.settle();
  const uint64_t before = on_disk.engine->usage().written_bytes;
  TurnRequest turn = turning("s", 1, at(2'000), "some thirty bytes of progress..");
  turn.definition = rule;  // the same
  driver.turn(turn);
  on_disk.settle();
  EXPECT_LT(on_disk.engine->usage().written_bytes - before, 110U) << "with the mark of its commit";
}

TEST_F(JournalSchedulesTest, a_removed_one_stays_removed_while_its_segment_is_needed) {
  support::EngineDriver& driver = on_disk.open();
  driver.turn(defining("s", "rule"));
  for (int i = 0; i < 25; ++i)
    driver.push(JobSpec("keep", std::to_string(i)).due_at(at(9'000'000)).with_body(std::string(50, 'b')));
  on_disk.settle();
  TurnRequest again = turning("s", 1, at(2'000), "p");
  churn(4);
  again.definition = "another rule";
  driver.turn(again);
  churn(4);
  driver.turn(removing("s", 2));
  for (int round = 0; round < 4; ++round) {
    churn(30);
    ASSERT_TRUE(is_there(1)) << "the test keeps nothing from going";
    ASSERT_FALSE(is_there(3)) << "nothing was compacted";
    on_disk.restart(kStart);
    EXPECT_EQ(driver.get_schedule("s"), std::nullopt) << round;
  }
}

TEST_F(JournalSchedulesTest, what_is_written_of_removed_ones_does_not_pile_up) {
  support::EngineDriver& driver = on_disk.open();
  driver.turn(defining("stays", std::string(3'000, 'r')));  // its segment is never worth a compaction
  for (int i = 0; i < 3'000; ++i) {
    const std::string name = "s" + std::to_string(i);
    driver.turn(defining(name, "rule"));
    driver.turn(removing(name, 1));
    if (i % 10 == 0) on_disk.settle();
  }
  on_disk.settle();
  EXPECT_LT(on_disk.engine->usage().disk_bytes, 12 * 4096U);
  on_disk.restart(kStart);
  EXPECT_EQ(on_disk.engine->usage().schedules, 1U);
}

/// As a crash leaves it that came after a definition was copied, and before the old segment was removed.
TEST_F(JournalSchedulesTest, a_removal_that_names_a_lost_copy_counts) {
  for (const bool has_copy : {false, true}) {
    JournalOnDisk crashed;
    crashed.options.segment_bytes = 4096;
    SegmentBuilder first(1);
    first.schedule("s", "rule", 7);
    for (int i = 0; i < 60; ++i)
      first.job(JobSpec("keep", std::to_string(i)).due_at(at(9'000'000)).with_body(std::string(100, 'b')));
    for (int i = 0; i < 40; ++i) first.outcome(1, std::string(200, 'z'));
    first.save(crashed.disk);
    SegmentBuilder copy(2, first.next_lsn(), 7);
    copy.schedule("s", "rule", 7, 2);
    if (has_copy) copy.save(crashed.disk);
    SegmentBuilder log(3, copy.next_lsn());
    log.gone(2, 2);
    for (int i = 0; i < 150; ++i) log.outcome(1, std::string(200, 'z'));
    log.save(crashed.disk);
    support::EngineDriver& driver = crashed.open();
    for (int i = 0; i < 5; ++i) {
      EXPECT_EQ(driver.get_schedule("s"), std::nullopt) << i;
      for (int j = 0; j < 20; ++j) {
        driver.push(
            JobSpec("churn", "x").due_at(at(1'000'000)).with_body(std::string(900, 'x')).or_replace());
        crashed.settle();
      }
      crashed.restart(kStart);
    }
    EXPECT_FALSE(crashed.disk.open(segment_name(3)).ok()) << "the test did not compact what it is about";
  }
}

// ---- everything at once

/// What the engine must have, and random turns that change it.
class RandomTurns {
 public:
  explicit RandomTurns(uint64_t seed) : random_(seed), on_disk_(seed) {
    on_disk_.options.segment_bytes = 4096;
    on_disk_.open();
  }

  void run(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      take_step();
      if (random_.below(40) == 0) on_disk_.restart(now());
      if (random_.below(40) == 0) cut_power_in_a_turn();
      compare();
    }
  }

 private:
  struct Model {
    std::map<std::string, StoredSchedule> schedules;
    std::map<std::string, std::string> jobs;  ///< by id
  };

  Moment now() { return on_disk_.driver->now(); }

  /// A turn of one schedule, as a request (whose texts are members) and in the model.
  TurnRequest next_turn(Model& model) {
    name_ = std::string(1, static_cast<char>('a' + random_.below(4)));
    const auto known = model.schedules.find(name_);
    const bool exists = known != model.schedules.end();
    TurnRequest request;
    request.name = name_;
    request.expected = exists ? known->second.revision : 0;
    progress_ = "p" + std::to_string(++counter_);
    request.progress = progress_;
    if (exists && random_.below(12) == 0) {
      model.schedules.erase(known);
    } else {
      request.revision = counter_;
      request.next = at(1'000'000 + static_cast<int64_t>(random_.below(90)) * 86'400'000);
      if (!exists || random_.below(8) == 0) {
        definition_ = std::string(random_.below(600), 'd') + progress_;
        request.definition = definition_;
      }
      StoredSchedule& schedule = model.schedules[name_];
      schedule = {name_, request.revision, request.next,
                  request.definition ? definition_ : schedule.definition, progress_};
    }
    if (random_.below(3) != 0) add_job(request, model);
    return request;
  }

  void add_job(TurnRequest& request, Model& model) {
    job_ = occurrence(name_, at(static_cast<int64_t>(counter_) * 1'000)).due_at(at(9'000'000));
    job_->with_body(std::string(random_.below(300), 'b') + progress_);
    request.job = job_->view();
    if (const auto before = latest_.find(name_); before != latest_.end() && random_.below(2) == 0) {
      previous_ = before->second;
      request.previous = JobRef{"t", previous_};
      request.overlap = Overlap::kReplace;
      model.jobs.erase(previous_);
    }
    model.jobs[job_->id] = job_->body;
  }

  void take_step() {
    if (random_.below(4) == 0 && !model_.jobs.empty()) {
      on_disk_.driver->cancel("t", model_.jobs.begin()->first);
      model_.jobs.erase(model_.jobs.begin());
      return;
    }
    const TurnRequest request = next_turn(model_);
    EXPECT_EQ(on_disk_.driver->turn(request).outcome, TurnOutcome::kTurned);
    if (request.job) latest_[name_] = job_->id;
    if (random_.below(3) == 0) on_disk_.settle();
  }

  /// The turn counts completely or not at all.
  void cut_power_in_a_turn() {
    Model after = model_;
    const TurnRequest request = next_turn(after);
    on_disk_.engine->turn(now(), std::vector{request}, [](auto&&) {});
    on_disk_.engine->poll(*on_disk_.driver);
    on_disk_.disk.stop_after(random_.below(3));
    on_disk_.io.step(Lane::kWrite);
    on_disk_.die(true);
    on_disk_.open();
    const auto found = on_disk_.driver->get_schedule(name_);
    const auto expected = after.schedules.find(name_);
    const bool happened = expected == after.schedules.end() ? !found.has_value() : found == expected->second;
    if (!happened) return;
    model_ = after;
    if (request.job) latest_[name_] = job_->id;
  }

  void compare() {
    std::map<std::string, StoredSchedule> schedules;
    for (const StoredSchedule& schedule : on_disk_.driver->list_schedules({}).schedules)
      schedules[schedule.name] = schedule;
    EXPECT_TRUE(schedules == model_.schedules);
    std::map<std::string, std::string> jobs;
    for (const std::string& id : on_disk_.driver->ids_in("t", JobState::kDelayed))
      jobs[id] = on_disk_.driver->get("t", id)->body;
    EXPECT_EQ(jobs, model_.jobs);
  }

  Random random_;
  JournalOnDisk on_disk_;
  Model model_;
  std::map<std::string, std::string> latest_;  ///< by schedule, the id of its latest job
  uint64_t counter_ = 0;
  std::string name_;
  std::string progress_;
  std::string definition_;
  std::string previous_;
  std::optional<JobSpec> job_;
};

TEST(RandomTurnsTest, are_what_they_should_be_through_restarts_and_power_cuts) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomTurns(seed).run(150);
    if (HasFailure()) return;
  }
}

// ---- a disk that fails, and a damaged one

TEST_F(JournalSchedulesTest, without_room_a_turn_makes_no_job_and_what_removes_works) {
  on_disk.options.disk_reserve = 64 << 10;
  on_disk.disk.set_capacity(200 << 10);
  support::EngineDriver& driver = on_disk.open();
  driver.turn(defining("s", "rule"));
  on_disk.disk.set_capacity(on_disk.disk.used_bytes() + (32 << 10));
  driver.store_settings("x", "y");  // a commit tells how much room there is
  on_disk.settle();
  TurnRequest turn = turning("s", 1, at(2'000), "one");
  const JobSpec job = occurrence("s", at(1'000));
  turn.job = job.view();
  const Turned refused = try_turn(turn);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kDiskFull);
  EXPECT_FALSE(try_turn(defining("new", "rule")).ok());
  EXPECT_EQ(driver.get_schedule("s")->revision, 1U);
  EXPECT_EQ(on_disk.engine->usage().jobs, 0U);
  EXPECT_TRUE(try_turn(turning("s", 1, kNever, "paused")).ok());
  EXPECT_TRUE(try_turn(removing("s", 2)).ok());
  on_disk.restart(kStart);
  EXPECT_EQ(on_disk.engine->usage().schedules, 0U);
}

TEST_F(JournalSchedulesTest, after_a_failed_sync_nothing_is_turned_and_reads_go_on) {
  support::EngineDriver& driver = on_disk.open();
  driver.turn(defining("s", "rule"));
  on_disk.disk.fail(support::DiskFault::kSync, 0);
  EXPECT_FALSE(try_turn(turning("s", 1, at(2'000), "one")).ok());
  const Turned refused = try_turn(removing("s", 2));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(driver.get_schedule("s"));
  EXPECT_EQ(driver.list_schedules({}).schedules.size(), 1U);
}

class DamagedScheduleTest : public JournalSchedulesTest {
 protected:
  DamagedScheduleTest() {
    support::EngineDriver& driver = on_disk.open();
    driver.turn(defining("s", "rule"));
    TurnRequest turn = turning("s", 1, at(2'000), "progress");
    const JobSpec job = occurrence("s", at(1'000)).with_body("the body");
    turn.job = job.view();
    driver.turn(turn);
    driver.turn(defining("other", "rule"));
    on_disk.close();
  }
  void flip_at(std::string_view text) {
    const std::string name = segment_name(1);
    const std::vector<std::byte> bytes = support::file_bytes(on_disk.disk, name);
    const size_t place = as_text(bytes).rfind(text);
    ASSERT_NE(place, std::string_view::npos);
    const std::array wrong{bytes[place] ^ std::byte{1}};
    ASSERT_TRUE((*on_disk.disk.open(name))->write(place, wrong).ok());
  }
};

TEST_F(DamagedScheduleTest, the_check_counts_schedules) {
  const Result<CheckReport> report = check(on_disk.disk);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->schedules, 2U);
  EXPECT_THAT(to_string(*report),
              HasSubstr("1 delayed, 0 reserved, 0 done, 0 dead in 1 topics; 2 schedules"));
}

/// What can be read of a group is kept.
TEST_F(DamagedScheduleTest, is_found_and_given_up_without_the_job) {
  flip_at("progress");
  EXPECT_FALSE(on_disk.try_open(kStart).ok());
  EXPECT_FALSE(check(on_disk.disk)->is_clean());
  ASSERT_TRUE(repair(on_disk.disk).ok());
  EXPECT_TRUE(check(on_disk.disk)->is_clean());
  support::EngineDriver& driver = on_disk.open();
  EXPECT_EQ(driver.get_schedule("s")->revision, 1U);
  EXPECT_TRUE(driver.get("t", occurrence_id("s", at(1'000))));
  EXPECT_TRUE(driver.get_schedule("other"));
}

TEST_F(DamagedScheduleTest, has_moved_on_when_only_its_job_is_damaged) {
  flip_at("the body");
  EXPECT_FALSE(on_disk.try_open(kStart).ok());
  ASSERT_TRUE(repair(on_disk.disk).ok());
  EXPECT_TRUE(check(on_disk.disk)->is_clean());
  support::EngineDriver& driver = on_disk.open();
  EXPECT_EQ(driver.get_schedule("s")->revision, 2U);
  EXPECT_EQ(driver.get("t", occurrence_id("s", at(1'000))), std::nullopt);
}

// ---- memory

TEST_F(JournalSchedulesTest, memory_is_bounded_and_counted) {
  support::EngineDriver& driver = on_disk.open();
  const uint64_t before = on_disk.engine->usage().memory_bytes;
  constexpr uint64_t kMany = 1'000;
  for (uint64_t i = 0; i < kMany; ++i)
    driver.turn(defining("schedule-" + std::to_string(1'000 + i), "0123456789"));
  const uint64_t texts = kMany * (13 + 10 + 4);
  const uint64_t each = (on_disk.engine->usage().memory_bytes - before - texts) / kMany;
  EXPECT_GE(each, 100U);
  EXPECT_LE(each, 400U);
  for (uint64_t i = 0; i < kMany; ++i) driver.turn(removing("schedule-" + std::to_string(1'000 + i), 1));
  EXPECT_LT(on_disk.engine->usage().memory_bytes, before + kMany * 40);
}

}  // namespace
}  // namespace delayq::journal
