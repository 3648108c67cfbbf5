#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <delayq/error.h>

namespace delayq {
inline namespace v1 {

/// A point on the wall clock.
using Time = std::chrono::system_clock::time_point;
using Duration = std::chrono::milliseconds;
/// Names and values that travel with a job.
using Headers = std::map<std::string, std::string, std::less<>>;

// ---- what a job may say besides its topic, id and payload

/// What happens to a job whose id is in use by a job that is delayed, ready or reserved.
enum class OnConflict : std::uint8_t {
  replace,  ///< it takes the place of the other: payload, time and options
  keep,     ///< the other one stays, and nothing is stored
  reject,   ///< the call fails with ErrorCode::conflict
};

/// Everything has a default, so name only what you need: `{.process_in = 30min, .group = "user:1"}`.
struct EnqueueOptions {
  std::optional<Duration> process_in{};     ///< from now; without any time the job is due at once
  std::optional<Time> process_at{};         ///< a moment; one that has passed means at once
  std::optional<std::uint32_t> priority{};  ///< a lower number is handed out first; 1024 is the usual one
  std::optional<std::uint32_t> retry{};     ///< how often the job is tried in all; 0: no limit
  std::string backoff{};              ///< between attempts: "10s", "10s,1m,10m", "exponential:1s:2:1h:0.1"
  std::optional<Duration> timeout{};  ///< the lease: how long one attempt may be silent
  std::string group{};                ///< for cancel_group()
  std::string callback{};             ///< URL that the server calls instead of handing the job to a worker
  Headers headers{};
  OnConflict on_conflict = OnConflict::replace;
};

/// A job for enqueue_many(). Without an id it gets a UUID of version 7.
struct NewJob {
  std::string topic{};
  std::string id{};
  std::string payload{};
  EnqueueOptions options{};
};

/// A new time for a job: exactly one of the two.
struct When {
  std::optional<Duration> process_in{};
  std::optional<Time> process_at{};
};

namespace option {
struct ProcessIn {
  Duration delay;
  void operator()(EnqueueOptions& options) const { options.process_in = delay; }
  operator When() const { return {.process_in = delay}; }  // NOLINT(google-explicit-constructor)
};
struct ProcessAt {
  Time when;
  void operator()(EnqueueOptions& options) const { options.process_at = when; }
  operator When() const { return {.process_at = when}; }  // NOLINT(google-explicit-constructor)
};
/// Writes one value into the options of a job: what priority() and its like return.
template <class T, T EnqueueOptions::*kMember>
struct Set {
  T value;
  void operator()(EnqueueOptions& options) const { options.*kMember = value; }
};
struct AddHeader {
  std::string name, value;
  void operator()(EnqueueOptions& options) const { options.headers[name] = value; }
};
template <class T>
concept Option = requires(const T& option, EnqueueOptions& options) {
  option(options);
};
}  // namespace option

inline option::ProcessIn process_in(Duration delay) { return {delay}; }
inline option::ProcessAt process_at(Time when) { return {when}; }
inline auto priority(std::uint32_t number) {
  return option::Set<std::optional<std::uint32_t>, &EnqueueOptions::priority>{number};
}
inline auto retry(std::uint32_t attempts) {
  return option::Set<std::optional<std::uint32_t>, &EnqueueOptions::retry>{attempts};
}
inline auto backoff(std::string spec) {
  return option::Set<std::string, &EnqueueOptions::backoff>{std::move(spec)};
}
inline auto timeout(Duration lease) {
  return option::Set<std::optional<Duration>, &EnqueueOptions::timeout>{lease};
}
inline auto group(std::string name) {
  return option::Set<std::string, &EnqueueOptions::group>{std::move(name)};
}
inline auto callback(std::string url) {
  return option::Set<std::string, &EnqueueOptions::callback>{std::move(url)};
}
inline auto header(std::string name, std::string value) {
  return option::AddHeader{std::move(name), std::move(value)};
}
inline auto on_conflict(OnConflict policy) {
  return option::Set<OnConflict, &EnqueueOptions::on_conflict>{policy};
}

/// The id of a stored job, or why it was not stored.
struct EnqueueResult {
  std::string id{};
  std::optional<Error> error{};

  bool ok() const { return !error.has_value(); }
};

/// Called once with the result. It runs on a thread of the library, which waits meanwhile: do not block
/// there. From inside, the blocking functions fail with ErrorCode::invalid.
using EnqueueCallback = std::function<void(EnqueueResult)>;

// ---- what is known of a job

/// What a cancel has found.
enum class Dequeued : std::uint8_t {
  cancelled,  ///< it waited, and is gone
  reserved,   ///< it is running: it runs to its end, and will not be retried
  done,
  dead,
  unknown,
};
DELAYQ_PUBLIC std::string_view name_of(Dequeued result) noexcept;

/// A job as it is stored now.
struct JobInfo {
  std::string topic{}, id{};
  std::string state{};  ///< "delayed", "ready", "reserved", "done" or "dead"
  std::string payload{};
  Time due_at{}, pushed_at{};
  std::uint32_t attempts = 0;
  std::uint32_t priority = 0;
  std::string group{};
  std::optional<Time> until{};  ///< the end of the lease, or of the time for which a finished job is kept
  std::string callback{};
  std::string outcome{};  ///< the last error
  bool cancel_requested = false;
  Headers headers{};
};

// ---- recurring jobs

/// When an occurrence comes while the job of the one before is still there.
enum class Overlap : std::uint8_t { allow, skip, replace };
/// What is made of occurrences that were missed, for example while the server was down.
enum class Missed : std::uint8_t { one, skip, all };

struct ScheduleOptions {
  std::string zone{};                   ///< of a cron rule, as in "Asia/Shanghai"; empty: UTC
  std::optional<Time> start{};          ///< no occurrence before; an interval counts from it
  std::optional<Time> end{};            ///< no occurrence after
  std::optional<std::uint64_t> runs{};  ///< how many jobs are made in all
  Duration jitter{};                    ///< each job is due up to so much later
  Overlap overlap = Overlap::allow;
  Missed missed = Missed::one;
  /// Of its jobs. Their time, and what happens on a conflict, are the schedule's business: these are ignored.
  EnqueueOptions job{};
};

struct Schedule {
  std::string name{};
  std::string state{};  ///< "active", "paused" or "ended"
  std::string topic{};
  std::string payload{};  ///< only get_schedule() fills in the payload and the headers
  std::optional<Duration> every{};
  std::string cron{}, zone{};
  std::optional<Time> start{}, end{};
  std::optional<std::uint64_t> runs{};
  Duration jitter{};
  std::string overlap{}, missed{};
  std::optional<Time> next_at{};
  std::string next_local{};  ///< the same by the clock of the zone
  std::uint64_t made = 0, skipped = 0, missed_count = 0;
  std::string result{};  ///< of every() and cron(): "created", "updated" or "unchanged"
  std::optional<std::uint32_t> priority{}, retry{};
  std::string backoff{};
  std::optional<Duration> timeout{};
  std::string group{}, callback{};
  Headers headers{};
};

/// The job that run_schedule() has made.
struct ScheduleRun {
  std::string topic{}, id{}, state{};
  Time due_at{};
};

struct Occurrence {
  Time at{};
  std::string local{};  ///< by the clock of the zone, with its offset
};

/// A rule that need not be stored: a cron rule, or an interval.
struct Rule {
  std::string cron{}, zone{};
  std::optional<Duration> every{};
};

// ---- the client

enum class LogLevel : std::uint8_t { debug, info, warning, error };
/// Gets what an operator may want to know: lost connections, jobs that were given back. Called from any
/// thread.
using Log = std::function<void(LogLevel, std::string_view)>;

struct TlsOptions {
  bool enabled = false;
  std::string ca_file{};      ///< empty: what the system trusts
  std::string server_name{};  ///< for the check of the certificate; empty: the host of the address
  bool verify = true;
};

struct ClientOptions {
  std::string token{};
  std::string token_name{};  ///< optional; if given, it must be the name of the token
  TlsOptions tls{};
  Duration connect_timeout = std::chrono::seconds{5};
  /// How long to wait for the answer to one request; a worker adds what its pop waits.
  Duration timeout = std::chrono::seconds{30};
  /// How long a call goes on trying while the server is away or refuses with a retryable error. What is not
  /// safe to send twice is tried again only if it was not sent. 0: never.
  Duration retry_for = std::chrono::seconds{15};
  Log log{};  ///< empty: warnings and errors go to stderr
};

/// Settings of one topic of an embedded queue, or of "*" for all.
struct TopicOptions {
  std::optional<std::uint32_t> attempts{};
  std::string backoff{};  ///< as in EnqueueOptions
  std::optional<Duration> lease{};
  std::optional<std::uint32_t> concurrency{};  ///< how many of its jobs may run at once; 0: no limit
  std::optional<Duration> keep_done{}, keep_dead{};
};

struct EmbeddedOptions {
  /// true: an answer means that the job is on disk (fdatasync) and survives power loss. false: it is written;
  /// the last 50 ms may be lost with the power, and nothing with the process.
  bool sync = true;
  std::size_t max_payload = std::size_t{1} << 20;
  std::optional<std::uint64_t> max_jobs{};
  std::uint64_t min_free_disk = std::uint64_t{256} << 20;  ///< below, new jobs are refused with disk_full
  std::map<std::string, TopicOptions, std::less<>> topics{};
  Duration retry_for = std::chrono::seconds{15};  ///< as in ClientOptions
  Log log{};
};

class ClientCore;

/// A delay queue: a server's, or one inside this program.
///
/// Thread-safe: use one client for the whole program. Calls that are made at the same time share batches and
/// commits, so many threads are faster than one. Copies share one connection; it is closed with the last of
/// them, when everything that was given to it is answered.
///
/// A function that has returned has done its work, durably. All of them throw Error.
class DELAYQ_PUBLIC Client {
 public:
  /// A client of the server at "host:port" (its RESP port). Connects with the first call.
  explicit Client(std::string_view address = "127.0.0.1:9278", ClientOptions options = {});
  /// Opens the directory as an embedded queue: the engine runs in this process, on threads of its own, with
  /// the rules and the guarantees of the server and without one. Throws ErrorCode::unavailable if another
  /// process, or another client of this one, has the directory open. Do not fork() while it is open.
  static Client open(const std::string& directory, EmbeddedOptions options = {});
  ~Client();
  Client(const Client&);
  Client& operator=(const Client&);
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;

  // ---- producers
  /// Stores a job: `enqueue("order", "order:1", "...", process_in(30min), group("user:1"))`. Returns its id.
  /// The same id again replaces the job, unless on_conflict says otherwise.
  template <option::Option... Options>
  std::string enqueue(std::string_view topic, std::string_view id, std::string_view payload,
                      const Options&... options) {
    EnqueueOptions all;
    (options(all), ...);
    return enqueue(topic, id, payload, all);
  }
  std::string enqueue(std::string_view topic, std::string_view id, std::string_view payload,
                      const EnqueueOptions& options);
  /// The same without waiting. When too much is on its way, it waits until there is room.
  void enqueue_async(const NewJob& job, EnqueueCallback done);
  std::future<std::string> enqueue_async(const NewJob& job);
  /// Stores many jobs, with one result for each. One that is refused does not stop the others.
  std::vector<EnqueueResult> enqueue_many(std::span<const NewJob> jobs);

  /// Cancels a job.
  Dequeued dequeue(std::string_view topic, std::string_view id);
  /// Cancels all jobs of a group, in all topics; running ones are not retried. Returns how many there were.
  std::uint64_t cancel_group(std::string_view group);
  /// Moves a delayed, ready or dead job to another time: `reschedule("order", "order:1", process_in(1h))`.
  void reschedule(std::string_view topic, std::string_view id, const When& when);
  std::optional<JobInfo> get(std::string_view topic, std::string_view id);

  // ---- recurring jobs
  Schedule every(std::string_view name, Duration interval, std::string_view topic, std::string_view payload,
                 const ScheduleOptions& options = {});
  Schedule cron(std::string_view name, std::string_view rule, std::string_view topic,
                std::string_view payload, const ScheduleOptions& options = {});
  std::optional<Schedule> get_schedule(std::string_view name);
  void remove_schedule(std::string_view name);
  Schedule pause_schedule(std::string_view name);
  Schedule resume_schedule(std::string_view name);
  /// Makes a job now, in addition to the occurrences.
  ScheduleRun run_schedule(std::string_view name);
  /// The next occurrences of a schedule, and of a rule that is not stored.
  std::vector<Occurrence> next(std::string_view name, std::uint32_t count = 5);
  std::vector<Occurrence> next(const Rule& rule, std::uint32_t count = 5, std::optional<Time> from = {});

  /// Waits until all that was given to this client is answered, and closes it. Later calls fail with
  /// ErrorCode::stopping.
  void close();

 private:
  friend class Worker;
  explicit Client(std::shared_ptr<ClientCore> core);
  std::shared_ptr<ClientCore> core_;
};

}  // namespace v1
}  // namespace delayq
