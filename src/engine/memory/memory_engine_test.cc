// The choices that the reference model documents beyond the contract. The contract itself is
// tested in tests/contract.
#include "engine/memory/memory_engine.h"

#include <gmock/gmock.h>

#include "tests/support/engine_driver.h"

namespace delayq {
namespace {

using support::at;
using support::EngineDriver;
using support::JobSpec;
using support::Taken;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr size_t kPerTick = 10'000;

std::vector<JobSpec> many_jobs(size_t count, Moment due) {
  std::vector<JobSpec> jobs;
  for (size_t i = 0; i < count; ++i) jobs.push_back(JobSpec("t", std::to_string(i)).due_at(due));
  return jobs;
}

TEST(MemoryEngine, ATickDoesNotDoEverythingAtOnce) {
  MemoryEngine engine;
  EngineDriver driver(engine);
  driver.push_all(many_jobs(kPerTick + 1, at(100)));
  driver.push(JobSpec("t", "later").due_at(at(500)));
  EXPECT_EQ(engine.tick(at(100)), at(100)) << "there is more to do";
  EXPECT_EQ(engine.jobs().find_topic("t")->in(JobState::kReady).size(), kPerTick);
  EXPECT_EQ(engine.tick(at(100)), at(500));
  EXPECT_EQ(engine.jobs().find_topic("t")->in(JobState::kReady).size(), kPerTick + 1);
}

TEST(MemoryEngine, AVerbDoes) {
  MemoryEngine engine;
  EngineDriver driver(engine);
  driver.push_all(many_jobs(kPerTick + 1, at(100)));
  driver.go_to(at(100));
  EXPECT_EQ(driver.count("t", JobState::kReady), kPerTick + 1);
}

TEST(MemoryEngine, AnExpiredLeaseIsToldWithEveryTickUntilItIsResolved) {
  MemoryEngine engine;
  EngineDriver driver(engine);
  driver.push(JobSpec("t", "a"));
  const Taken taken = driver.take_one("t", Millis{100});
  driver.go_to(at(100));
  EXPECT_EQ(driver.tick(), kNever) << "it waits for a nack, not for a tick";
  EXPECT_THAT(driver.expired_news(), SizeIs(1));
  driver.counts("t");
  EXPECT_THAT(driver.expired_news(), IsEmpty()) << "a verb does not tell it again";
  driver.tick();
  EXPECT_THAT(driver.expired_news(), SizeIs(1));
  NackRequest request;
  request.lease = taken.ref();
  request.retry_at = at(100);
  request.expired = true;
  driver.nack_all({request});
  driver.tick();
  EXPECT_THAT(driver.expired_news(), IsEmpty());
}

TEST(MemoryEngine, ALeaseExtendedBeforeThePollIsNotTold) {
  MemoryEngine engine;
  EngineDriver driver(engine);
  driver.push(JobSpec("t", "a"));
  const Taken taken = driver.take_one("t", Millis{100});
  engine.tick(at(100));
  driver.go_to(at(50));  // the clock was set back
  EXPECT_TRUE(driver.extend(taken, at(1'000)));
  EXPECT_THAT(driver.expired_news(), IsEmpty());
  driver.go_to(at(1'000));
  driver.tick();
  EXPECT_THAT(driver.expired_news(), SizeIs(1)) << "the new deadline counts";
}

TEST(MemoryEngine, APageLooksAtAThousandJobsAtMost) {
  MemoryEngine engine;
  EngineDriver driver(engine);
  driver.push_all(many_jobs(1'500, at(100)));
  ListRequest request;
  request.topic = "t";
  request.id_prefix = "1499";
  const support::SeenPage page = driver.list(request);
  EXPECT_THAT(page.jobs, IsEmpty());
  EXPECT_NE(page.cursor, "");
  EXPECT_THAT(support::ids_of(driver.list_all(request)), ElementsAre("1499"));
}

TEST(MemoryEngine, StartsFromAGivenState) {
  memory::JobTable jobs;
  memory::StoredJob job;
  job.topic = "t";
  job.id = "second";
  job.state = JobState::kReady;
  job.sequence = 7;
  job.entered = 9;
  jobs.restore(job);
  job.id = "first";
  job.sequence = 6;
  job.entered = 10;
  jobs.restore(job);
  MemoryEngine engine(std::move(jobs), {{"t", "settings"}}, 41);
  EngineDriver driver(engine);
  EXPECT_THAT(driver.ids_in("t", JobState::kReady), ElementsAre("second", "first"))
      << "by entering the state";
  driver.push(JobSpec("t", "third").due_at(Moment{}));
  EXPECT_THAT(support::ids_of(driver.take("t", 9)), ElementsAre("first", "second", "third"))
      << "by push order";
  EXPECT_EQ(engine.last_lease(), 44U);
  EXPECT_THAT(driver.load_settings(), SizeIs(1));
}

}  // namespace
}  // namespace delayq
