#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/address.h"
#include "core/result.h"
#include "core/time.h"
#include "resp/value.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library is called so
class App;
class ParseError;
}  // namespace CLI

namespace delayq::cli {

/// The server that a client verb connects to, and how.
struct Server {
  struct Tls {
    std::string ca;           ///< file of the certificates to trust; empty: those of the system
    std::string certificate;  ///< file of our own, with its chain; empty: none
    std::string key;          ///< file of its key
    bool verify = true;       ///< the certificate and the host name in it
  };

  Address address;
  std::string token;  ///< sent before the first command; empty: none
  std::optional<Tls> tls;
};

/// The options of the command line; empty where not given.
struct ServerOptions {
  std::string address, token, ca, certificate, key;
  bool tls = false;
  bool insecure = false;
};

/// --server, --token, --tls, --ca, --cert, --key, --insecure.
void add_server_options(CLI::App& app, ServerOptions& options);

/// The options, then the environment (DELAYQ_RESP, DELAYQ_TOKEN, DELAYQ_CA), then 127.0.0.1:9278. Any option
/// of TLS means that TLS is wanted.
Result<Server> server_of(const ServerOptions& options,
                         const std::function<const char*(const char*)>& variable);

class Verb;

/// Everything outside the program that a client verb uses, so that tests can replace it.
struct Surroundings {
  std::istream& in;
  std::ostream& out;
  std::ostream& err;
  bool in_is_terminal = false;   ///< then no body is read from it
  bool out_is_terminal = false;  ///< then the output is for a person, else JSON
  bool err_is_terminal = false;  ///< then long work shows its progress
  std::function<Moment()> now;
  std::function<const char*(const char*)> variable;  ///< as getenv()
  enum class Access : uint8_t {
    kMake,  ///< an unused place is initialised
    kFind,  ///< an unused place fails with kNotFound and is not changed
    kRead,  ///< nothing is written to a data directory; for commands that change nothing
    kLook,  ///< nothing is written; only TOPICS may be asked
  };
  /// A data directory that no server uses, or the redis engine's Redis.
  struct StorageName {
    std::string place;
    std::string option;  ///< that named it, for advice
    Access access = Access::kMake;
  };
  struct Storage {
    /// Executes commands as a server would. Returns their replies in order, including errors.
    std::function<Result<std::vector<resp::Value>>(std::span<const std::vector<std::string>> commands)> ask;
    bool is_new = false;  ///< nothing was ever stored there; known when it is only looked at
    uint32_t shards = 0;  ///< in how many parts a Redis has the jobs, or will have them; 0: it is not a Redis
  };
  /// Empty: this program cannot open storage.
  std::function<Result<Storage>(const StorageName& name)> open_storage{};
};

/// The standard streams, the wall clock and the environment of this process.
Surroundings process_surroundings();

/// The verbs push, pop, bpop, ack, nack, extend, get, cancel, reschedule, redrive, pause, resume, topics,
/// stats, dead, list, purge, forecast, events, consumers, doctor, top, listen, completion and manual as
/// subcommands of `app`. From main():
///
///   CLI::App app{...};
///   cli::Commands commands(app);
///   try { cli::parse(app, arguments); } catch (const CLI::ParseError& error) { return cli::fail(...); }
///   if (const auto exit_code = commands.run(cli::process_surroundings())) return *exit_code;
///
/// Sets `app` to accept at most one subcommand; do not change that, or a topic cannot be named like a verb.
/// Must live until run() is done, and `app` must outlive it. Parsing throws CLI::ParseError like any other
/// use of CLI11; later errors are written to `err`, and the exit code is that of the error table.
class Commands {
 public:
  explicit Commands(CLI::App& app);
  ~Commands();
  Commands(const Commands&) = delete;
  Commands& operator=(const Commands&) = delete;

  /// Runs the verb that was parsed. Returns the exit code, or nullopt if it is not one of these verbs.
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

/// Parses a command line, without the program's name, for all of `app`'s commands. Values reach their options
/// as they were written: CLI11 alone would take `[a,b]` for two values.
///
/// What follows `--` in `pop` and `bpop` is the command that they run, word by word.
///
/// `help VERB` is `VERB --help`.
///
/// Throws CLI::ParseError like any other use of CLI11.
void parse(CLI::App& app, const std::vector<std::string>& arguments);

/// The message for a wrong command line: what is wrong, what was probably meant, and where to read more, each
/// on a line.
std::string explain(const CLI::App& app, const CLI::ParseError& error,
                    const std::vector<std::string>& arguments);

/// The option that takes the words after `--`, one each.
inline constexpr const char* kExecWord = "--exec-word";

}  // namespace delayq::cli
