#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/verb.h"
#include "core/result.h"
#include "core/time.h"

namespace delayq::cli {

/// Lines of a text of any length, one at a time, in bounded memory.
class LineReader {
 public:
  /// Above this a line is an error: it cannot be a job.
  static constexpr size_t kMostBytes = size_t{192} << 20;

  explicit LineReader(std::istream& in, size_t most_bytes = kMostBytes) : in_(in), most_(most_bytes) {}

  /// Reads the next line without its end. Returns false after the last one. kTooLarge: the line is too long.
  Result<bool> next(std::string& line);
  /// The number of the last line, from 1.
  uint64_t number() const { return number_; }
  /// The bytes read so far.
  uint64_t bytes() const { return bytes_; }

 private:
  std::istream& in_;
  size_t most_;
  uint64_t number_ = 0;
  uint64_t bytes_ = 0;
};

/// The kinds of states that matter for a move: a waiting job goes from delayed to ready by time alone, and a
/// reserved one is ready where it is restored.
enum class Kind : uint8_t { kWaiting, kDone, kDead };
inline constexpr size_t kKinds = 3;

/// A line as `export` writes it, with the fields that are needed here.
struct ExportedLine {
  std::string topic;
  std::string id;  ///< empty: the line has settings, or a schedule
  Kind kind = Kind::kWaiting;
  bool is_running = false;
  std::string body;
  Moment kept_until = kNever;  ///< of a done or dead one
  std::string schedule;        ///< not empty: the line has the schedule of this name
  std::string rule;            ///< of the schedule, for comparisons
  uint64_t made = 0;           ///< jobs that the schedule has made
  bool is_moving = false;      ///< the schedule makes no jobs there any more
};

/// The rule of a schedule as one text, from what it has of these.
std::string rule_text(std::string_view every, std::string_view cron, std::string_view zone);

/// Fails with kCorrupt for any other text.
Result<ExportedLine> read_exported(std::string_view text);

/// Sends a command to a server, or to a data directory that no server uses. An error reply is an error.
using Ask = std::function<Result<resp::Value>(const Words&)>;

/// The same for several commands that are sent together: a reply for each, including errors. What they change
/// is durable together. One or two commands may be as large as an import; the replies to all must fit into
/// the megabyte that a server keeps for a client that does not read.
using AskAll = std::function<Result<std::vector<resp::Value>>(std::span<const Words> commands)>;

/// Asks one command at a time.
Ask one_by_one(AskAll ask_all);

/// Asks the data directory, or the session's server when there is none.
Result<AskAll> ask_where(const Session& session, const std::optional<std::string>& data,
                         Surroundings::Access access);
/// Opens a storage without a server. Errors name the option.
Result<Surroundings::Storage> open_storage(const Surroundings& world, const Surroundings::StorageName& name);

/// For each job, whether it exists with exactly that body.
struct Known {
  std::string_view topic, id, body;
};
Result<std::vector<bool>> are_there(const AskAll& ask_all, std::span<const Known> jobs);

/// How many jobs of a topic are in which state.
struct TopicCounts {
  static constexpr std::array<std::string_view, 5> kStates{"delayed", "ready", "reserved", "done", "dead"};

  std::array<uint64_t, kStates.size()> states{};

  /// Delayed, ready and reserved together: time alone moves jobs from one to the next, and a reserved one is
  /// ready where it is restored.
  uint64_t live() const { return states[0] + states[1] + states[2]; }
  uint64_t done() const { return states[3]; }
  uint64_t dead() const { return states[4]; }
  uint64_t all() const { return live() + done() + dead(); }
};

/// By topic. Of a topic without jobs all counts are zero.
Result<std::map<std::string, TopicCounts>> count_topics(const Ask& ask);

/// All zero for a topic that is not in `topics`.
inline TopicCounts counts_of(const std::map<std::string, TopicCounts>& topics, const std::string& name) {
  const auto found = topics.find(name);
  return found == topics.end() ? TopicCounts{} : found->second;
}

/// Lines that are sent together. A command stays well below the server's limit.
inline constexpr size_t kMostImportLines = 1'000;
inline constexpr size_t kMostImportBytes = size_t{512} << 10;

/// This many such commands are sent before the first is answered.
inline constexpr size_t kMostImports = 4;

/// The command that stores lines as `export` writes them. `on_conflict` is keep, replace or reject.
Words import_command(std::string_view on_conflict, Words lines);
/// Splits the reply to a command of `count` lines into an answer for each, in their order. Their changes are
/// durable.
Result<std::vector<resp::Value>> import_answers(resp::Value reply, size_t count);
/// Both, one after the other.
Result<std::vector<resp::Value>> import_lines(const Ask& ask, std::string_view on_conflict, Words lines);

/// Counts the results of lines.
class ImportCounts {
 public:
  static constexpr std::array<std::string_view, 4> kOutcomes{"created", "replaced", "kept", "dropped"};

  /// Counts an answer. Returns its error, if it is one.
  std::optional<Error> add(const resp::Value& answer);

  uint64_t lines() const { return lines_; }
  uint64_t failed() const { return failed_; }
  /// Of the first line that failed.
  ErrorCode first_error() const { return first_error_; }
  uint64_t of(std::string_view outcome) const;

  /// "2 created, 0 replaced, ..., 0 failed".
  std::string text() const;
  /// The same as members of a JSON object.
  std::string members() const;

 private:
  std::array<uint64_t, kOutcomes.size()> counts_{};
  uint64_t failed_ = 0;
  uint64_t lines_ = 0;
  ErrorCode first_error_ = ErrorCode::kInvalid;
};

/// A place that has jobs: a source or target of `migrate`.
struct Place {
  Ask ask;
  AskAll ask_all;
  std::string name;           ///< for people: without token and password
  std::string option;         ///< that named it, for messages; may be empty
  bool is_exclusive = false;  ///< no other program can use it meanwhile
  bool is_new = false;        ///< nothing was ever stored there; known when it is only looked at
  uint32_t shards = 0;        ///< of a Redis; 0: it is not a Redis
};

/// delayq://[TOKEN@]HOST:PORT is a running server (delayqs:// over TLS), at its port for RESP; redis:// and
/// the like name the Redis of the redis engine, whether servers use it or not; anything with a slash in it
/// and no scheme is a data directory that no server uses. `option` is for messages. Connects to a server with
/// the first command.
Result<Place> open_place(const Surroundings& world, const std::string& option, const std::string& text,
                         Surroundings::Access access = Surroundings::Access::kMake);

/// Fails unless they are two different places: a Redis has many names, and a server that uses it is another.
/// Stores a job in `to` for a moment, and looks for it in `from`, in a topic that both sides allow.
Status check_apart(const Place& from, const Place& to, const std::string& topic);

/// Adds the place's name, and the option that named it, to the error. Says so if it is not a delayq server.
Error in_place(const Place& place, Error error);

}  // namespace delayq::cli
