#include "engine/journal/backup.h"

#include <map>
#include <set>
#include <string>

#include <gmock/gmock.h>

#include "engine/journal/check.h"
#include "tests/support/journal_on_disk.h"
#include "tests/support/segment_builder.h"
#include "tests/support/virtual_shelf.h"

namespace delayq::journal {
namespace {

using support::at;
using support::DiskFault;
using support::JobSpec;
using support::kStart;

class BackupTest : public testing::Test {
 protected:
  BackupTest() {
    on_disk.options.segment_bytes = 4096;
    on_disk.options.backups = &shelf;
  }

  /// Requests a backup without waiting for its reply.
  void backup_later(std::string_view name) {
    answer.reset();
    on_disk.engine->backup(name, [this](Result<BackupReport> report) { answer = std::move(report); });
  }
  Result<BackupReport> backup(std::string_view name) {
    backup_later(name);
    on_disk.settle();
    return answer ? std::move(*answer) : Result<BackupReport>(Error{});
  }

  JobSpec spec(int number) {
    return JobSpec("t", std::to_string(number)).due_at(at(9'000'000)).with_body(std::string(300, 'b'));
  }

  /// Opens a copy as a server would, and returns the ids of its jobs.
  std::set<std::string> ids_in(support::VirtualDisk& copy) {
    const Result<CheckReport> report = check(copy);
    EXPECT_TRUE(report.ok() && report->is_clean());
    support::SteppedIo io;
    auto engine = JournalEngine::open(copy, io, options_of_copy(), kStart);
    EXPECT_TRUE(engine.ok()) << to_string(engine.error());
    if (!engine.ok()) return {};
    support::EngineDriver driver(**engine, [&io] {
      const bool read = io.step(Lane::kRead);
      return io.step(Lane::kWrite) || read;
    });
    std::set<std::string> ids;
    for (const std::string& id : driver.ids_in("t", JobState::kDelayed))
      EXPECT_TRUE(ids.insert(id).second) << id << " is there twice";
    for (const std::string& id : ids) EXPECT_EQ(driver.get("t", id)->body, std::string(300, 'b'));
    return ids;
  }

  JournalOptions options_of_copy() const {
    JournalOptions options = on_disk.options;
    options.backups = nullptr;
    return options;
  }

  support::VirtualShelf shelf{7};
  support::JournalOnDisk on_disk;
  std::optional<Result<BackupReport>> answer;
};

TEST_F(BackupTest, has_everything_that_was_answered) {
  auto& driver = on_disk.open();
  std::set<std::string> expected;
  for (int i = 0; i < 50; ++i) {
    driver.push(spec(i));
    expected.insert(std::to_string(i));
  }
  for (int i = 0; i < 50; i += 5) {
    driver.cancel("t", std::to_string(i));
    expected.erase(std::to_string(i));
  }
  driver.store_settings("t", "settings");
  const Result<BackupReport> report = backup("copy");
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->path, "shelf/copy");
  EXPECT_EQ(report->jobs, expected.size());
  EXPECT_GT(report->files, 3U);
  ASSERT_NE(shelf.find("copy"), nullptr);
  EXPECT_EQ(shelf.find("copy")->used_bytes(), report->bytes);
  EXPECT_EQ(ids_in(*shelf.find("copy")), expected);
}

TEST_F(BackupTest, what_comes_while_it_is_made_is_not_in_it_and_is_not_lost) {
  auto& driver = on_disk.open();
  for (int i = 0; i < 40; ++i) driver.push(spec(i));
  backup_later("copy");
  for (int i = 40; i < 80; ++i) driver.push(spec(i));
  for (int i = 0; i < 80; i += 2) driver.cancel("t", std::to_string(i));
  on_disk.settle();
  ASSERT_TRUE(answer && answer->ok());
  const std::set<std::string> ids = ids_in(*shelf.find("copy"));
  for (int i = 1; i < 40; i += 2) EXPECT_TRUE(ids.contains(std::to_string(i))) << i;
  EXPECT_FALSE(ids.contains("79"));
  EXPECT_EQ(driver.count("t", JobState::kDelayed), 40U);
}

TEST_F(BackupTest, cleaning_goes_on_and_removes_what_is_being_copied) {
  auto& driver = on_disk.open();
  std::set<std::string> expected;
  for (int i = 0; i < 100; ++i) driver.push(spec(i));
  for (int i = 0; i < 100; ++i) {
    if (i % 10 == 0) {
      expected.insert(std::to_string(i));
    } else {
      driver.cancel("t", std::to_string(i));
    }
  }
  const uint64_t before = on_disk.engine->usage().segments;
  backup_later("copy");
  // The copy lane does not run while all other lanes do.
  const auto churn = [&](int rounds) {
    for (int i = 0; i < rounds; ++i) {
      const JobSpec job = JobSpec("churn", "x").due_at(at(9'000'000)).with_body(std::string(900, 'x'));
      on_disk.engine->push(kStart, std::vector{job.view()}, [](auto&&) {});
      on_disk.engine->cancel(kStart, std::vector{JobRef{"churn", "x"}}, [](auto&&) {});
      for (int k = 0; k < 6; ++k) {
        on_disk.engine->poll(driver);
        on_disk.io.step(Lane::kWrite);
        on_disk.io.step(Lane::kRead);
      }
    }
  };
  churn(150);
  EXPECT_FALSE(on_disk.disk.open("segment-0000000001").ok()) << "cleaning waits for the copy";
  EXPECT_LT(on_disk.engine->usage().segments, before + 8);
  on_disk.settle();
  ASSERT_TRUE(answer && answer->ok());
  EXPECT_EQ(ids_in(*shelf.find("copy")), expected);
}

TEST_F(BackupTest, an_interval_is_synced_first) {
  on_disk.options.durability = Durability::kInterval;
  on_disk.options.sync_interval = std::chrono::hours{1};
  auto& driver = on_disk.open();
  driver.push(spec(1));
  ASSERT_TRUE(backup("copy").ok());
  shelf.power_cut();
  EXPECT_EQ(ids_in(*shelf.find("copy")), std::set<std::string>{"1"});
}

TEST_F(BackupTest, names_are_given_once) {
  auto& driver = on_disk.open();
  driver.push(spec(1));
  ASSERT_TRUE(backup("copy").ok());
  const Result<BackupReport> again = backup("copy");
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code, ErrorCode::kConflict);
  EXPECT_EQ(ids_in(*shelf.find("copy")).size(), 1U) << "the first is as it was";
  EXPECT_TRUE(backup("other").ok());
}

TEST_F(BackupTest, one_at_a_time) {
  on_disk.open();
  backup_later("one");
  std::optional<Result<BackupReport>> second;
  on_disk.engine->backup("two", [&](Result<BackupReport> report) { second = std::move(report); });
  on_disk.settle();
  EXPECT_TRUE(answer && answer->ok());
  ASSERT_TRUE(second && !second->ok());
  EXPECT_EQ(second->error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(backup("two").ok());
}

TEST_F(BackupTest, without_a_place_it_is_refused) {
  on_disk.options.backups = nullptr;
  on_disk.open();
  const Result<BackupReport> refused = backup("copy");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
}

TEST_F(BackupTest, a_disk_without_room_is_left_as_it_was) {
  auto& driver = on_disk.open();
  for (int i = 0; i < 20; ++i) driver.push(spec(i));
  shelf.set_capacity(4096);
  const Result<BackupReport> refused = backup("copy");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kDiskFull);
  EXPECT_EQ(shelf.size(), 0U);
  EXPECT_FALSE(shelf.has_partial("copy"));
  shelf.set_capacity(UINT64_MAX);
  EXPECT_TRUE(backup("copy").ok()) << "the same name can be tried again";
  EXPECT_EQ(driver.push(spec(99)).outcome, PushOutcome::kCreated);
}

TEST_F(BackupTest, a_failure_on_the_way_leaves_nothing_that_looks_whole) {
  auto& driver = on_disk.open();
  for (int i = 0; i < 40; ++i) driver.push(spec(i));
  for (const DiskFault fault :
       {DiskFault::kCreate, DiskFault::kWrite, DiskFault::kSync, DiskFault::kSyncDirectory}) {
    backup_later("copy");
    while (shelf.find_partial("copy") == nullptr) {
      on_disk.engine->poll(driver);
      on_disk.pump();
    }
    shelf.find_partial("copy")->fail(fault, fault == DiskFault::kSyncDirectory ? 0 : 2);
    on_disk.settle();
    ASSERT_TRUE(answer && !answer->ok()) << name_of(fault);
    EXPECT_EQ(shelf.size(), 0U);
    EXPECT_FALSE(shelf.has_partial("copy"));
  }
  shelf.fail_to_finish(true);
  EXPECT_FALSE(backup("copy").ok());
  EXPECT_EQ(shelf.size(), 0U);
  shelf.fail_to_finish(false);
  EXPECT_EQ(driver.push(spec(99)).outcome, PushOutcome::kCreated) << "a failed copy is no failed journal";
  ASSERT_TRUE(backup("copy").ok());
  EXPECT_EQ(ids_in(*shelf.find("copy")).size(), 41U);
}

TEST_F(BackupTest, an_engine_that_ends_gives_it_up) {
  auto& driver = on_disk.open();
  for (int i = 0; i < 40; ++i) driver.push(spec(i));
  backup_later("copy");
  for (int i = 0; i < 6; ++i) {
    on_disk.engine->poll(driver);
    on_disk.pump();
  }
  ASSERT_TRUE(shelf.has_partial("copy"));
  on_disk.close();
  EXPECT_FALSE(answer) << "nobody is there to be answered";
  EXPECT_EQ(shelf.size(), 0U);
  EXPECT_FALSE(shelf.has_partial("copy"));
}

TEST_F(BackupTest, a_part_of_it_does_not_pass_for_the_whole) {
  auto& driver = on_disk.open();
  for (int i = 0; i < 40; ++i) driver.push(spec(i));
  ASSERT_TRUE(backup("copy").ok());
  const std::vector<std::string> names = support::file_names(*shelf.find("copy"));
  ASSERT_GE(names.size(), 3U);
  for (const std::string& name : names) {
    const std::unique_ptr<support::VirtualDisk> part = shelf.find("copy")->clone(1);
    ASSERT_TRUE(part->remove(name).ok());
    support::SteppedIo io;
    const auto opened = JournalEngine::open(*part, io, on_disk.options, kStart);
    ASSERT_FALSE(opened.ok()) << name;
    EXPECT_NE(opened.error().detail.find(name), std::string::npos) << opened.error().detail;
  }
  for (const std::string& name : names) {
    const std::unique_ptr<support::VirtualDisk> part = shelf.find("copy")->clone(1);
    const auto file = part->open(name);
    ASSERT_TRUE((*file)->truncate(*(*file)->size() * 2 / 3).ok());
    support::SteppedIo io;
    EXPECT_FALSE(JournalEngine::open(*part, io, on_disk.options, kStart).ok()) << name << " is cut short";
  }
}

// The power is cut at every step: a copy with its final name is complete, and the journal
// itself is not affected.
TEST_F(BackupTest, power_cuts) {
  bool was_complete = false;
  for (int steps = 0; !was_complete; ++steps) {
    support::VirtualShelf copies(static_cast<uint64_t>(steps) + 1);
    support::JournalOnDisk journal(static_cast<uint64_t>(steps) + 1);
    journal.options.segment_bytes = 4096;
    journal.options.backups = &copies;
    auto& driver = journal.open();
    std::set<std::string> answered;
    for (int i = 0; i < 30; ++i) {
      driver.push(spec(i));
      answered.insert(std::to_string(i));
    }
    bool is_answered = false;
    journal.engine->backup("copy", [&](const Result<BackupReport>& report) { is_answered = report.ok(); });
    for (int i = 0; i < steps; ++i) {
      const JobSpec job = spec(1'000 + i);
      journal.engine->push(kStart, std::vector{job.view()}, [](auto&&) {});
      journal.engine->poll(driver);
      journal.pump();
    }
    was_complete = is_answered;
    journal.die(true);
    copies.power_cut();
    if (support::VirtualDisk* copy = copies.find("copy")) {
      const std::set<std::string> ids = ids_in(*copy);
      for (const std::string& id : answered) EXPECT_TRUE(ids.contains(id)) << id << " after " << steps;
    } else {
      EXPECT_FALSE(was_complete) << "answered, and not there";
    }
    journal.open();
    for (const std::string& id : answered) ASSERT_TRUE(driver.get("t", id)) << id << " after " << steps;
    ASSERT_LT(steps, 200) << "it never ends";
  }
}

}  // namespace
}  // namespace delayq::journal
