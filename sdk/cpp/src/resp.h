#pragma once

#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <delayq/error.h>

/// The Redis protocol as the client needs it: commands out, replies in. Knows no sockets.
namespace delayq::sdk {

using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock;

/// Rounded up, so that nothing is early.
std::int64_t unix_ms_of(std::chrono::system_clock::time_point when);

/// A command, word by word. The views must be valid until it is appended somewhere.
class Words {
 public:
  Words() = default;
  Words(const Words&) = delete;
  Words& operator=(const Words&) = delete;

  Words& operator<<(std::string_view word) {
    words_.push_back(word);
    return *this;
  }
  /// A text that is gone before the words are appended.
  template <std::same_as<std::string> Gone>
  Words& operator<<(Gone&& gone) = delete;
  /// A number or a time is written where the views stay valid.
  Words& number(std::uint64_t value);
  /// "1800000ms"
  Words& millis(std::chrono::milliseconds value);
  /// "1900000000.123"
  Words& moment(std::chrono::system_clock::time_point when);
  void append_to(std::string& out) const;
  void clear();

 private:
  static constexpr std::size_t kMade = 12;  ///< numbers and times in one command, at most
  static constexpr std::size_t kMadeBytes = 32;

  Words& made(std::size_t size);
  char* room() { return made_[used_]; }

  std::vector<std::string_view> words_;
  char made_[kMade][kMadeBytes];
  std::size_t used_ = 0;
};

/// A reply.
struct Value {
  enum class Type : std::uint8_t { kNull, kText, kError, kInteger, kList, kMap };

  Type type = Type::kNull;
  std::int64_t integer = 0;
  std::string text{};
  std::vector<Value> items{};  ///< of a map: key, value, key, value ...

  bool is_error() const { return type == Type::kError; }
  bool is_null() const { return type == Type::kNull; }
  /// The value of a key in a map, or null.
  const Value* find(std::string_view key) const;
  /// The same as text (empty) and as a number (0).
  std::string_view text_of(std::string_view key) const;
  std::int64_t number_of(std::string_view key) const;
};

constexpr std::size_t kDeepest = 16;  ///< lists in lists

enum class Taken : std::uint8_t { kValue, kPartial, kBroken };

/// Takes the reply at the front of `input`. kBroken: these bytes are no reply, or one above the limits of a
/// server.
Taken take_value(std::string_view& input, Value& value);

/// Finds the end of a reply that arrives in parts: it looks at each byte once, where take_value() begins
/// anew.
class ReplyScan {
 public:
  /// `input` begins with the same reply each time, and has at least as much of it as the last time.
  Taken advance(std::string_view input);
  void reset() { *this = {}; }
  /// Of the reply, after advance() returned kValue.
  std::size_t size() const { return place_; }

 private:
  std::size_t place_ = 0;
  std::size_t depth_ = 0;
  std::array<std::int64_t, kDeepest + 1> left_{1};  ///< values that have not come whole, of each open list
};

/// The first `count` commands of `bytes` in bytes. REQUIRES: `bytes` was made by Words, and has as many.
std::size_t size_of_commands(std::string_view bytes, std::uint32_t count);

/// What an error reply means. `line` is the reply without its '-' and its end of line.
Error error_of(std::string_view line);

/// "1h30m" as a server writes it; nothing if it is not a duration.
std::optional<std::chrono::milliseconds> parse_duration(std::string_view text);

/// A UUID of version 7. The clock is in it, so that ids that are made one after the other are in order.
std::string make_id();

/// The text of an error as it may be sent: no control characters but tab and newline, UTF-8, at most 1,000
/// bytes.
std::string clean_reason(std::string_view text);

}  // namespace delayq::sdk
