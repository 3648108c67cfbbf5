#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/time.h"

namespace delayq::webhook {

/// The header lines of one request, kept in one piece of memory: thousands of calls a second each have a
/// dozen.
class HeaderLines {
 public:
  /// Nothing at all for an empty value. A line end or another control character in either would let a job
  /// write headers of its own: then the lines are not valid(), and the call is refused (CallError::kBadCall).
  void add(std::string_view name, std::string_view value);
  void reserve(size_t bytes) { lines_.reserve(bytes); }

  bool valid() const { return is_valid_; }
  /// The value of the first line with this name, for tests and messages; names are compared as they are.
  std::optional<std::string_view> find(std::string_view name) const;
  /// "name: value" with a zero byte behind each line.
  const std::string& lines() const { return lines_; }

 private:
  std::string lines_;
  bool is_valid_ = true;
};

/// One HTTP request.
struct Call {
  std::string url;
  std::string method = "POST";
  HeaderLines headers;  ///< Host, Content-Length and Connection are the caller's own business
  std::string body;
  Millis connect_timeout{};  ///< resolving, connecting and TLS; zero: the total timeout alone counts
  Millis total_timeout{};    ///< until the answer is there; zero: the caller's own default
  /// How long it may wait for its turn, from when it leaves; a call that is later is not begun
  /// (CallError::kNoRoom). Zero: for as long as it takes.
  Millis start_within{};
};

/// Why there is no answer, as far as anybody has to tell the difference.
enum class CallError : uint8_t {
  kNone,            ///< there is an answer, whatever its status
  kBadCall,         ///< no such URL can be called, or a header line is none; trying again cannot help
  kRefusedAddress,  ///< the host is at an address that must not be called
  kResolve,         ///< the host's name could not be resolved
  kConnect,         ///< nobody listens there, or the way there is closed
  kTls,             ///< no secure connection: unknown authority, wrong name, expired
  kTimeout,         ///< the connect or the total timeout passed
  kBroken,          ///< the connection ended, or what came is not HTTP
  kNoRoom,          ///< more calls at once than Caller::room() allowed, or too late; nothing was sent
};

/// A word for logs, figures and outcomes: "timeout".
std::string_view name_of(CallError error);

/// What a `Retry-After` header says: a number of seconds, or a moment.
struct RetryAfter {
  std::optional<Millis> delay;
  std::optional<Moment> at;

  /// From `now` on; never negative.
  Millis from(Moment now) const;
  bool operator==(const RetryAfter&) const = default;
};

/// How many bytes of an answer are kept.
inline constexpr size_t kAnswerBytes = 1024;

/// What came of a call.
struct CallResult {
  int status = 0;                    ///< of the answer; zero when there is none
  std::chrono::microseconds took{};  ///< from the moment the caller's thread began it
  std::string answer;                ///< the first kAnswerBytes of the answer's body, as they came
  bool is_answer_cut = false;        ///< there was more
  CallError error = CallError::kNone;
  std::string error_text;  ///< a sentence for a person; empty without an error
  std::optional<RetryAfter> retry_after;

  bool is_answered() const { return error == CallError::kNone; }
};

}  // namespace delayq::webhook
