#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// The engine in this process. This header names nothing of the server's sources, whose types have the same
/// names as the public ones of this library: it is the border between the two.
namespace delayq::embedded {

struct TopicSettings {
  std::optional<std::uint32_t> attempts{};
  std::string backoff{};
  std::optional<std::chrono::milliseconds> lease{};
  std::optional<std::uint32_t> concurrency{};
  std::optional<std::chrono::milliseconds> keep_done{}, keep_dead{};
};

struct Options {
  std::string directory{};
  bool syncs = true;
  void (*begin_thread)(const char* name) = nullptr;  ///< called first by the engine's thread
  std::size_t max_payload = 0;
  std::optional<std::uint64_t> max_jobs{};
  std::uint64_t min_free_disk = 0;
  std::map<std::string, TopicSettings, std::less<>> topics{};
};

/// What becomes of a job of this topic and id that is there and waits.
enum class Conflict : std::uint8_t { kReplace, kKeep, kReject };

/// A job for Session::push(). Its texts (topic, id, body, group) are one behind the other in a text that is
/// given with it.
struct PushJob {
  std::size_t begin = 0;
  std::uint32_t topic = 0, id = 0, group = 0;  ///< sizes; without a group zero
  std::size_t body = 0;                        ///< the same; it may be larger than the others
  std::optional<std::chrono::milliseconds> delay{};
  std::optional<std::int64_t> at_ms{};  ///< since 1970
  std::optional<std::uint32_t> priority{};
  std::optional<std::uint32_t> attempts{};
  std::optional<std::chrono::milliseconds> lease{};
  Conflict on_conflict = Conflict::kReplace;
};

/// What became of the jobs of one push().
struct Pushed {
  struct Refused {
    std::uint32_t index = 0;
    std::string error{};  ///< the line of an error reply
  };
  std::uint64_t ticket = 0;
  std::vector<Refused> refused{};  ///< in their order; the others are stored
};

/// A conversation with the queue in the words of RESP, as over a socket; and a way for many jobs at once
/// that need no words. Only on the engine's thread.
class Session {
 public:
  virtual ~Session() = default;
  /// Pushes jobs, after the commands that were read. Nothing of the arguments is used after it returns.
  virtual void push(std::string_view texts, std::span<const PushJob> jobs, std::uint64_t ticket) = 0;
  /// What was pushed since the last call.
  virtual std::vector<Pushed> take_pushed() = 0;
  /// Takes complete commands off the front. Takes none while earlier ones must be answered first.
  virtual std::size_t read(std::string_view commands) = 0;
  /// Replies; the caller takes them away.
  virtual std::string& output() = 0;
  /// No more commands. A pop that waits ends without an answer.
  virtual void end_input() = 0;
  /// No reply will come any more.
  virtual bool is_over() const = 0;
};

/// A user of the engine. Its methods are called on the engine's thread.
class Peer {
 public:
  virtual ~Peer() = default;
  virtual void begin(std::unique_ptr<Session> session) = 0;
  /// It was removed, or the engine stops: gives its session up.
  virtual void end() = 0;
  /// Passes commands on and takes replies. Returns whether there were any.
  virtual bool turn() = 0;
  /// When it wants to be called although nothing happens.
  virtual std::chrono::steady_clock::time_point next() const = 0;
};

/// The queue and its journal, with a thread. Thread-safe.
class Engine {
 public:
  /// On an error returns null, and `error` is the line of an error reply: "UNAVAILABLE data is in use ...".
  static std::shared_ptr<Engine> open(const Options& options, std::string& error);
  /// Waits until everything is on disk. Not on the engine's thread.
  virtual ~Engine() = default;

  /// `peer` must live until remove() has returned.
  virtual void add(Peer& peer) = 0;
  virtual void remove(Peer& peer) = 0;
  /// Makes the thread call its peers.
  virtual void wake() = 0;
};

}  // namespace delayq::embedded
