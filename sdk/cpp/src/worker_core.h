#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <delayq/worker.h>

#include "sdk/cpp/src/client_core.h"

namespace delayq {
inline namespace v1 {

class WorkerCore;

/// A job between its pop and its end.
class RunningJob {
 public:
  RunningJob(WorkerCore& worker, sdk::Value& popped);

  /// The handler is told once; a later reason does not replace the first, except that the lease is lost.
  void tell(StopReason reason);
  std::optional<StopReason> reason() const;
  /// Asks the server if it is not known.
  Time lease_until();
  Job as_job() { return Job(*this); }

  WorkerCore& worker;
  std::string lease, topic, id, payload;
  std::uint32_t attempt = 0;
  Time due_at{};
  Headers headers;
  std::stop_source stop;
  const sdk::Steady::time_point popped_at = sdk::Steady::now();

  // ---- guarded by the worker's mutex
  bool is_running = false;   ///< its handler was called
  bool is_given_up = false;  ///< what its handler does changes nothing any more
  std::optional<std::chrono::milliseconds> lease_length{};
  std::optional<Time> until{};  ///< by the server's clock
  sdk::Steady::time_point next_look{};
  bool is_looked_after = false;  ///< a look is on its way

 private:
  static constexpr int kNone = -1;
  std::atomic<int> reason_ = kNone;
};

/// What a worker does. Three kinds of threads: run() pops, `concurrency` threads call handlers, and a keeper
/// extends leases. All of them share ownership, since a handler that does not end outlives run().
class WorkerCore : public std::enable_shared_from_this<WorkerCore> {
 public:
  using Steady = sdk::Steady;
  using JobPointer = std::shared_ptr<RunningJob>;

  WorkerCore(std::shared_ptr<ClientCore> client, WorkerOptions options)
      : client_(std::move(client)), options_(options) {}

  void run();
  void stop();
  bool has_begun() const { return has_begun_; }
  ClientCore& client() { return *client_; }

  std::map<std::string, Handler, std::less<>> handlers;
  std::vector<Middleware> middleware;

  // ---- for RunningJob
  Time ask_until(RunningJob& job);

 private:
  class Report;
  class Look;
  friend class Report;
  friend class Look;

  // ---- worker_core.cc: popping, and the end
  void order_topics();
  void pop_until_stopped();
  /// One pop. Returns false if it failed, and it should be tried again later.
  bool pop_once(std::uint32_t count);
  void take(sdk::Value popped);
  std::uint32_t wait_for_room();
  void finish();
  /// Waits until no handler runs. False: not before `deadline`.
  bool wait_for_handlers(Steady::time_point deadline);
  void give_up_running();
  void start_thread(void (WorkerCore::*body)());
  void join_threads();

  // ---- handlers.cc: the threads that call handlers
  void serve();
  void handle(const JobPointer& job);
  void call(RunningJob& job, std::size_t depth);
  void ack(const JobPointer& job);
  void nack(const JobPointer& job, std::optional<std::chrono::milliseconds> delay, std::string_view text,
            bool is_dead);
  /// Gives the job back, uncounted.
  void release(const JobPointer& job);
  /// The same at a server that does not know RELEASE.
  void release_by_nack(const JobPointer& job);
  /// Sends a command about a lease; run() waits for its reply.
  void report(const JobPointer& job, const sdk::Words& words, bool is_release);
  void reported();
  /// The job is over: makes room for another one.
  void leave(const JobPointer& job);

  // ---- keeper.cc: leases
  void keep_leases();
  /// Asks about a job, and extends its lease.
  void look(const JobPointer& job);
  void looked(const Look& look);

  const std::shared_ptr<ClientCore> client_;
  const WorkerOptions options_;
  std::atomic<bool> has_begun_ = false;
  std::atomic<bool> stops_ = false;

  std::mutex mutex_;
  std::condition_variable room_;     ///< a handler ended, or the worker stops
  std::condition_variable work_;     ///< there is a job to handle
  std::condition_variable keep_;     ///< there is a lease to look after
  std::condition_variable settled_;  ///< a report was answered
  std::deque<JobPointer> ready_;     ///< popped, and not handled yet
  std::vector<JobPointer> jobs_;     ///< all that were popped and are not over
  std::uint32_t busy_ = 0;           ///< jobs in ready_ and in handlers
  std::uint64_t reports_ = 0;        ///< on their way
  bool is_over_ = false;             ///< the threads end
  std::unique_ptr<sdk::Pipe> pops_;  ///< of run()
  std::vector<std::string> topics_;  ///< in the order of the next pop; only the thread of run() uses them
  Steady::time_point keeper_wakes_ = Steady::time_point::min();
  std::optional<std::chrono::milliseconds>
      clock_offset_{};  ///< the server's clock minus ours, once it is known

  struct Thread {
    std::thread thread;
    std::shared_ptr<std::atomic<bool>> is_over = std::make_shared<std::atomic<bool>>(false);
  };
  std::vector<Thread> threads_;  ///< of run()
};

}  // namespace v1
}  // namespace delayq
