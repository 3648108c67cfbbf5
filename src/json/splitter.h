#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace delayq::json {

/// Cuts a text that is too long to keep into the values in it, while it comes: the items of one array, or
/// values one after another (one a line, say). A value is found by its brackets and quotes; whether it is
/// JSON is for parse() to say.
class Splitter {
 public:
  enum class Form : uint8_t { kArray, kSequence };
  enum class Outcome : uint8_t {
    kMore,    ///< all of the text was taken
    kValue,   ///< value() is the next one, until the next call
    kBroken,  ///< error() says why; nothing more will come
  };

  /// A value of more than `value_bytes` is an error.
  Splitter(Form form, size_t value_bytes) : form_(form), value_bytes_(value_bytes) {}

  /// Takes from the front of `text`.
  Outcome next(std::string_view& text);
  /// No more text will come. kMore: it was whole; kValue: the last one, of a sequence, ended with the text.
  Outcome finish();
  std::string_view value() const { return value_; }
  const std::string& error() const { return error_; }

 private:
  enum class Position : uint8_t {
    kStart,      ///< before an array's bracket
    kFirst,      ///< behind it: an item, or the end
    kItem,       ///< an item must come
    kSeparator,  ///< behind an item
    kInside,     ///< of a value
    kEnd,        ///< behind the array
  };

  Outcome broken(std::string_view what);
  /// Goes over what is between values. Returns whether it is at the start of one.
  bool find_value(std::string_view& text);
  /// Goes over a value, from `at` on. Returns where it ends, or npos.
  size_t find_end(std::string_view text);

  Form form_;
  size_t value_bytes_;
  Position position_ = Position::kStart;
  int depth_ = 0;
  bool in_string_ = false;
  bool is_escaped_ = false;
  bool is_scalar_ = false;
  std::string begun_;  ///< the part of a value that came before this text
  std::string_view value_;
  std::string error_;
};

}  // namespace delayq::json
