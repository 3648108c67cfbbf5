#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include <delayq/client.h>
#include <delayq/error.h>

namespace delayq {
inline namespace v1 {

/// Why a handler is told to stop.
enum class StopReason : std::uint8_t {
  cancelled,   ///< the job was cancelled. What the handler finishes is done; a failure is not retried
  lease_lost,  ///< somebody else may have the job now; what the handler returns changes nothing
  stopping,    ///< the worker stops, and its grace is over. A failure gives the job back, uncounted
};
DELAYQ_PUBLIC std::string_view name_of(StopReason reason) noexcept;

class RunningJob;

/// A job in its handler. Valid until the handler returns.
class DELAYQ_PUBLIC Job {
 public:
  const std::string& topic() const;
  const std::string& id() const;
  const std::string& payload() const;
  /// The number of this attempt: 1 for the first.
  std::uint32_t attempt() const;
  Time due_at() const;
  const Headers& headers() const;
  /// The end of the lease, as of now, by the server's clock. The worker extends it while the handler runs.
  /// May ask the server.
  Time lease_until() const;
  /// Stop is requested when the handler should end early; stop_reason() says why. A handler that takes long
  /// should look at it, or wait with it (std::condition_variable_any takes it).
  std::stop_token stop_token() const;
  /// Empty: go on.
  std::optional<StopReason> stop_reason() const;

 private:
  friend class RunningJob;
  explicit Job(RunningJob& running) : running_(running) {}
  RunningJob& running_;
};

/// Returns: the job is done. Throws: the attempt failed, and the job is retried as its backoff says, after
/// the delay of a RetryIn, or not at all after a Dead.
using Handler = std::function<void(const Job&)>;
/// What surrounds every handler: `[](const Job& job, const auto& next) { ...; next(); ... }`.
using Middleware = std::function<void(const Job&, const std::function<void()>& next)>;

struct WorkerOptions {
  unsigned concurrency = 10;                  ///< how many handlers run at once
  std::optional<Duration> lease{};            ///< overrides the job's and the topic's; at least 100 ms
  Duration wait = std::chrono::seconds{30};   ///< how long one request waits for a job
  Duration grace = std::chrono::seconds{10};  ///< for handlers that run when the worker is stopped
};

class WorkerCore;

/// Runs handlers for the jobs of some topics, on threads of its own.
///
/// It extends leases while handlers run, acks jobs whose handlers return, and goes on by itself when the
/// server was away. A worker that is destroyed or killed leaves its jobs to others, when their leases end.
class DELAYQ_PUBLIC Worker {
 public:
  explicit Worker(Client client, WorkerOptions options = {});
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// One handler for each topic. It is called from several threads at once. REQUIRES: run() was not called
  /// yet.
  Worker& handle(std::string topic, Handler handler);
  /// The first one is outermost. REQUIRES: run() was not called yet.
  Worker& use(Middleware middleware);

  /// Works until stop() is called; then handlers have `grace` to finish. When it returns, every result has
  /// reached the server. Throws Error when the server refuses to hand out jobs (unauthorized, forbidden,
  /// invalid).
  void run();
  /// The same, and SIGINT or SIGTERM stops it, too. Blocks these signals in the calling thread: call it from
  /// main(), before other threads are started that should not get them.
  void run_until_signal();
  /// From any thread, also from a handler. Returns at once.
  void stop();

 private:
  std::shared_ptr<WorkerCore> core_;
};

}  // namespace v1
}  // namespace delayq
