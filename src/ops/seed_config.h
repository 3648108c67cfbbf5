#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ops/config.h"

namespace delayq {

/// A key of an INI file with its value.
struct IniEntry {
  std::string section;  ///< empty: above the first one
  std::string key;
  std::string value;  ///< without its quotes
  uint32_t line = 0;

  /// "redis.host", whether it was written so or as host below [redis].
  std::string name() const { return section.empty() ? key : section + "." + key; }
};

struct IniError {
  uint32_t line = 0;
  std::string what;  ///< never repeats the line: there may be a password in it
};

/// The entries of a text, and the errors in it; both by line.
struct IniText {
  std::vector<IniEntry> entries;
  std::vector<IniError> errors;
  bool has_semicolons = false;  ///< a whole line is a comment with `;`, which no TOML file has
};

/// Reads an INI text: [sections], `key = value` or `key: value`, comments from `;` or `#`, on a line of their
/// own or after a value. A value in double quotes, single quotes or backticks may have these in it; there are
/// no escapes. Line ends are LF or CRLF, and a byte order mark is ignored. A value is on one line.
///
/// Bounded: texts beyond 10,000 entries, 64 KiB a line or 100 errors are not read further, and that is the
/// last error.
IniText read_ini(std::string_view text);

/// The systems whose configuration files can be read.
enum class SeedForm : uint8_t { kGoDelayQueue, kCallback, kDelayQ };
inline constexpr size_t kSeedFormCount = 3;

/// As its users call it.
std::string_view name_of(SeedForm form);

/// One key of their files, and the setting that it becomes.
struct SeedKey {
  /// How a value is read.
  enum class Kind : uint8_t {
    kText,
    kNumber,     ///< a whole number up to `most`
    kTries,      ///< the same from 1
    kSeconds,    ///< the same, of seconds
    kMillis,     ///< the same, of milliseconds
    kLevel,      ///< of a log, as the loggers of Go call them
    kLogFolder,  ///< of the log's file
    kLogName,    ///< in that folder
    kRedisHost,  ///< with its port, or without
    kRedisPort,  ///< where it has a key of its own
    kKafka,      ///< how to log in to the brokers
  };

  std::string_view name;  ///< "redis.host", also for host below [redis]
  uint8_t forms = 0;      ///< bits, by SeedForm
  Kind kind = Kind::kText;
  std::string_view to{};    ///< our key; empty: it is not taken over,
  std::string_view note{};  ///< and this is why
  uint32_t most = 0;        ///< of a number; 0: the largest value of their programs

  bool is_of(SeedForm form) const { return (forms >> static_cast<unsigned>(form) & 1) != 0; }
};

/// All of them.
std::span<const SeedKey> seed_keys();

/// The row of a key, or null.
const SeedKey* find_seed_key(SeedForm form, std::string_view name);

// The configuration files of three other systems (go-delay-queue, delay_queue_callback and DelayQ), so that
// their users can start this server with the file that they have. They are INI files with `;` comments. The
// table in seed_config.cc lists which keys are used and which are not.

/// Reads such a file; nullopt if it is not one, so that it is read as our own TOML. It is one if it has keys
/// of one of these systems and none that only our own files have, or if it has no keys and has comments with
/// `;`, as the examples of these systems do.
///
/// Every key that is not taken over is a warning with its line; every value that cannot be right is an error
/// with its line, all of them at once.
std::optional<ConfigOutcome> read_seed_config(std::string_view text, std::string_view file_name);

/// These systems listen on all interfaces without authentication. If such a file says so, and neither tokens
/// nor server.allow_anonymous are set elsewhere, the server listens on the same port of 127.0.0.1 instead,
/// with a warning. A file of go-delay-queue without an address means all interfaces, if tokens or
/// server.allow_anonymous allow that. Call it after all settings were read.
void keep_to_this_machine(ConfigOutcome& outcome);

/// These systems keep their jobs in Redis. A file that has its address chooses the redis engine with that
/// Redis, and a warning says so, and how to choose the journal. With that engine, due ids of go-delay-queue
/// are written to the list of their topic, as before; with another engine jobs are popped from this server.
/// If the engine was chosen elsewhere, only the values that are then not used are reported. Call it after all
/// settings were read.
void tell_engine(ConfigOutcome& outcome);

}  // namespace delayq
