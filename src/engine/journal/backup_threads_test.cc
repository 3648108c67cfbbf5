// Backups as the server makes them: real files, real threads.
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>

#include <gtest/gtest.h>

#include "engine/journal/journal_engine.h"
#include "engine/journal/posix_disk.h"
#include "tests/support/engine_driver.h"
#include "tests/support/temporary_directory.h"

namespace delayq::journal {
namespace {

using support::at;
using support::JobSpec;
using support::kStart;

/// An engine with its disk and threads; it wakes the thread that waits for it.
class Host {
 public:
  Host(const std::filesystem::path& folder, Shelf* shelf) : disk_(std::move(*PosixDisk::open(folder))) {
    JournalOptions options;
    options.segment_bytes = 256 << 10;
    options.disk_reserve = 0;
    options.backups = shelf;
    auto opened = JournalEngine::open(*disk_, io_, options, kStart);
    if (!opened.ok()) throw std::runtime_error(to_string(opened.error()));
    engine_ = std::move(*opened);
    engine_->set_wakeup([this] {
      const std::lock_guard lock(mutex_);
      is_awake_ = true;
      awake_.notify_one();
    });
    driver.emplace(*engine_, [this] { return wait(); });
  }

  JournalEngine& engine() { return *engine_; }
  std::optional<support::EngineDriver> driver;

 private:
  bool wait() {
    std::unique_lock lock(mutex_);
    if (!awake_.wait_for(lock, std::chrono::seconds{30}, [&] { return is_awake_; }))
      throw std::runtime_error("nobody woke the engine");
    is_awake_ = false;
    return true;
  }

  std::mutex mutex_;
  std::condition_variable awake_;
  bool is_awake_ = false;
  std::unique_ptr<PosixDisk> disk_;
  ThreadedIo io_;
  std::unique_ptr<JournalEngine> engine_;
};

class BackupThreadsTest : public testing::Test {
 protected:
  support::TemporaryDirectory folder;
};

TEST_F(BackupThreadsTest, while_pushes_go_on) {
  PosixShelf shelf(folder / "backups");
  Host host(folder / "data", &shelf);
  const auto push = [&](int first, int count) {
    std::vector<JobSpec> jobs;
    for (int i = first; i < first + count; ++i) {
      jobs.push_back(
          JobSpec("t", std::to_string(i)).due_at(at(9'000'000)).with_body(std::string(2'000, 'b')));
    }
    host.driver->push_all(jobs);
  };
  push(0, 2'000);
  std::optional<Result<BackupReport>> answer;
  host.engine().backup("copy", [&](Result<BackupReport> report) { answer = std::move(report); });
  for (int first = 2'000; !answer; first += 20) push(first, 20);
  ASSERT_TRUE(answer->ok()) << to_string(answer->error());
  EXPECT_EQ((*answer)->path, (folder / "backups" / "copy").string());
  EXPECT_FALSE(std::filesystem::exists(folder / "backups" / "copy.partial"));

  Host copy(folder / "backups" / "copy", nullptr);
  for (int i = 0; i < 2'000; i += 97) EXPECT_TRUE(copy.driver->get("t", std::to_string(i))) << i;
  EXPECT_GE(copy.driver->count("t", JobState::kDelayed), 2'000U);
}

TEST_F(BackupThreadsTest, an_engine_that_ends_leaves_nothing) {
  PosixShelf shelf(folder / "backups");
  {
    Host host(folder / "data", &shelf);
    for (int i = 0; i < 200; ++i)
      host.driver->push(JobSpec("t", std::to_string(i)).with_body(std::string(20'000, 'b')));
    host.engine().backup("copy", [](auto&&) {});
    host.driver->flush();
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "backups" / "copy.partial"));
}

TEST_F(BackupThreadsTest, names_and_leftovers) {
  std::filesystem::create_directories(folder / "backups" / "taken");
  std::filesystem::create_directories(folder / "backups" / "copy.partial" / "deep");
  std::ofstream(folder / "backups" / "copy.partial" / "segment-0000000099") << "rest of another";
  PosixShelf shelf(folder / "backups");
  EXPECT_EQ(shelf.begin("taken").error().code, ErrorCode::kConflict);
  Host host(folder / "data", &shelf);
  host.driver->push(JobSpec("t", "a"));
  EXPECT_EQ(host.driver->backup("copy").files, 2U) << "a segment and the manifest";
  EXPECT_FALSE(std::filesystem::exists(folder / "backups" / "copy" / "segment-0000000099"));
  std::ofstream(folder / "file") << "in the way";
  PosixShelf nowhere(folder / "file" / "backups");
  EXPECT_FALSE(nowhere.begin("copy").ok());
  EXPECT_FALSE(nowhere.finish("copy").ok());
}

}  // namespace
}  // namespace delayq::journal
