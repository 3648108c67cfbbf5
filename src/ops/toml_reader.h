#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

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

}  // namespace delayq
