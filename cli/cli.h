#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/server.h"
#include "core/result.h"
#include "core/time.h"
#include "resp/value.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library is called so
class App;
}  // namespace CLI

namespace CLI {  // NOLINT(readability-identifier-naming): the library is called so
class App;
class ParseError;
}  // namespace CLI

namespace delayq::cli {

class Verb;

/// What a client verb sees of the world around it, so that tests can be that world.
struct Surroundings {
  std::istream& in;
  std::ostream& out;
  std::ostream& err;
  bool in_is_terminal = false;   ///< then a body is not waited for there
  bool out_is_terminal = false;  ///< then the output is for a person, else JSON
  bool err_is_terminal = false;  ///< then long work shows how far it is
  std::function<Moment()> now;
  std::function<const char*(const char*)> variable;  ///< as getenv()
  enum class Access : uint8_t {
    kMake,  ///< what is new is prepared
    kFind,  ///< what is new is refused as kNotFound, and left as it is
    kRead,  ///< nothing is written to a data directory; for commands that change nothing
    kLook,  ///< nothing is written there; TOPICS is all that may be asked
  };
  /// A data directory that no server uses, or the redis engine's Redis.
  struct StorageName {
    std::string place;
    std::string option;  ///< which says so, for advice
    Access access = Access::kMake;
  };
  struct Storage {
    /// As if a server had it: the replies to commands in their order, those that are errors among them.
    std::function<Result<std::vector<resp::Value>>(std::span<const std::vector<std::string>> commands)> ask;
    bool is_new = false;  ///< nothing was ever stored there; known when it is only looked at
    uint32_t shards = 0;  ///< in how many parts a Redis has the jobs, or will have them; 0: it is not a Redis
  };
  /// Empty: this program cannot.
  std::function<Result<Storage>(const StorageName& name)> open_storage{};
};

/// The standard streams, the wall clock and the environment of this process.
Surroundings process_surroundings();

/// The verbs push, pop, bpop, ack, nack, extend, get, cancel, reschedule, redrive, pause, resume, topics,
/// stats, dead, top, listen, completion and manual as subcommands of `app`. From main():
///
///   CLI::App app{...};
///   cli::Commands commands(app);
///   try { cli::parse(app, arguments); } catch (const CLI::ParseError& error) { return cli::fail(...); }
///   if (const auto exit_code = commands.run(cli::process_surroundings())) return *exit_code;
///
/// `app` is told to take one subcommand at most; leave it so, or a topic cannot be named like a verb.
/// Must live until run() is done, and `app` must outlive it. Parsing throws CLI::ParseError like any other
/// use of CLI11; whatever comes after is told on `err` and by the exit code of the error table.
class Commands {
 public:
  explicit Commands(CLI::App& app);
  ~Commands();
  Commands(const Commands&) = delete;
  Commands& operator=(const Commands&) = delete;

  /// Runs the verb that was parsed and answers the exit code; nullopt when it was none of ours.
  std::optional<int> run(const Surroundings& surroundings);

 private:
  struct Entry {
    CLI::App* app = nullptr;
    std::unique_ptr<Verb> verb;
    ServerOptions server;
    bool json = false;
  };

  void add(CLI::App& app, std::unique_ptr<Verb> verb);
  int run(Entry& entry, const Surroundings& surroundings);

  std::vector<std::unique_ptr<Entry>> entries_;  // pointers: CLI11 keeps the addresses of their members
};

/// Parses a command line, without the program's name, for all of `app`'s commands. What CLI11 would change on
/// the way reaches its option as it was written: CLI11 takes a list's `[a,b]` for two values.
///
/// What follows `--` in `pop` and `bpop` is the command that they run, word by word.
///
/// `help VERB` is `VERB --help`.
///
/// Throws CLI::ParseError like any other use of CLI11.
void parse(CLI::App& app, const std::vector<std::string>& arguments);

/// The message for a command line that was not understood, line by line: what is wrong, what was
/// probably meant, and where to read more.
std::string explain(const CLI::App& app, const CLI::ParseError& error,
                    const std::vector<std::string>& arguments);

/// The option that takes the words behind `--`, one each.
inline constexpr const char* kExecWord = "--exec-word";

}  // namespace delayq::cli
