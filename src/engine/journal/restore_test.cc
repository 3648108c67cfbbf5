// A restore is atomic on disk, even if the power is cut.
#include <gmock/gmock.h>

#include "tests/support/journal_on_disk.h"

namespace delayq::journal {
namespace {

using support::at;
using support::kStart;
using support::SeenJob;

SeenJob dead_job(std::string body) {
  SeenJob job;
  job.topic = "t";
  job.id = "a";
  job.body = std::move(body);
  job.outcome = "why it died";
  job.state = JobState::kDead;
  job.attempts = 3;
  job.due = at(-10);
  job.pushed = at(-20);
  job.until = at(1'000'000);
  return job;
}

TEST(RestoreTest, a_power_cut_leaves_the_job_with_its_outcome_or_not_at_all) {
  int lost = 0;
  int kept = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    support::JournalOnDisk on_disk(seed);
    auto& driver = on_disk.open();
    SeenJob old = dead_job("old");
    old.outcome = "how it was before";
    if (seed % 2 == 0) driver.restore(old);
    const SeenJob fresh = dead_job(std::string(seed % 5 * 1'000, 'b'));
    on_disk.engine->restore(kStart, std::vector{RestoreRequest{view_of(fresh), OnConflict::kReplace, 10}},
                            [](auto&&) {});
    on_disk.engine->poll(driver);
    on_disk.disk.stop_after(seed % 3);
    on_disk.io.step(Lane::kWrite);
    on_disk.die(true);
    on_disk.open();
    const auto found = driver.get("t", "a");
    if (found == fresh) {
      ++kept;
    } else {
      ++lost;
      EXPECT_EQ(found, seed % 2 == 0 ? std::optional(old) : std::nullopt) << "seed " << seed;
    }
  }
  EXPECT_GT(lost, 10);
  EXPECT_GT(kept, 10);
}

TEST(RestoreTest, survives_cleaning) {
  support::JournalOnDisk on_disk;
  on_disk.options.segment_bytes = 4096;
  auto& driver = on_disk.open();
  const SeenJob job = dead_job("body");
  driver.restore(job);
  for (int i = 0; i < 120; ++i) {
    driver.push(
        support::JobSpec("churn", "x").due_at(at(1'000'000)).with_body(std::string(900, 'x')).or_replace());
    if (i > 8) driver.push(support::JobSpec("fill", std::to_string(i)).with_body(std::string(800, 'f')));
    on_disk.settle();
  }
  EXPECT_FALSE(on_disk.disk.open("segment-0000000001").ok()) << "it was never cleaned";
  EXPECT_EQ(driver.get("t", "a"), job);
  on_disk.restart(kStart);
  EXPECT_EQ(driver.get("t", "a"), job);
}

}  // namespace
}  // namespace delayq::journal
