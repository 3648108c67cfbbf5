// The engine in this process: what the scenarios do not say.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <future>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include <delayq/delayq.h>
#include <gtest/gtest.h>

#include "sdk/cpp/tests/support.h"

namespace sdk_test {
namespace {

using namespace std::chrono_literals;
using delayq::Client;
using delayq::ErrorCode;
using delayq::Job;
using delayq::Worker;

/// The code of the error that `act` throws.
template <class Act>
std::string code_of(Act act) {
  try {
    act();
  } catch (const delayq::Error& error) {
    return std::string(name_of(error.code()));
  }
  return "none";
}

class Embedded : public testing::Test {
 protected:
  std::string path() const { return directory_.path() + "/data"; }

 private:
  TempDirectory directory_;
};

TEST_F(Embedded, JobsAreThereAfterTheProgramHasEnded) {
  {
    Client client = Client::open(path());
    client.enqueue("order", "1", "close", {.process_in = 1h, .group = "g"});
    client.every("beat", 1h, "beat", "tick");
  }
  Client client = Client::open(path());
  EXPECT_EQ(client.get("order", "1")->payload, "close");
  EXPECT_EQ(client.get_schedule("beat")->state, "active");
  EXPECT_EQ(client.cancel_group("g"), 1U);
}

TEST_F(Embedded, ADirectoryHasOneUser) {
  Client client = Client::open(path());
  EXPECT_EQ(code_of([&] { Client::open(path()); }), "unavailable");
  client = Client::open(path() + "2");  // the last copy is gone, and so is the lock
  EXPECT_EQ(code_of([&] { Client::open(path()); }), "none");
  EXPECT_EQ(code_of([&] { Client::open("/proc/nothing/here"); }), "unavailable");
}

TEST_F(Embedded, TopicsHaveTheirSettings) {
  delayq::EmbeddedOptions options;
  options.topics["once"] = {.attempts = 1};
  options.topics["*"] = {.lease = 5min};
  Client client = Client::open(path(), options);
  client.enqueue("once", "1", "x");
  Worker worker(client);
  worker.handle("once", [&](const Job& job) {
    EXPECT_GT(job.lease_until(), job.due_at() + 4min);
    worker.stop();
    throw std::runtime_error("no");
  });
  worker.run();
  EXPECT_EQ(client.get("once", "1")->state, "dead");
  options.topics["once"].backoff = "often";
  EXPECT_EQ(code_of([&] { Client::open(path() + "2", options); }), "invalid");
}

TEST_F(Embedded, ThreadsShareAClient) {
  Client client = Client::open(path());
  std::vector<std::thread> threads;
  std::atomic<int> stored = 0;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&, thread] {
      std::vector<delayq::NewJob> jobs;
      for (int i = 0; i < 100; ++i)
        jobs.push_back({.topic = "t",
                        .id = std::to_string(thread * 100 + i),
                        .options = {.process_in = 1h, .group = "g"}});
      for (const auto& result : client.enqueue_many(jobs)) stored += result.ok();
      for (int i = 0; i < 20; ++i)
        client.enqueue("t", "one" + std::to_string(thread * 100 + i), "x", delayq::process_in(1h),
                       delayq::group("g"));
      std::vector<std::future<std::string>> futures;
      for (int i = 0; i < 50; ++i)
        futures.push_back(client.enqueue_async({.topic = "t", .options = {.process_in = 1h, .group = "g"}}));
      for (auto& future : futures) EXPECT_EQ(future.get().size(), 36U);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(stored, 800);
  EXPECT_EQ(client.cancel_group("g"), 8U * (100 + 20 + 50));
}

// enqueue_many() gives its jobs to the engine without words, enqueue() with them: nobody may notice.
TEST_F(Embedded, ManyAtOnceMeanTheSameAsOneByOne) {
  delayq::EmbeddedOptions settings;
  settings.max_payload = 1000;
  Client client = Client::open(path(), settings);
  using delayq::OnConflict;
  const delayq::Time past(std::chrono::seconds(1'700'000'000));
  const delayq::Time then(std::chrono::seconds(4'000'000'000));
  const std::vector<delayq::NewJob> jobs{
      {.topic = "t", .id = "plain", .payload = "1"},
      {.topic = "t", .id = "later", .payload = std::string("\0\r\n", 3), .options = {.process_in = 90min}},
      {.topic = "t", .id = "then", .options = {.process_at = then}},
      {.topic = "t", .id = "before", .options = {.process_at = past}},
      {.topic = "t", .id = "all", .options = {.priority = 7, .retry = 0, .timeout = 90s, .group = "g"}},
      {.topic = "t", .id = "words", .options = {.backoff = "1s,2s", .headers = {{"a", "b"}}}},
      {.topic = "t", .id = "plain", .payload = "2", .options = {.on_conflict = OnConflict::reject}},
      {.topic = "t", .id = "later", .payload = "2", .options = {.on_conflict = OnConflict::keep}},
      {.topic = "t", .id = "then", .payload = "2", .options = {.on_conflict = OnConflict::replace}},
      {.topic = "", .id = "x"},
      {.topic = "two words", .id = "x"},
      {.topic = std::string(70'000, 't'), .id = "x"},
      {.topic = "t", .id = std::string(600, 'i')},
      {.topic = "t", .id = "x", .payload = std::string(1001, 'p')},
      {.topic = "t", .id = "x", .options = {.process_in = -1ms}},
      {.topic = "t", .id = "x", .options = {.process_in = 24h * 365 * 1000}},
      {.topic = "t", .id = "x", .options = {.process_in = 1s, .process_at = then}},
      {.topic = "t", .id = "x", .options = {.process_at = delayq::Time::max()}},
      {.topic = "t", .id = "x", .options = {.process_at = delayq::Time::min()}},
      {.topic = "t", .id = "x", .options = {.timeout = 0ms}},
      {.topic = "t", .id = "x", .options = {.timeout = -1s}},
      {.topic = "t", .id = "x", .options = {.timeout = 24h * 365 * 100}},
      {.topic = "t", .id = "x", .options = {.priority = UINT32_MAX, .retry = UINT32_MAX}},
      {.topic = "t", .id = "x", .options = {.group = "two\nlines"}},
      {.topic = "t", .id = "x", .options = {.on_conflict = static_cast<OnConflict>(9)}},
  };
  const std::vector<delayq::EnqueueResult> results = client.enqueue_many(jobs);
  ASSERT_EQ(results.size(), jobs.size());
  std::map<std::string, std::optional<delayq::JobInfo>> many;
  for (const auto& job : jobs) many[job.id] = client.get("t", job.id.size() > 100 ? "none" : job.id);
  Client other = Client::open(path() + "2", settings);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const auto& job = jobs[i];
    SCOPED_TRACE(i);
    try {
      EXPECT_EQ(other.enqueue(job.topic, job.id, job.payload, job.options), results[i].id);
      EXPECT_TRUE(results[i].ok()) << results[i].error->what();
    } catch (const delayq::Error& error) {
      ASSERT_FALSE(results[i].ok()) << error.what();
      EXPECT_EQ(results[i].error->code(), error.code()) << error.what();
      EXPECT_EQ(results[i].id, "");
    }
  }
  for (const auto& [id, info] : many) {
    const auto one = other.get("t", id.size() > 100 ? "none" : id);
    ASSERT_EQ(one.has_value(), info.has_value()) << id;
    if (!one) continue;
    EXPECT_EQ(std::tie(one->payload, one->group, one->priority, one->state, one->headers),
              std::tie(info->payload, info->group, info->priority, info->state, info->headers))
        << id;
    EXPECT_LT(std::chrono::abs(one->due_at - info->due_at), 60s) << id;
  }
  EXPECT_EQ(client.cancel_group("g"), 1U);
}

TEST_F(Embedded, WhatIsEnqueuedFirstIsStoredFirst) {
  Client client = Client::open(path());
  for (int i = 0; i < 100; ++i) {
    const std::string id = std::to_string(i);
    client.enqueue_async({.topic = "t", .id = id, .payload = "1", .options = {.process_in = 1h}},
                         [](auto&&) {});
    const std::vector<delayq::NewJob> last{
        {.topic = "t", .id = id, .payload = "2", .options = {.process_in = 1h}}};
    ASSERT_TRUE(client.enqueue_many(last).front().ok());
    ASSERT_EQ(client.get("t", id)->payload, "2");
  }
}

TEST_F(Embedded, CallbacksMustNotBlock) {
  Client client = Client::open(path());
  std::promise<std::string> code;
  client.enqueue_async({.topic = "t", .id = "1"}, [&](const delayq::EnqueueResult& result) {
    EXPECT_TRUE(result.ok());
    code.set_value(code_of([&] { client.get("t", "1"); }));
  });
  EXPECT_EQ(code.get_future().get(), "invalid");
  std::promise<void> chained;
  client.enqueue_async({.topic = "t", .id = "2"}, [&](const delayq::EnqueueResult&) {
    client.enqueue_async({.topic = "t", .id = "3"}, [&](const delayq::EnqueueResult& result) {
      EXPECT_TRUE(result.ok());
      chained.set_value();
    });
  });
  chained.get_future().get();
  EXPECT_THROW(client.enqueue_async({.topic = "no topic"}).get(), delayq::Error);
}

TEST_F(Embedded, TheLastCopyMayGoInACallback) {
  std::promise<void> gone;
  {
    auto client = std::make_shared<Client>(Client::open(path()));
    std::shared_ptr<Client> last = client;
    client->enqueue_async({.topic = "t", .id = "1"},
                          [last = std::move(last), &gone](const delayq::EnqueueResult&) mutable {
                            last.reset();
                            gone.set_value();
                          });
  }
  gone.get_future().get();
  EXPECT_TRUE(eventually([&] { return code_of([&] { Client::open(path()).get("t", "1"); }) == "none"; }));
}

TEST_F(Embedded, AClosedClientRefuses) {
  Client client = Client::open(path());
  client.enqueue("t", "1", "x");
  client.close();
  client.close();
  EXPECT_EQ(code_of([&] { client.enqueue("t", "2", "x"); }), "stopping");
}

TEST_F(Embedded, WhatNoServerWouldReadIsRefused) {
  Client client = Client::open(path(), {.max_payload = 1000});
  EXPECT_EQ(code_of([&] { client.enqueue("t", "1", std::string(1'000'000, 'x')); }), "too_large");
  EXPECT_EQ(code_of([&] { client.enqueue("t", std::string(1'000'000, 'x'), ""); }), "invalid");
  EXPECT_EQ(code_of([&] { client.enqueue("t", "1", "", delayq::group(std::string(1'000'000, 'x'))); }),
            "invalid");
  EXPECT_EQ(code_of([&] { client.enqueue("t", "1", "", delayq::callback("http://localhost/")); }), "invalid");
  EXPECT_EQ(code_of([&] { client.get(std::string(1'000'000, 'x'), ""); }), "invalid");
  client.enqueue("t", "1", "still here");
  EXPECT_EQ(client.get("t", "1")->payload, "still here");
}

TEST_F(Embedded, MiddlewareSurroundsHandlers) {
  Client client = Client::open(path());
  client.enqueue("t", "1", "x");
  std::string said;
  Worker worker(client);
  worker.use([&](const Job&, const auto& next) {
    said += "(";
    next();
    said += ")";
  });
  worker.use([&](const Job& job, const auto& next) {
    said += job.id();
    next();
  });
  worker.handle("t", [&](const Job&) {
    said += "!";
    worker.stop();
  });
  worker.run();
  EXPECT_EQ(said, "(1!)");
  EXPECT_EQ(code_of([&] { worker.run(); }), "invalid");
  EXPECT_EQ(code_of([&] { Worker(client).run(); }), "invalid");
}

TEST_F(Embedded, NoTopicWaitsUntilTheOthersAreEmpty) {
  Client client = Client::open(path());
  for (int i = 0; i < 20; ++i) client.enqueue("busy", std::to_string(i), "x");
  client.enqueue("late", "1", "x");
  Worker worker(client, {.concurrency = 1});
  std::vector<std::string> order;
  const auto note = [&](const delayq::Job& job) {
    order.push_back(job.topic());
    if (order.size() == 21) worker.stop();
  };
  worker.handle("busy", note);
  worker.handle("late", note);
  worker.run();
  EXPECT_LE(std::find(order.begin(), order.end(), "late") - order.begin(), 2);
}

TEST_F(Embedded, AWorkerIsStoppedWhileItWaits) {
  Client client = Client::open(path());
  Worker worker(client, {.wait = 1h});
  worker.handle("never", [](const Job&) {});
  std::future<void> run = std::async(std::launch::async, [&] { worker.run(); });
  client.enqueue("t", "1", "x");
  worker.stop();
  EXPECT_EQ(run.wait_for(kDeadline), std::future_status::ready);
}

TEST_F(Embedded, AHandlerThatDoesNotEndLosesItsJob) {
  Client client = Client::open(path(), {.log = [](delayq::LogLevel, std::string_view) {}});
  client.enqueue("t", "1", "x");
  std::promise<void> release;
  std::shared_future<void> released = release.get_future().share();
  auto done = std::make_shared<std::promise<void>>();
  {
    Worker worker(client, {.concurrency = 2, .grace = 10ms});
    worker.handle("t", [&worker, released, done](const Job&) {
      worker.stop();
      released.wait();
      done->set_value();
    });
    worker.run();
  }
  EXPECT_EQ(client.get("t", "1")->state, "ready");
  release.set_value();
  done->get_future().get();
  EXPECT_EQ(client.get("t", "1")->state, "ready");  // what it returned is dropped
}

TEST_F(Embedded, EachJobIsHandledByOneAtATime) {
  Client client = Client::open(path());
  std::vector<delayq::NewJob> jobs;
  for (int i = 0; i < 500; ++i)
    jobs.push_back({.topic = "t",
                    .id = std::to_string(i),
                    .options = {.process_in = std::chrono::milliseconds(i % 100)}});
  client.enqueue_many(jobs);
  std::mutex mutex;
  std::set<std::string> running;
  std::map<std::string, int> handled;
  Worker first(client, {.concurrency = 4}), second(client, {.concurrency = 4});
  for (Worker* worker : {&first, &second}) {
    worker->handle("t", [&](const Job& job) {
      std::unique_lock lock(mutex);
      EXPECT_TRUE(running.insert(job.id()).second);
      lock.unlock();
      lock.lock();
      running.erase(job.id());
      ++handled[job.id()];
      if (handled.size() < jobs.size()) return;
      first.stop();
      second.stop();
    });
  }
  std::thread other([&] { second.run(); });
  first.run();
  other.join();
  EXPECT_EQ(handled.size(), jobs.size());
  for (const auto& [id, times] : handled) EXPECT_EQ(times, 1) << id;
}

}  // namespace
}  // namespace sdk_test
