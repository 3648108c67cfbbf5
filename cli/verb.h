#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/cli.h"
#include "core/error.h"
#include "core/result.h"
#include "resp/value.h"

namespace delayq::cli {

using Words = std::vector<std::string>;

/// Sends a command and returns its reply. `wait` is added to the time that any command may take. After an
/// error the next call opens a new connection.
using Transport = std::function<Result<resp::Value>(const Words& command, Millis wait)>;
/// The same for several that are sent together.
using BatchTransport = std::function<Result<std::vector<resp::Value>>(std::span<const Words> commands)>;

/// What a verb works with: a server, and its output.
struct Session {
  Transport transport;
  const Surroundings& world;
  bool json = false;        ///< the output is for a program
  bool json_asked = false;  ///< by an option
  BatchTransport batch_transport{};
  /// Opens another connection to the same server, for another thread.
  std::function<Transport()> new_transport{};
  std::string server_name{};  ///< its address, for people

  /// The reply; an error reply becomes an error.
  Result<resp::Value> ask(const Words& command, Millis wait = {}) const;
  /// The replies to commands that are sent together, including error replies.
  Result<std::vector<resp::Value>> ask_all(std::span<const Words> commands) const;
  /// Writes one of the two lines, for a person or for a program.
  void say(std::string_view human, std::string_view machine) const;
  /// Writes a line of JSON. All of it goes through here, so that no job can command a terminal.
  void say_json(std::string_view line) const;
  /// The moment in milliseconds as a person reads it: "in 29m58s".
  std::string when(int64_t unix_ms) const;
};

/// One command of the command line. Its options are members, which CLI11 fills.
class Verb {
 public:
  virtual ~Verb() = default;

  /// One word, or two: "schedule set" is a command of the group `schedule`.
  virtual std::string_view name() const = 0;
  virtual std::string_view help() const = 0;
  virtual void add_options(CLI::App& app) = 0;
  virtual Status run(const Session& session) = 0;
  /// The exit code of a run() without an error.
  virtual int exit_code() const { return 0; }
  /// Whether it is a client of a server; then it has the options that name the server.
  virtual bool is_client() const { return true; }
  /// Whether it is left out of help and completion.
  virtual bool is_hidden() const { return false; }
};

using Verbs = std::vector<std::unique_ptr<Verb>>;

// The verbs by their users; each function is one source file.
void add_producer_verbs(Verbs& verbs);
void add_push_verb(Verbs& verbs);
void add_consumer_verbs(Verbs& verbs);
void add_pop_verbs(Verbs& verbs);
void add_operator_verbs(Verbs& verbs);
void add_schedule_verbs(Verbs& verbs);
void add_transfer_verbs(Verbs& verbs);
void add_migrate_verb(Verbs& verbs);
void add_top_verb(Verbs& verbs);
void add_listen_verb(Verbs& verbs);
void add_shell_verbs(Verbs& verbs);

/// Adds the subcommand of a verb, with its options, below its group if it has one.
CLI::App& add_subcommand(CLI::App& app, Verb& verb);

// ---- what shell_verbs.cc prints, for tests

/// What only a server knows.
enum class NamesOf : uint8_t { kTopics, kSchedules };

/// The words that a shell may offer for the last of `words`, which are those after the program's name; the
/// last may be empty. Commands, options and enumerated values come from `app`, names from `names`, which is
/// called only when a name is expected there.
std::vector<std::string> completions(const CLI::App& app, const Words& words,
                                     const std::function<std::vector<std::string>(NamesOf)>& names);

/// The script that makes a shell call `delayq complete`; empty for a shell that we do not know.
std::string_view completion_script(std::string_view shell);

/// The manual page in roff, made from the tree of commands and the error table.
std::string manual_page(const CLI::App& app);

// ---- parts that verbs share

/// The reply to one command.
Result<resp::Value> ask(const Transport& transport, const Words& command, Millis wait = {});

/// Appends `WORD value` when there is a value.
void append_option(Words& command, std::string_view word, const std::optional<std::string>& value);

/// Turns "CONFLICT id is ..." back into the server's error.
Error error_of_reply(std::string_view text);

/// The error for a reply that does not fit the command.
Error unexpected_reply();

/// The number in a reply, also one written as text; nullopt when it is not a number.
std::optional<int64_t> number_in(const resp::Value& value);

}  // namespace delayq::cli
