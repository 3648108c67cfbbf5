#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

/// Functions and classes with this mark are the interface of libdelayq.so.
#define DELAYQ_PUBLIC __attribute__((visibility("default")))

namespace delayq {
inline namespace v1 {

/// What went wrong, as far as a caller can tell the difference. The same codes in every client library.
enum class ErrorCode : std::uint8_t {
  invalid,       ///< the request is malformed or out of range; the message names the field
  too_large,     ///< a payload or a batch is above its limit
  conflict,      ///< the id is in use, or the job is in a state that does not allow this
  not_found,     ///< no such job or schedule
  stale_lease,   ///< the lease is not the current one any more
  overloaded,    ///< a bound was reached; try again later
  disk_full,     ///< the journal's disk has no room for new jobs
  unavailable,   ///< no connection, no answer in time, or the engine cannot work now
  stopping,      ///< the server (or the embedded queue) is shutting down
  unauthorized,  ///< no token, or a wrong one
  forbidden,     ///< the token does not allow this
  corrupt,       ///< stored data failed its checksum
  internal,      ///< a bug, or an answer that is not understood
};

/// "too_large", "conflict" ...: as in problem documents, logs and the other client libraries.
DELAYQ_PUBLIC std::string_view name_of(ErrorCode code) noexcept;

/// Thrown by every function that fails. what() is the message.
class DELAYQ_PUBLIC Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message, std::chrono::milliseconds retry_after = {})
      : std::runtime_error(message), code_(code), retry_after_(retry_after) {}
  ~Error() override;

  ErrorCode code() const noexcept { return code_; }
  /// Whether the same request may succeed later without being changed.
  bool retryable() const noexcept;
  /// When it is worth trying again, if the server said so.
  std::optional<std::chrono::milliseconds> retry_after() const noexcept {
    if (retry_after_.count() == 0) return std::nullopt;
    return retry_after_;
  }

 private:
  ErrorCode code_;
  std::chrono::milliseconds retry_after_;
};

/// A handler throws this: the attempt failed, and the next one begins after `delay`.
class DELAYQ_PUBLIC RetryIn : public std::runtime_error {
 public:
  explicit RetryIn(std::chrono::milliseconds delay, const std::string& reason = {})
      : std::runtime_error(reason), delay_(delay) {}
  ~RetryIn() override;
  std::chrono::milliseconds delay() const noexcept { return delay_; }

 private:
  std::chrono::milliseconds delay_;
};

/// A handler throws this: the job is dead at once, whatever attempts are left.
class DELAYQ_PUBLIC Dead : public std::runtime_error {
 public:
  explicit Dead(const std::string& reason) : std::runtime_error(reason) {}
  ~Dead() override;
};

}  // namespace v1
}  // namespace delayq
