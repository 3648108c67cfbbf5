#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
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

  /// The next line without its end, or false behind the last one. kTooLarge: the line is too long.
  Result<bool> next(std::string& line);
  /// Of the line that next() brought last, from 1.
  uint64_t number() const { return number_; }
  /// Taken off the text so far.
  uint64_t bytes() const { return bytes_; }

 private:
  std::istream& in_;
  size_t most_;
  uint64_t number_ = 0;
  uint64_t bytes_ = 0;
};

/// What the state of a job comes to when it moves elsewhere. Time alone moves a waiting one from delayed to
/// ready, and one that runs is ready where it is restored.
enum class Kind : uint8_t { kWaiting, kDone, kDead };
inline constexpr size_t kKinds = 3;

/// A line as `export` writes it, as far as it is looked at on the way.
struct ExportedLine {
  std::string topic;
  std::string id;  ///< empty: the line has settings
  Kind kind = Kind::kWaiting;
  bool is_running = false;
  std::string body;
  Moment kept_until = kNever;  ///< of a done or dead one
};

/// kCorrupt for what is no such line.
Result<ExportedLine> read_exported(std::string_view text);

/// Sends a command to a server, or to a data directory that no server uses. An error reply is an error.
using Ask = std::function<Result<resp::Value>(const Words&)>;

/// The same for several commands that are sent together: a reply for each, those that are errors among them.
/// What they change is durable together. A command or two may be as large as an import; the replies to all
/// have to fit into what a server keeps for a client that is not reading, which is a megabyte.
using AskAll = std::function<Result<std::vector<resp::Value>>(std::span<const Words> commands)>;

/// Asks one command at a time.
Ask one_by_one(AskAll ask_all);

/// Asks the data directory, or the session's server when there is none.
Result<AskAll> ask_where(const Session& session, const std::optional<std::string>& data,
                         Surroundings::Access access);
/// What jobs are in when there is no server between. Errors name the option.
Result<Surroundings::Storage> open_storage(const Surroundings& world, const Surroundings::StorageName& name);

/// For each job, whether it is there with just that body.
struct Known {
  std::string_view topic, id, body;
};
Result<std::vector<bool>> are_there(const AskAll& ask_all, std::span<const Known> jobs);

/// Lines that are sent together. A command stays well below what the server takes at once.
inline constexpr size_t kMostImportLines = 1'000;
inline constexpr size_t kMostImportBytes = size_t{512} << 10;

/// So many such commands are sent before the first is answered.
inline constexpr size_t kMostImports = 4;

/// The command that stores lines as `export` writes them. `on_conflict` is keep, replace or reject.
Words import_command(std::string_view on_conflict, Words lines);
/// The reply to one of `count` lines as an answer for each, in their order. What they say is durable.
Result<std::vector<resp::Value>> import_answers(resp::Value reply, size_t count);
/// Both, one after the other.
Result<std::vector<resp::Value>> import_lines(const Ask& ask, std::string_view on_conflict, Words lines);

/// What became of lines.
class ImportCounts {
 public:
  static constexpr std::array<std::string_view, 4> kOutcomes{"created", "replaced", "kept", "dropped"};

  /// Counts an answer; the error that it is, if it is one.
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

}  // namespace delayq::cli
