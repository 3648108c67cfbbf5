#pragma once

#include <condition_variable>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <delayq/client.h>

#include "sdk/cpp/src/embedded.h"
#include "sdk/cpp/src/resp.h"

/// How commands reach a queue, and replies come back. Two pipes exist: over a socket (net_pipe.h), and to the
/// engine in this process (local_pipe.h).
namespace delayq::sdk {

/// While it exists, threads that are started get no signals: these are for the threads of the user.
class [[nodiscard]] NoSignals {
 public:
  NoSignals();
  ~NoSignals();
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  sigset_t before_;
};

/// One or more commands that are sent together.
class Call {
 public:
  virtual ~Call() = default;

  /// The reply to command `index`. Called on the thread of the pipe: it must not block.
  virtual void on_reply(std::uint32_t index, Value&& value) = 0;
  /// No reply to command `index` will come.
  virtual void on_failure(std::uint32_t index, const Error& error) = 0;
  /// All commands were replied to, or failed. The last call of all.
  virtual void on_end() {}
  /// Whether on_reply() looks at the text of a reply that is no error. If not, it is not copied.
  virtual bool needs_text() const { return true; }

  std::string bytes{};  ///< the commands, made by Words; with `jobs`: their texts
  /// Instead of commands, for the engine in this process: one for each command. Then on_reply() is called
  /// only for those that are refused.
  std::vector<embedded::PushJob> jobs{};
  std::uint32_t commands = 1;
  /// Whether it may be sent again when it is not known if it took effect.
  bool is_safe_to_repeat = false;
  /// Whether commands that are refused with a retryable error are sent again.
  bool repeats_refused = true;
  /// It is not sent (again) after this.
  Steady::time_point retry_until{};
  std::chrono::milliseconds timeout{};  ///< for its reply, once it is sent

 private:
  friend class Flight;
  friend class Pipe;

  std::uint32_t index_of(std::uint32_t command) const {
    return indexes_.empty() ? command : indexes_[command];
  }

  std::vector<std::uint32_t>
      indexes_{};  ///< of the commands, when some of the first ones are left; else empty
  std::vector<std::uint32_t> refused_{};  ///< commands that are to be sent again
  std::uint32_t answered_ = 0;
  std::uint32_t tries_ = 0;
  std::chrono::milliseconds wait_{};  ///< before the refused ones are sent again
  Steady::time_point not_before_{};
  Steady::time_point answer_by_{};
  std::size_t counted_bytes_ = 0;
  std::uint32_t counted_commands_ = 0;
};

/// Calls that were sent, in the order in which their replies come.
class Flight {
 public:
  using Again = std::vector<std::unique_ptr<Call>>;

  explicit Flight(std::function<void(std::unique_ptr<Call>)> end) : end_(std::move(end)) {}

  void add(std::unique_ptr<Call> call, Steady::time_point now);
  bool empty() const { return calls_.empty(); }
  /// When the next reply must have come; time_point::max() when none is expected.
  Steady::time_point answer_by() const;
  /// Takes replies off the front of `input`. Calls of which commands were refused and are to be sent again
  /// are appended to `again`. Returns false when the bytes are no replies.
  bool feed(std::string_view& input, Steady::time_point now, Again& again);
  /// The jobs of a call that is not in the flight were pushed.
  void pushed(std::unique_ptr<Call> call, std::vector<embedded::Pushed::Refused> refused,
              Steady::time_point now, Again& again);
  /// The connection is lost. Calls that may be sent again are appended to `again`, in their order, without
  /// the commands that have replies. The others fail.
  void lose(const Error& error, Steady::time_point now, Again& again);
  /// When a call of `again` is to be sent.
  static Steady::time_point not_before(const Call& call) { return call.not_before_; }

 private:
  void reply(Call& call, Value&& value, Steady::time_point now);
  /// All commands of the call have replies.
  void finish(std::unique_ptr<Call> call, Steady::time_point now, Again& again);
  /// Keeps only these commands of a call.
  static void keep(Call& call, const std::vector<std::uint32_t>& commands);

  std::deque<std::unique_ptr<Call>> calls_;
  ReplyScan scan_;
  std::function<void(std::unique_ptr<Call>)> end_;
};

/// An ordered way to a queue. Thread-safe.
class Pipe {
 public:
  virtual ~Pipe() = default;

  /// Sends the call as soon as possible. Waits while too much is on its way; on the thread of a pipe, where
  /// nothing may wait, the call fails instead.
  void send(std::unique_ptr<Call> call);
  /// Nothing will be sent after what was. A pop that waits ends at once, with its jobs or with a failure.
  virtual void finish() = 0;
  /// Waits until nothing is on its way. False: not before `deadline`.
  bool drain(Steady::time_point deadline);
  /// Fails what is on its way, and ends. When it returns, no Call is called any more.
  virtual void stop() = 0;

  /// Empty memory for a call's `bytes` and `jobs`, which calls that are over have left.
  struct Spare {
    std::string bytes;
    std::vector<embedded::PushJob> jobs;
  };
  Spare take_spare();

  /// Whether this is the thread of some pipe.
  static bool is_own_thread();

 protected:
  /// Marks the thread as that of a pipe.
  static void begin_thread(const char* name);

  /// Wakes the thread of the pipe. Called from any thread.
  virtual void wake() = 0;
  /// What has been given to send() since the last time, and is due.
  std::deque<std::unique_ptr<Call>> take_incoming();
  /// A call is over: it was replied to, or failed. Its room is free after the next make_room().
  void end(std::unique_ptr<Call> call);
  /// Frees the room of the calls that are over. To be called after each turn: one lock for all of them.
  void make_room();
  void fail(std::unique_ptr<Call> call, const Error& error);
  /// From now on, send() fails with this error, and so do the calls that were not taken.
  void refuse(const Error& error);

 private:
  static constexpr std::uint64_t kMostCommands = 200'000;
  static constexpr std::uint64_t kMostBytes = std::uint64_t{128} << 20;
  /// What is kept of the memory of calls that are over: so many, each up to so large.
  static constexpr std::size_t kMostSpare = 16;
  static constexpr std::size_t kLargestSpare = std::size_t{1} << 20;

  bool has_room() const { return commands_ == 0 || (commands_ < kMostCommands && bytes_ < kMostBytes); }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<Call>> incoming_;
  std::uint64_t commands_ = 0;  ///< on their way
  std::uint64_t bytes_ = 0;
  std::optional<Error> refusal_;
  std::vector<Spare> spare_;
  std::uint64_t ended_commands_ = 0;  ///< of the pipe's thread: over, but still counted above
  std::uint64_t ended_bytes_ = 0;
  std::vector<Spare> ended_spare_;
};

/// Calls that wait for a moment to be sent again.
class Delayed {
 public:
  void add(std::unique_ptr<Call> call, Steady::time_point when) { calls_.push_back({when, std::move(call)}); }
  bool empty() const { return calls_.empty(); }
  Steady::time_point next() const;
  /// Appends those that are due to `due`.
  void take_due(Steady::time_point now, std::deque<std::unique_ptr<Call>>& due);

 private:
  struct Waiting {
    Steady::time_point when;
    std::unique_ptr<Call> call;
  };
  std::vector<Waiting> calls_;
};

}  // namespace delayq::sdk
