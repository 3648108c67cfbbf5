#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "engine/journal/posix_disk.h"

namespace delayq::journal {
namespace {

TEST(ThreadedIo, work_runs_elsewhere_and_done_runs_here) {
  ThreadedIo io;
  std::thread::id worker;
  std::thread::id poller;
  io.run(
      Lane::kWrite, [&] { worker = std::this_thread::get_id(); },
      [&] { poller = std::this_thread::get_id(); });
  io.drain();
  EXPECT_NE(worker, std::this_thread::get_id());
  EXPECT_EQ(poller, std::this_thread::get_id());
}

TEST(ThreadedIo, one_lane_keeps_its_order) {
  ThreadedIo io;
  std::vector<int> worked;
  std::vector<int> done;
  for (int i = 0; i < 1000; ++i) {
    io.run(
        Lane::kRead, [&worked, i] { worked.push_back(i); }, [&done, i] { done.push_back(i); });
  }
  io.drain();
  ASSERT_EQ(worked.size(), 1000U);
  EXPECT_TRUE(std::is_sorted(worked.begin(), worked.end()));
  EXPECT_EQ(done, worked);
}

TEST(ThreadedIo, the_lanes_do_not_wait_for_each_other) {
  ThreadedIo io;
  std::promise<void> gate;
  std::promise<void> passed;
  io.run(
      Lane::kWrite, [&] { gate.get_future().wait(); }, [] {});
  io.run(
      Lane::kRead, [&] { passed.set_value(); }, [] {});
  EXPECT_EQ(passed.get_future().wait_for(std::chrono::seconds{30}), std::future_status::ready);
  gate.set_value();
  io.drain();
}

TEST(ThreadedIo, done_may_hand_out_new_work_and_drain_waits_for_it) {
  ThreadedIo io;
  int rounds = 0;
  std::function<void()> again = [&] {
    if (++rounds < 50)
      io.run(
          rounds % 2 == 0 ? Lane::kRead : Lane::kWrite, [] {}, [&] { again(); });
  };
  again();
  io.drain();
  EXPECT_EQ(rounds, 50);
  EXPECT_FALSE(io.poll());
}

TEST(ThreadedIo, wakes_when_there_is_something_to_poll) {
  std::mutex mutex;
  std::condition_variable changed;
  int wakes = 0;
  ThreadedIo io;
  io.set_wakeup([&] {
    const std::lock_guard lock(mutex);
    ++wakes;
    changed.notify_one();
  });
  io.run(
      Lane::kWrite, [] {}, [] {});
  std::unique_lock lock(mutex);
  ASSERT_TRUE(changed.wait_for(lock, std::chrono::seconds{30}, [&] { return wakes > 0; }));
  lock.unlock();
  EXPECT_TRUE(io.poll());
}

TEST(ThreadedIo, its_end_finishes_the_work_and_drops_the_rest) {
  std::atomic<int> worked = 0;
  int done = 0;
  {
    ThreadedIo io;
    for (int i = 0; i < 100; ++i)
      io.run(
          Lane::kWrite, [&] { ++worked; }, [&] { ++done; });
  }
  EXPECT_EQ(worked, 100);
  EXPECT_EQ(done, 0);
}

TEST(ThreadedIo, has_the_clock_that_it_was_given) {
  EXPECT_EQ(ThreadedIo().clock(), std::chrono::microseconds{});
  EXPECT_EQ(ThreadedIo([] { return std::chrono::microseconds{42}; }).clock(), std::chrono::microseconds{42});
}

}  // namespace
}  // namespace delayq::journal
