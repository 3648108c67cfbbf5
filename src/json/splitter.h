#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace delayq::json {

/// Splits a text that is too long to keep into its values while it arrives: the items of one array, or values
/// one after another (one per line, for example). A value is found by its brackets and quotes; parse() checks
/// whether it is JSON.
class Splitter {
 public:
  enum class Form : uint8_t { kArray, kSequence };
  enum class Outcome : uint8_t {
    kMore,    ///< all of the text was consumed; more is needed
    kValue,   ///< value() is the next one, until the next call
    kBroken,  ///< error() says why; there will be no more values
  };

  /// A value of more than `value_bytes` is an error.
  Splitter(Form form, size_t value_bytes) : form_(form), value_bytes_(value_bytes) {}

  /// Consumes bytes from the front of `text`.
  Outcome next(std::string_view& text);
  /// The text has ended. Returns kMore if it was complete, kValue if the last value of a sequence ended with
  /// the text.
  Outcome finish();
  std::string_view value() const { return value_; }
  const std::string& error() const { return error_; }

 private:
  enum class Position : uint8_t {
    kStart,      ///< before an array's bracket
    kFirst,      ///< after the bracket: an item, or the end
    kItem,       ///< an item must follow
    kSeparator,  ///< after an item
    kInside,     ///< inside a value
    kEnd,        ///< after the array
  };

  Outcome broken(std::string_view what);
  /// Skips what is between values. Returns whether a value starts there.
  bool find_value(std::string_view& text);
  /// Skips to the end of the current value. Returns where it ends, or npos.
  size_t find_end(std::string_view text);

  Form form_;
  size_t value_bytes_;
  Position position_ = Position::kStart;
  int depth_ = 0;
  bool in_string_ = false;
  bool is_escaped_ = false;
  bool is_scalar_ = false;
  std::string begun_;  ///< the part of a value that arrived before this text
  std::string_view value_;
  std::string error_;
};

}  // namespace delayq::json
