#include "engine/journal/threaded_io.h"

#include <utility>

namespace delayq::journal {

ThreadedIo::ThreadedIo(Clock clock) : clock_(std::move(clock)) {
  for (Worker& worker : workers_) {
    worker.thread = std::thread([this, &worker] { serve(worker); });
  }
}

ThreadedIo::~ThreadedIo() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
    for (Worker& worker : workers_) worker.has_tasks.notify_one();
  }
  for (Worker& worker : workers_) worker.thread.join();
}

void ThreadedIo::run(Lane lane, Step work, Step done) {
  Worker& worker = workers_[static_cast<size_t>(lane)];
  const std::lock_guard lock(mutex_);
  ++unfinished_;
  worker.tasks.push_back({std::move(work), std::move(done)});
  worker.has_tasks.notify_one();
}

void ThreadedIo::serve(Worker& worker) {
  std::unique_lock lock(mutex_);
  for (;;) {
    worker.has_tasks.wait(lock, [&] { return stops_ || !worker.tasks.empty(); });
    if (worker.tasks.empty()) return;
    Task task = std::move(worker.tasks.front());
    worker.tasks.pop_front();
    lock.unlock();
    task.work();
    lock.lock();
    done_.push_back(std::move(task.done));
    any_done_ = true;
    has_done_.notify_one();
    if (wakeup_) wakeup_();
  }
}

bool ThreadedIo::poll() {
  if (!any_done_) return false;
  std::vector<Step> steps;
  {
    const std::lock_guard lock(mutex_);
    steps.swap(done_);
    any_done_ = false;
  }
  for (Step& step : steps) step();
  const std::lock_guard lock(mutex_);
  unfinished_ -= steps.size();
  return !steps.empty();
}

void ThreadedIo::drain() {
  for (;;) {
    poll();
    std::unique_lock lock(mutex_);
    if (unfinished_ == 0) return;
    has_done_.wait(lock, [&] { return any_done_.load(); });
  }
}

void ThreadedIo::set_wakeup(std::function<void()> wakeup) {
  const std::lock_guard lock(mutex_);
  wakeup_ = std::move(wakeup);
}

}  // namespace delayq::journal
