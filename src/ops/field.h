#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/result.h"
#include "ops/config.h"
#include "queue/settings_table.h"

namespace delayq {

/// A value as it was written, in a file, on a command line or in the environment.
struct Given {
  enum class Kind : uint8_t {
    kText,     ///< text
    kNumber,   ///< text: a whole number's digits, perhaps with a minus
    kBoolean,  ///< text: "true" or "false"
    kList,     ///< list, of texts and whole numbers
    kTable,    ///< an empty table; the keys of other tables are entries of their own
    kOther,    ///< text: what it is, for a message ("a date")
  };

  Kind kind = Kind::kText;
  std::string text;
  std::vector<std::string> list;
};

/// A key of a TOML file with its value. The path names its tables: ["topics", "order", "attempts"], and
/// ["tokens", "0", "name"] in the first of several [[tokens]].
struct TomlEntry {
  std::vector<std::string> path;
  Given value;
  uint32_t line = 0;
};

struct TomlError {
  uint32_t line = 0;
  std::string what;
};

/// Returns all keys of a text, by line, or the first syntax error.
std::variant<std::vector<TomlEntry>, TomlError> read_toml(std::string_view text);

/// Reads a number of bytes: "4096", "64KB" (thousands), "32MiB" (1024s); the units are B, KB, MB, GB, TB and
/// KiB, MiB, GiB, TiB. Whole numbers only. The error's detail says what was wrong and what would be right;
/// the caller puts the field's name in front and fills in `op`.
Result<uint64_t> parse_size(std::string_view text);

/// The text that parse_size() reads back to the same value, in the largest unit that divides it: "32MiB",
/// "1000B".
std::string format_size(uint64_t bytes);

/// Checks a prefix of keys: it has no braces, which would decide the slots in a Cluster.
Status check_redis_prefix(std::string_view text);

/// A URL of Redis for messages: with stars instead of the password.
std::string without_password(std::string_view url);

/// What a value is written to.
struct FieldTarget {
  Config& config;
  SettingValues* topic = nullptr;         ///< set for keys of [topics.NAME]; has the rows of topic_settings()
  Token* token = nullptr;                 ///< set for keys of [[tokens]]
  Config::Schedule* schedule = nullptr;   ///< set for keys of [schedules.NAME]
  Config::KafkaIntake* intake = nullptr;  ///< set for keys of [kafka.intake.NAME]
};

template <class T>
using Put = std::function<void(FieldTarget&, T)>;

// The kinds of values that a configuration has. Each knows its range; `put` stores a value that is in it.
struct AddressField {
  Put<Address> put;
};
struct SizeField {
  uint64_t min, max;
  Put<uint64_t> put;
};
struct NumberField {
  uint64_t min, max;
  Put<uint64_t> put;
};
struct DurationField {
  Millis min, max;
  Put<Millis> put;
};
struct MomentField {
  Put<Moment> put;
};
struct BooleanField {
  Put<bool> put;
};
struct TextField {
  size_t min_bytes, max_bytes;
  Put<std::string> put;
  Status (*check)(std::string_view) = nullptr;  ///< a further check of a text that is not empty
  bool is_secret = false;                       ///< no message repeats it
};
/// Texts; on a command line with commas between them.
struct ListField {
  size_t most;
  std::string_view item;  ///< what an item is, for messages
  Put<std::vector<std::string>> put;
  Status (*check)(const std::vector<std::string>&) = nullptr;
};
/// Names with values: a table of its own. In one text: with "=" and commas between them.
struct PairsField {
  size_t most;
  std::string_view item;  ///< what an item is, for messages
  std::function<std::map<std::string, std::string>&(FieldTarget&)> pairs;
};
struct ChoiceField {
  std::span<const std::string_view> words;
  std::span<const std::string_view> later;  ///< known words that this version does not support
  Put<size_t> put;                          ///< gets the index in `words`
};
struct BackoffField {
  Put<Backoff> put;
};
/// "100/1s": the number of hand-overs per time; "0": no limit.
struct RateField {
  Put<Rate> put;
};

struct HashField {
  Put<Sha256> put;
};
struct ScopesField {
  Put<Scopes> put;
};
/// Patterns of topics' names.
struct PatternsField {
  Put<std::vector<std::string>> put;
};

using Field = std::variant<AddressField, SizeField, NumberField, DurationField, MomentField, BooleanField,
                           TextField, ListField, PairsField, ChoiceField, BackoffField, RateField, HashField,
                           ScopesField, PatternsField>;

/// Reads a value and stores it. On an error, which says what is wrong and what would be right, nothing is
/// stored.
Status read_field(const Field& field, const Given& given, FieldTarget& target);

/// The same for the value of one name. REQUIRES: the field has names.
Status read_pair(const PairsField& field, const std::string& name, const Given& given, FieldTarget& target);

/// What may be written, for a reader: "a size, 1B to 64MiB", "one of journal, memory".
std::string describe(const Field& field);

}  // namespace delayq
