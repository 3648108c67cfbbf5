#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include <delayq/client.h>

#include "sdk/cpp/src/embedded.h"
#include "sdk/cpp/src/net_pipe.h"
#include "sdk/cpp/src/pipe.h"

namespace delayq {
inline namespace v1 {

/// What the copies of a client share.
class ClientCore {
 public:
  ClientCore(std::string_view address, ClientOptions options);
  ClientCore(const std::string& directory, EmbeddedOptions options);
  ~ClientCore();

  /// One more connection. It must be gone before this object is.
  std::unique_ptr<sdk::Pipe> make_pipe() const;
  sdk::Pipe& pipe() { return *pipe_; }

  /// Sends one command and waits for its reply. Throws what the reply says if it is an error.
  /// Sends a command and waits for its reply, which must be of this type. Throws the error that the reply is.
  sdk::Value ask(const sdk::Words& words, bool is_safe_to_repeat, sdk::Value::Type type,
                 bool may_be_null = false);
  /// Fills in how long the call may take.
  void set_times(sdk::Call& call) const;
  /// The longest that a blocking call may last.
  sdk::Steady::time_point last_moment() const;
  void log(LogLevel level, std::string_view what) const {
    if (log_) log_(level, what);
  }
  bool is_embedded() const { return engine_ != nullptr; }
  std::size_t max_payload() const { return max_payload_; }
  std::chrono::milliseconds timeout() const { return timeout_; }
  std::chrono::milliseconds retry_for() const { return retry_for_; }
  void close();

 private:
  Log log_;
  std::chrono::milliseconds timeout_;
  std::chrono::milliseconds retry_for_;
  std::size_t max_payload_ = std::size_t{512} << 20;
  std::optional<sdk::Remote> remote_;
  std::shared_ptr<embedded::Engine> engine_;
  std::unique_ptr<sdk::Pipe> pipe_;
  std::mutex closing_;
};

}  // namespace v1

namespace sdk {

/// The headers of the job whose handler runs on this thread, or null.
extern thread_local const Headers* running_headers;

/// The words of a PUSH. What they refer to must outlive them.
class Push {
 public:
  /// Throws ErrorCode::invalid or ErrorCode::too_large for what no server can be asked.
  Push(const ClientCore& core, std::string_view topic, std::string_view id, std::string_view payload,
       const EnqueueOptions& options);
  const Words& words() const { return words_; }

 private:
  Words words_;
};

/// Whether a job can be given to the engine in this process without words; see Call::jobs.
bool needs_no_words(const ClientCore& core, const EnqueueOptions& options);
/// Appends the job to `call.jobs`. Throws as Push() does, and then the call is as before.
/// REQUIRES: needs_no_words().
void append_job(Call& call, const ClientCore& core, std::string_view topic, std::string_view id,
                std::string_view payload, const EnqueueOptions& options);

/// Appends PRI to HEADER, as PUSH and SCHEDULE SET have them.
void append_options(Words& words, const ClientCore& core, const EnqueueOptions& options);
/// Refuses a text that is so long that a server would not even read it.
void check_length(std::string_view field, std::string_view text);

Time moment_of(std::int64_t unix_ms);
Headers headers_of(const Value* map);
/// Throws the error if it is one.
Value checked(Value value);

/// Waits for the reply to one command.
class OneReply {
 public:
  /// A call that reports here. This object may be gone before the call ends.
  std::unique_ptr<Call> make_call() const;
  /// The reply, which may be an error. Throws Error when there will be none, or not before `deadline`.
  Value wait(Steady::time_point deadline) const;
  bool is_there() const;

 private:
  struct State;
  class Waiting;
  std::shared_ptr<State> state_ = make_state();
  static std::shared_ptr<State> make_state();
};

}  // namespace sdk
}  // namespace delayq
