#pragma once

#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
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
  /// For verbs that need connections of their own.
  Result<Server> server = Error{};

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

// The verbs by their users.
void add_producer_verbs(Verbs& verbs);
void add_push_verb(Verbs& verbs);
void add_consumer_verbs(Verbs& verbs);
void add_pop_verbs(Verbs& verbs);
void add_operator_verbs(Verbs& verbs);
void add_settings_verbs(Verbs& verbs);
void add_schedule_verbs(Verbs& verbs);
void add_transfer_verbs(Verbs& verbs);
void add_migrate_verb(Verbs& verbs);
void add_top_verb(Verbs& verbs);
void add_list_verb(Verbs& verbs);
void add_forecast_verb(Verbs& verbs);
void add_events_verb(Verbs& verbs);
void add_doctor_verb(Verbs& verbs);
void add_listen_verb(Verbs& verbs);
void add_shell_verbs(Verbs& verbs);

/// Adds the subcommand of a verb, with its options, below its group if it has one.
CLI::App& add_subcommand(CLI::App& app, Verb& verb);

// ---- what shell_verbs.cc prints, for tests

/// What only a server knows.
enum class NamesOf : uint8_t { kTopics, kSchedules, kSettings };

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

/// The number of a field of a map; 0 if there is none.
int64_t number_of(const resp::Value& map, std::string_view key);
/// The text of a field of a map; empty if there is none.
std::string_view field_text(const resp::Value& map, std::string_view key);
/// The texts of a field that is a list.
std::vector<std::string> field_texts(const resp::Value& map, std::string_view key);

/// Whether the reply is a page of a listing: [cursor, rows].
bool is_page(const resp::Value& reply);

/// "3 delayed, 1,200 dead" of a map with the numbers of jobs by state, only of `states`, or of all if there
/// are none; empty when all are 0.
std::string shown_counts(const resp::Value& stats, std::span<const std::string> states = {});

/// The names of the states, for options.
std::vector<std::string> job_state_names();

/// The options of a job that `push` and `schedule set` share. The values go to the server as they are
/// written.
class JobFlags {
 public:
  /// --priority, --attempts, --backoff, --lease, --group, --callback and its kin, --header. CLI11 keeps the
  /// addresses of the members.
  void add_to(CLI::App& app);
  /// The same as the server's words.
  void append_to(Words& command) const;

 private:
  std::optional<std::string> priority_, attempts_, backoff_, lease_, group_, callback_, method_, format_;
  std::vector<std::string> headers_;  ///< NAME=VALUE
};

/// Reads all of the input, but not much more than the largest body.
Result<std::string> read_body(std::istream& in);
/// The same from the file that the option --file names.
Result<std::string> read_body_file(const std::string& name);
/// The body that was given as an argument; "-" is standard input. `advice` says where else a body may be,
/// for a person at a terminal who gave none.
Result<std::string> given_body(const Session& session, const std::string& given, std::string_view advice);

/// Shows a job or statistics, which are a map of fields: one per line for a person, one object for a program.
/// Returns false if the reply is not a map.
bool show_map(const Session& session, const resp::Value& map);

/// The pairs of a map of texts; nullopt if it is not such a map.
using NamedTexts = std::vector<std::pair<std::string_view, std::string_view>>;
std::optional<NamedTexts> named_texts(const resp::Value& map);
/// As one JSON object of texts.
std::string named_texts_as_json(const NamedTexts& texts);
/// On one line: "a=1, b=2".
std::string shown_texts(const NamedTexts& texts, size_t most_bytes);

/// A map as one JSON object, with the names and shapes that HTTP has for the same thing: moments are texts
/// ("due_ms" is "due_at"), counts and the like are objects, and a body is the JSON value that it is.
std::string map_as_json(const resp::Value& map);
/// Puts a field in front of the others.
void add_field(resp::Value& map, std::string_view name, std::string_view text);

/// A topic's name is cut to this many bytes when it is shown.
inline constexpr size_t kShownTopic = 60;
inline constexpr size_t kShownCell = 120;

}  // namespace delayq::cli
