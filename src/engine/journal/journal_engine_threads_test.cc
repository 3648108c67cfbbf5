// The engine as the server runs it, with real files and real threads. Its behaviour is tested elsewhere;
// these tests check that it is the same with threads, and that a restart finds all jobs.
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>

#include <gtest/gtest.h>

#include "engine/journal/journal_engine.h"
#include "engine/journal/posix_disk.h"
#include "tests/support/engine_driver.h"
#include "tests/support/temporary_directory.h"

namespace delayq::journal {
namespace {

using support::at;
using support::JobSpec;
using support::kKeepNone;
using support::kStart;

class JournalThreadsTest : public testing::Test {
 protected:
  JournalThreadsTest() {
    options.segment_bytes = 256 << 10;
    options.disk_reserve = 0;
    options.seed = 5;
  }
  ~JournalThreadsTest() override { close(); }

  support::EngineDriver& open(Moment now) {
    disk = std::move(*PosixDisk::open(folder.path()));
    io = std::make_unique<ThreadedIo>();
    auto opened = JournalEngine::open(*disk, *io, options, now);
    if (!opened.ok()) throw std::runtime_error(to_string(opened.error()));
    engine = std::move(*opened);
    engine->set_wakeup([this] {
      const std::lock_guard lock(mutex);
      is_awake = true;
      awake.notify_one();
    });
    if (!calls) {
      calls.emplace(*engine, [this] { return wait_for_news(); });
    } else {
      calls->attach(*engine);
    }
    calls->go_to(now);
    return *calls;
  }

  void close() {
    engine.reset();
    io.reset();
    disk.reset();
  }

  /// Waits until a lane has something for poll(). The timeout is reached only if something is wrong.
  bool wait_for_news() {
    std::unique_lock lock(mutex);
    if (!awake.wait_for(lock, std::chrono::seconds{30}, [&] { return is_awake; })) {
      throw std::runtime_error("nobody woke the engine");
    }
    is_awake = false;
    return true;
  }

  support::TemporaryDirectory folder;
  JournalOptions options;
  std::unique_ptr<PosixDisk> disk;
  std::unique_ptr<ThreadedIo> io;
  std::unique_ptr<JournalEngine> engine;
  std::optional<support::EngineDriver> calls;
  std::mutex mutex;
  std::condition_variable awake;
  bool is_awake = false;
};

TEST_F(JournalThreadsTest, a_life_with_restarts) {
  std::map<std::string, std::string> expected;
  for (int life = 0; life < 3; ++life) {
    auto& driver = open(at(life * 1000));
    ASSERT_EQ(driver.count("mail", JobState::kDelayed) + driver.count("mail", JobState::kReady),
              expected.size());
    for (const auto& [id, body] : expected) ASSERT_EQ(driver.get("mail", id)->body, body);
    for (int batch = 0; batch < 20; ++batch) {
      std::vector<JobSpec> jobs;
      for (int i = 0; i < 50; ++i) {
        const std::string id = std::to_string(life) + "-" + std::to_string(batch * 50 + i);
        const std::string body(static_cast<size_t>(i) * 20, static_cast<char>('a' + i % 26));
        jobs.push_back(JobSpec("mail", id).due_at(at(life * 1000 + (i % 2) * 100'000)).with_body(body));
        expected[id] = body;
      }
      driver.push_all(jobs);
      for (const support::Taken& taken : driver.take("mail", 10)) {
        EXPECT_EQ(taken.job.body, expected.at(taken.job.id));
        EXPECT_EQ(driver.ack(taken, kKeepNone), AckOutcome::kAcked);
        expected.erase(taken.job.id);
      }
      EXPECT_EQ(driver.cancel("mail", jobs.back().id), CancelOutcome::kCancelled);
      expected.erase(jobs.back().id);
    }
    close();
  }
  auto& driver = open(at(1'000'000));
  EXPECT_EQ(driver.count("mail", JobState::kReady), expected.size());
}

TEST_F(JournalThreadsTest, what_was_answered_is_there_after_a_restart_without_goodbye) {
  auto& driver = open(kStart);
  for (int i = 0; i < 50; ++i) driver.push(JobSpec("mail", std::to_string(i)));
  // Pushed without waiting for the reply: the job may or may not be there.
  const JobSpec last("mail", "last");
  engine->push(kStart, std::vector{last.view()}, [](const Result<std::vector<PushAnswer>>&) {});
  close();
  open(kStart);
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(driver.get("mail", std::to_string(i))) << i;
}

TEST_F(JournalThreadsTest, churn_is_cleaned_by_the_threads) {
  auto& driver = open(kStart);
  for (int i = 0; i < 100; ++i) {
    std::vector<JobSpec> jobs;
    for (int k = 0; k < 20; ++k)
      jobs.push_back(JobSpec("mail", std::to_string(k))
                         .due_at(at(9'000))
                         .with_body(std::string(2000, 'x'))
                         .or_replace());
    driver.push_all(jobs);
  }
  while (engine->usage().disk_bytes > 7 * options.segment_bytes) {
    driver.push(JobSpec("mail", "0").due_at(at(9'000)).or_replace());
  }
  close();
  open(kStart);
  EXPECT_EQ(driver.count("mail", JobState::kDelayed), 20U);
}

}  // namespace
}  // namespace delayq::journal
