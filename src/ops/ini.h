#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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

/// What a text says, as far as it could be read, and everything that could not be; both by line.
struct IniText {
  std::vector<IniEntry> entries;
  std::vector<IniError> errors;
  bool has_semicolons = false;  ///< a whole line is a comment with `;`, which no TOML file has
};

/// Reads an INI text: [sections], `key = value` or `key: value`, comments from `;` or `#`, on a line of their
/// own or behind a value. A value in double quotes, single quotes or backticks may have these in it; there
/// are no escapes. Line ends are LF or CRLF, and a byte order mark is passed over. A value is on one line.
///
/// Bounded: texts beyond 10,000 entries, 64 KiB a line or 100 errors are not read further, and that is the
/// last error.
IniText read_ini(std::string_view text);

}  // namespace delayq
