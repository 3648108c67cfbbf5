// What the engine does when the disk fails. docs/internals/journal-format.md says what a file promises; these
// tests check what a reply promises.
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/journal_on_disk.h"
#include "tests/support/segment_builder.h"

namespace delayq::journal {
namespace {

using support::at;
using support::DiskFault;
using support::JobSpec;
using support::kKeepNone;
using support::kStart;
using testing::HasSubstr;

template <class T>
std::optional<ErrorCode> code_of(const Result<T>& result) {
  return result.ok() ? std::nullopt : std::optional(result.error().code);
}

class FailuresTest : public testing::Test {
 protected:
  using Pushed = Result<std::vector<PushAnswer>>;

  /// Pushes without waiting; the reply is added to `answers`.
  void push_later(const JobSpec& spec) {
    const size_t number = answers.size();
    answers.emplace_back();
    on_disk.engine->push(on_disk.driver->now(), std::vector{spec.view()},
                         [this, number](Pushed answer) { answers[number] = std::move(answer); });
  }

  Pushed push(const JobSpec& spec) {
    return on_disk.driver->ask<std::vector<PushAnswer>>("push", [&](auto reply) {
      on_disk.engine->push(on_disk.driver->now(), std::vector{spec.view()}, std::move(reply));
    });
  }

  Result<std::vector<CancelOutcome>> cancel(std::string_view topic, std::string_view id) {
    return on_disk.driver->ask<std::vector<CancelOutcome>>("cancel", [&](auto reply) {
      on_disk.engine->cancel(on_disk.driver->now(), std::vector{JobRef{topic, id}}, std::move(reply));
    });
  }

  void poll() { on_disk.engine->poll(*on_disk.driver); }

  /// Counts the syncs of files from now on.
  void count_syncs() {
    on_disk.disk.set_trace(
        [this](const std::string& line) { syncs += line.starts_with("disk: sync segment"); });
  }

  support::JournalOnDisk on_disk;
  std::vector<std::optional<Pushed>> answers;
  int syncs = 0;
};

// ---- when replies are called

TEST_F(FailuresTest, a_push_is_answered_after_its_sync_and_not_before) {
  on_disk.open();
  push_later(JobSpec("mail", "a"));
  for (int i = 0; i < 10; ++i) poll();
  EXPECT_FALSE(answers[0]) << "nothing was written yet";
  count_syncs();
  ASSERT_TRUE(on_disk.io.step(Lane::kWrite));
  EXPECT_EQ(syncs, 1);
  poll();
  ASSERT_TRUE(answers[0]);
  EXPECT_TRUE(answers[0]->ok());
}

TEST_F(FailuresTest, what_queued_during_a_commit_shares_the_next_one) {
  on_disk.open();
  push_later(JobSpec("mail", "first"));
  poll();
  for (int i = 0; i < 50; ++i) push_later(JobSpec("mail", std::to_string(i)));
  count_syncs();
  on_disk.settle();
  EXPECT_EQ(syncs, 2);
  for (const auto& answer : answers) EXPECT_TRUE(answer && answer->ok());
}

TEST_F(FailuresTest, a_hand_over_does_not_wait_for_the_disk) {
  auto& driver = on_disk.open();
  driver.push(JobSpec("mail", "a").with_body("b"));
  bool taken = false;
  TakeRequest request;
  request.topic = "mail";
  request.lease_until = at(1000);
  on_disk.engine->take(driver.now(), request,
                       [&](Result<TakeAnswer> answer) { taken = answer.ok() && answer->jobs.size() == 1; });
  poll();
  EXPECT_TRUE(taken);
}

TEST_F(FailuresTest, a_body_that_is_not_in_memory_is_read_behind_the_engines_back) {
  auto& driver = on_disk.open();
  driver.push(JobSpec("mail", "a").with_body("from the disk"));
  on_disk.settle();
  on_disk.disk.set_cache_misses(256);
  std::string body;
  on_disk.engine->get(driver.now(), {"mail", "a"},
                      [&](Result<std::optional<FoundJob>> found) { body = (*found)->job.body; });
  for (int i = 0; i < 5; ++i) poll();
  EXPECT_EQ(body, "") << "nothing was read yet";
  EXPECT_EQ(on_disk.io.waiting(Lane::kRead), 1U);
  on_disk.io.step(Lane::kRead);
  poll();
  poll();
  EXPECT_EQ(body, "from the disk");
}

// ---- failed writes and syncs

class FailedCommitTest : public FailuresTest, public testing::WithParamInterface<DiskFault> {};

TEST_P(FailedCommitTest, nothing_is_promised_any_more_but_reads_go_on) {
  auto& driver = on_disk.open();
  driver.push(JobSpec("mail", "safe").with_body("safe"));
  driver.push(JobSpec("mail", "leased"));
  const support::Taken leased = driver.take_one("mail");
  on_disk.settle();
  on_disk.disk.fail(GetParam(), 0);
  push_later(JobSpec("mail", "a"));
  poll();
  push_later(JobSpec("mail", "b"));  // belongs to the next commit, which never happens
  on_disk.settle();
  ASSERT_EQ(on_disk.disk.faults_fired(), 1U);
  for (const auto& answer : answers) {
    ASSERT_TRUE(answer) << "an unanswered push";
    ASSERT_FALSE(answer->ok());
    EXPECT_EQ(answer->error().code, ErrorCode::kUnavailable);
    EXPECT_THAT(answer->error().detail, HasSubstr("restart"));
  }
  EXPECT_EQ(code_of(push(JobSpec("mail", "c"))), ErrorCode::kUnavailable);
  EXPECT_EQ(code_of(cancel("mail", "safe")), ErrorCode::kUnavailable);
  const auto acked = driver.ask<std::vector<AckOutcome>>("ack", [&](auto reply) {
    on_disk.engine->ack(driver.now(), std::vector{AckRequest{leased.ref(), kKeepNone, {}}}, std::move(reply));
  });
  EXPECT_EQ(code_of(acked), ErrorCode::kUnavailable);
  const auto flushed =
      driver.ask<bool>("flush", [&](auto reply) { on_disk.engine->flush(std::move(reply)); });
  EXPECT_FALSE(flushed.ok());

  EXPECT_EQ(driver.get("mail", "safe")->body, "safe");
  EXPECT_EQ(driver.tick(), kNever);

  on_disk.die(true);
  on_disk.open();
  EXPECT_EQ(driver.get("mail", "safe")->body, "safe");
  EXPECT_TRUE(driver.get("mail", "leased"));
  EXPECT_TRUE(push(JobSpec("mail", "d")).ok());
}

TEST_P(FailedCommitTest, a_take_that_was_still_reading_is_answered_too) {
  auto& driver = on_disk.open();
  driver.push(JobSpec("mail", "a"));
  on_disk.settle();
  on_disk.disk.set_cache_misses(256);
  on_disk.disk.fail(GetParam(), 0);
  std::optional<Result<TakeAnswer>> taken;
  TakeRequest request;
  request.topic = "mail";
  request.auto_ack = true;
  on_disk.engine->take(driver.now(), request, [&](Result<TakeAnswer> answer) { taken = std::move(answer); });
  poll();
  while (on_disk.io.step(Lane::kWrite)) poll();  // the commit fails before the body is read
  ASSERT_EQ(on_disk.disk.faults_fired(), 1U);
  on_disk.settle();
  ASSERT_TRUE(taken) << "never answered";
  EXPECT_EQ(code_of(*taken), ErrorCode::kUnavailable);
}

INSTANTIATE_TEST_SUITE_P(Faults, FailedCommitTest, testing::Values(DiskFault::kWrite, DiskFault::kSync),
                         [](const auto& test) { return std::string(name_of(test.param)); });

TEST_F(FailuresTest, a_failed_first_commit_fails_the_start) {
  for (const DiskFault fault :
       {DiskFault::kCreate, DiskFault::kWrite, DiskFault::kSync, DiskFault::kSyncDirectory}) {
    support::JournalOnDisk fresh;
    fresh.disk.fail(fault, fault == DiskFault::kSyncDirectory ? 1 : 0);
    EXPECT_FALSE(fresh.try_open(kStart).ok()) << name_of(fault);
    EXPECT_TRUE(fresh.try_open(kStart).ok()) << "the lock was not given back after " << name_of(fault);
  }
}

TEST_F(FailuresTest, a_second_engine_on_the_directory_is_refused) {
  on_disk.open();
  support::SteppedIo other;
  const auto second = JournalEngine::open(on_disk.disk, other, on_disk.options, kStart);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(second.error().detail, HasSubstr("in use"));
  on_disk.close();
  EXPECT_TRUE(on_disk.try_open(kStart).ok());
}

// ---- a full disk

class FullDiskTest : public FailuresTest {
 protected:
  static constexpr uint64_t kCapacity = 512 << 10;

  FullDiskTest() {
    on_disk.options.disk_reserve = 128 << 10;
    on_disk.disk.set_capacity(kCapacity);
    on_disk.open();
  }

  /// Returns how many jobs fitted.
  int fill() {
    for (int i = 0; i < 2000; ++i) {
      const Pushed pushed = push(JobSpec("mail", std::to_string(i))
                                     .due_at(at(i % 2 * 10'000'000))
                                     .with_body(std::string(1000, 'x')));
      on_disk.settle();
      if (pushed.ok()) continue;
      EXPECT_EQ(pushed.error().code, ErrorCode::kDiskFull);
      return i;
    }
    ADD_FAILURE() << "never full";
    return 0;
  }
};

TEST_F(FullDiskTest, pushes_are_refused_before_it_is_full_and_all_else_goes_on) {
  const int fitted = fill();
  EXPECT_GT(fitted, 100);
  EXPECT_EQ(code_of(push(JobSpec("mail", "x").with_body("x"))), ErrorCode::kDiskFull) << "and stay refused";
  auto& driver = *on_disk.driver;
  EXPECT_EQ(driver.cancel("mail", "1"), CancelOutcome::kCancelled);
  EXPECT_EQ(driver.ack(driver.take_one("mail"), kKeepNone), AckOutcome::kAcked);
  EXPECT_EQ(driver.retry(driver.take_one("mail"), at(50'000), "later"), NackOutcome::kRetried);
}

TEST_F(FullDiskTest, pushes_go_on_when_there_is_room_again) {
  fill();
  on_disk.disk.set_capacity(kCapacity * 4);
  EXPECT_FALSE(push(JobSpec("mail", "x").with_body("x")).ok()) << "nobody has looked yet";
  const Moment wanted = on_disk.engine->tick(on_disk.driver->now());
  EXPECT_LE(wanted, kStart + std::chrono::seconds{1}) << "it must look again soon";
  on_disk.settle();
  EXPECT_TRUE(push(JobSpec("mail", "x").with_body("x")).ok());
}

TEST_F(FullDiskTest, what_finds_no_room_at_all_waits_for_some) {
  auto& driver = *on_disk.driver;
  driver.push(JobSpec("mail", "a"));
  const support::Taken taken = driver.take_one("mail");
  on_disk.settle();
  on_disk.disk.set_capacity(on_disk.disk.used_bytes());  // another program used the rest
  std::optional<Result<std::vector<AckOutcome>>> acked;
  const std::string big(on_disk.options.segment_bytes, 'x');
  push_later(JobSpec("mail", "big").with_body(big));
  on_disk.engine->ack(driver.now(), std::vector{AckRequest{taken.ref(), kKeepNone, {}}},
                      [&](Result<std::vector<AckOutcome>> answer) { acked = std::move(answer); });
  on_disk.settle();
  EXPECT_FALSE(acked) << "promised without being written";
  EXPECT_FALSE(answers[0]);
  EXPECT_TRUE(on_disk.engine->usage().lacks_room);
  EXPECT_EQ(code_of(push(JobSpec("mail", "x"))), ErrorCode::kDiskFull);
  EXPECT_LE(driver.tick(), driver.now() + std::chrono::seconds{1}) << "it must look again soon";

  on_disk.disk.set_capacity(kCapacity * 4);
  driver.go_to(driver.now() + std::chrono::seconds{1});
  driver.tick();
  on_disk.settle();
  ASSERT_TRUE(acked && answers[0]);
  EXPECT_TRUE(acked->ok() && answers[0]->ok());
  on_disk.die(true);
  on_disk.open();
  EXPECT_FALSE(driver.get("mail", "a"));
  EXPECT_EQ(driver.get("mail", "big")->body, big);
}

TEST_F(FullDiskTest, a_disk_without_room_for_a_start_is_told) {
  on_disk.settle();
  on_disk.die(true);
  on_disk.disk.set_capacity(64);
  const Result<bool> opened = on_disk.try_open(kStart);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, ErrorCode::kDiskFull);
}

TEST_F(FullDiskTest, cancelling_makes_room) {
  const int fitted = fill();
  for (int i = 0; i < fitted; ++i) {
    on_disk.driver->cancel("mail", std::to_string(i));
    on_disk.settle();
  }
  on_disk.driver->tick();
  on_disk.settle();
  EXPECT_TRUE(push(JobSpec("mail", "x").with_body("x")).ok());
}

// ---- Durability::kInterval

class IntervalTest : public FailuresTest {
 protected:
  IntervalTest() {
    on_disk.options.durability = Durability::kInterval;
    on_disk.options.sync_interval = Millis{50};
    on_disk.open();
    count_syncs();
  }
};

TEST_F(IntervalTest, answers_leave_before_the_sync_and_survive_a_kill) {
  EXPECT_TRUE(push(JobSpec("mail", "a").with_body("b")).ok());
  EXPECT_EQ(syncs, 0);
  on_disk.die(false);
  EXPECT_EQ(on_disk.open().get("mail", "a")->body, "b");
}

TEST_F(IntervalTest, a_tick_after_the_interval_syncs) {
  EXPECT_TRUE(push(JobSpec("mail", "a").due_at(at(1'000'000))).ok());
  auto& driver = *on_disk.driver;
  driver.go_to(at(49));
  EXPECT_EQ(driver.tick(), at(50));
  on_disk.settle();
  EXPECT_EQ(syncs, 0);
  driver.go_to(at(50));
  driver.tick();
  on_disk.settle();
  EXPECT_EQ(syncs, 1);
  driver.go_to(at(51));
  EXPECT_GT(driver.tick(), at(100'000)) << "an idle engine is left alone";
  on_disk.die(true);
  EXPECT_TRUE(on_disk.open().get("mail", "a"));
}

TEST_F(IntervalTest, a_flush_waits_for_the_sync) {
  EXPECT_TRUE(push(JobSpec("mail", "a")).ok());
  on_disk.driver->flush();
  EXPECT_EQ(syncs, 1);
  on_disk.die(true);
  EXPECT_TRUE(on_disk.open().get("mail", "a"));
}

// ---- damage found while running

TEST_F(FailuresTest, a_job_whose_record_went_bad_is_told_and_buried_not_handed_out) {
  auto& driver = on_disk.open();
  driver.push(JobSpec("mail", "bad").with_body("0123456789"));
  driver.push(JobSpec("mail", "good"));
  on_disk.settle();
  const std::string name = segment_name(1);
  const std::vector<std::byte> bytes = support::file_bytes(on_disk.disk, name);
  const size_t place = as_text(bytes).find("0123456789");
  ASSERT_NE(place, std::string_view::npos);
  ASSERT_TRUE((*on_disk.disk.open(name))->write(place, std::array{std::byte{'!'}}).ok());

  const auto found = driver.ask<std::optional<FoundJob>>("get", [&](auto reply) {
    on_disk.engine->get(driver.now(), {"mail", "bad"}, std::move(reply));
  });
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(ids_of(driver.take("mail", 10)), std::vector<std::string>{"good"});
  EXPECT_EQ(driver.count("mail", JobState::kDead), 1U);
}

}  // namespace
}  // namespace delayq::journal
