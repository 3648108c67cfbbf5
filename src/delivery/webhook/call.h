#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <absl/functional/any_invocable.h>

#include "core/histogram.h"
#include "core/time.h"
#include "queue/delivery.h"
#include "queue/job_headers.h"
#include "queue/job_options.h"
#include "queue/settings.h"
#include "signing/signature.h"

namespace delayq::webhook {

/// The header lines of one request, kept in one string: there are thousands of calls a second, each with a
/// dozen lines.
class HeaderLines {
 public:
  /// Adds nothing for an empty value. A line end or another control character in either would let a job write
  /// headers of its own: then the lines are not valid(), and the call is refused (CallError::kBadCall).
  void add(std::string_view name, std::string_view value);
  /// The same, but an empty value is sent, too.
  void add_even_empty(std::string_view name, std::string_view value);
  void reserve(size_t bytes) { lines_.reserve(bytes); }

  bool valid() const { return is_valid_; }
  /// The value of the first line with this name, for tests and messages; names are compared as they are.
  std::optional<std::string_view> find(std::string_view name) const;
  /// "name: value", or "name;" for an empty value, with a zero byte after each line: libcurl's form.
  const std::string& lines() const { return lines_; }

 private:
  std::string lines_;
  bool is_valid_ = true;
};

/// One HTTP request.
struct Call {
  std::string url;
  std::string method = "POST";
  HeaderLines headers;  ///< without Host, Content-Length and Connection: the caller adds those
  std::string body;
  Millis connect_timeout{};  ///< resolving, connecting and TLS; zero: the total timeout alone counts
  Millis total_timeout{};    ///< until the answer is there; zero: the caller's own default
  /// How long the call may wait for its turn. A call that would begin later is not made (CallError::kNoRoom).
  /// Zero: for as long as it takes.
  Millis start_within{};
};

/// Why there is no answer.
enum class CallError : uint8_t {
  kNone,            ///< there is an answer, whatever its status
  kBadCall,         ///< the URL or a header is malformed; trying again cannot help
  kRefusedAddress,  ///< the host is at an address that must not be called
  kResolve,         ///< the host's name could not be resolved
  kConnect,         ///< the connection was refused, or there is no route
  kTls,             ///< no secure connection: unknown authority, wrong name, expired
  kTimeout,         ///< the connect or the total timeout passed
  kBroken,          ///< the connection ended, or the answer is not HTTP
  kNoRoom,          ///< more calls at once than Caller::room() allowed, or too late; nothing was sent
};

/// A word for logs, figures and outcomes: "timeout".
constexpr std::string_view name_of(CallError error) {
  constexpr std::array<std::string_view, 9> kNames{
      "none", "bad_call", "refused_address", "resolve", "connect", "tls", "timeout", "broken", "no_room"};
  return kNames[static_cast<size_t>(error)];
}

/// The value of a `Retry-After` header: a number of seconds, or a moment.
struct RetryAfter {
  std::optional<Millis> delay;
  std::optional<Moment> at;

  /// From `now` on; never negative.
  Millis from(Moment now) const;
  bool operator==(const RetryAfter&) const = default;
};

/// Reads seconds ("120"), or a date in one of HTTP's three forms. Returns nothing for anything else, as if
/// the header were not there. More than a year becomes a year.
std::optional<RetryAfter> parse_retry_after(std::string_view value);

/// How many bytes of an answer are kept.
inline constexpr size_t kAnswerBytes = 1024;

/// The result of a call.
struct CallResult {
  int status = 0;                    ///< of the answer; zero when there is none
  std::chrono::microseconds took{};  ///< since the caller's thread began the call
  std::string answer;                ///< the first kAnswerBytes of the answer's body
  bool is_answer_cut = false;        ///< there was more
  CallError error = CallError::kNone;
  std::string error_text;  ///< for people to read; empty without an error
  std::optional<RetryAfter> retry_after;

  bool is_answered() const { return error == CallError::kNone; }
};

/// The results of calls in a fixed number of classes, for the metrics.
enum class CallClass : uint8_t {
  k1xx,
  k2xx,
  k3xx,
  k4xx,
  k5xx,
  kRefused,
  kResolve,
  kConnect,
  kTls,
  kTimeout,
  kOther
};
inline constexpr size_t kCallClassCount = 11;
inline constexpr std::array<std::string_view, kCallClassCount> kCallClassNames{
    "1xx", "2xx", "3xx", "4xx", "5xx", "refused_address", "resolve", "connect", "tls", "timeout", "other"};

CallClass class_of(const CallResult& result);

/// What the webhook sink has done since the start, and does now.
struct WebhookFigures {
  std::array<uint64_t, kCallClassCount> calls{};
  uint64_t delivered = 0;   ///< jobs whose call was a success
  uint64_t failed = 0;      ///< to be tried again, or dead, as the queue decides
  uint64_t given_back = 0;  ///< taken and not called: a full or dead host, a stop
  uint64_t in_flight = 0;   ///< now
  uint64_t waiting = 0;     ///< now: taken, and waiting for a place at their host
  uint64_t open_hosts = 0;  ///< now
  Histogram<28> micros;     ///< how long calls took
};

/// Makes HTTP calls.
///
/// A call is given with call() and sent with the next poll(). Its result is collected by hear() and handed
/// out by the poll() after that: exactly once, never from inside call(). So all calls of a turn go to the
/// thread that makes them with one lock and one wake-up, and so do all results on the way back.
///
/// Results come in any order. A call without a result when the caller is destroyed never gets one; its
/// receiver may have got it or not.
///
/// Threads: all methods are called from one thread. Only the function given to set_wakeup() is called from
/// another.
class Caller {
 public:
  using Done = absl::AnyInvocable<void(CallResult)>;

  virtual ~Caller() = default;

  /// Makes this call, however many others the same host has: the sink limits that. Without room the result is
  /// CallError::kNoRoom.
  virtual void call(Call call, Done done) = 0;

  /// Collects the calls that have ended. The clock is read between hear() and poll(), at a moment at which
  /// all those answers were there: a delay that an answer asks for counts from it.
  virtual void hear() = 0;

  /// Runs `done` of the calls that hear() collected, which may make calls but must not poll(), and sends the
  /// calls since the last poll(). Returns whether any call ended.
  virtual bool poll() = 0;

  /// How many more calls may be given now.
  virtual size_t room() const = 0;

  /// `wakeup` is called from the caller's thread when there is something new for hear(). Set before the first
  /// call.
  virtual void set_wakeup(std::function<void()> wakeup) = 0;
};

/// Where a job's call goes and what it looks like. What the job says overrides what its topic says, and that
/// overrides the default of the format.
/// The views are those of the options and settings.
struct CallRoute {
  std::string_view url;      ///< empty: neither the job nor its topic has one
  bool is_jobs_own = false;  ///< the URL is the job's, not its topic's
  std::string_view method;   ///< by default POST, and PUT for the callback API
  CallbackFormat format = CallbackFormat::kWebhook;
  /// Header lines that belong to the URL: those of the job to its own, those of the topic to the topic's.
  std::vector<JobHeader> headers{};
};
CallRoute route_of(const JobOptions& options, const EffectiveSettings& topic);

/// The id of a job's message: the same for every attempt, and different when a job of that id is pushed
/// again. Computed from the job alone, so that nothing must be stored.
std::string message_id(const Job& job);

/// The request, without timeouts. `signer` signs what the receiver will get; a format without signatures has
/// none.
Call make_call(const Job& job, const JobOptions& options, const CallRoute& route, signing::Signer& signer,
               Moment now);

/// The fate of a job whose call has ended. The queue decides how often and when it is tried again;
/// `retry_after` is the delay that the receiver asked for.
enum class CallFate : uint8_t { kDone, kFailed, kDead };

struct CallOutcome {
  CallFate fate = CallFate::kFailed;
  std::optional<Millis> retry_after{};
  /// The host itself failed, so the next call to it is likely to fail as well.
  bool host_failed = false;
  /// Kept with the job: "200 in 12 ms: first bytes of the answer".
  std::string text;
};

/// The longest wait that a receiver may ask for.
inline constexpr Millis kLongestRetryAfter = std::chrono::hours{24};

/// 2xx is a success (for the callback API only with the body `ok`), 410 makes the job dead, and everything
/// else, redirects included, has failed. Retry-After counts with 429 and 503.
CallOutcome outcome_of(const CallResult& result, CallbackFormat format, Moment now);

}  // namespace delayq::webhook
