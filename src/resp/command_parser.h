#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace delayq::resp {

struct CommandLimits {
  size_t arguments = 1 << 15;         ///< of one command, its name included
  size_t argument_bytes = 64u << 20;  ///< of one of them
  size_t command_bytes = 128u << 20;  ///< of all of them
  size_t inline_bytes = 64u << 10;    ///< of a command that is written as a line
};

/// Reads commands as Redis clients send them, without copying: the arguments are views into the input. Both
/// forms, arrays of bulk strings ("*1\r\n$4\r\nPING\r\n") and lines ("PING\r\n", with quotes as in
/// redis-cli). A length above its limit is an error as soon as it is read, before anything is kept for it.
class CommandParser {
 public:
  enum class Outcome {
    kCommand,  ///< arguments() is a command; `consumed` bytes belong to it. No arguments: an empty line
    kPartial,  ///< more bytes are needed
    kBroken,   ///< not a command, see error(); what follows cannot be read either
  };

  explicit CommandParser(CommandLimits limits = {}) : limits_(limits) {}

  /// Reads the command at the front of `input`. On kPartial, needed() says how many bytes `input` must have
  /// at least before it is worth calling again: never more than the whole command has.
  Outcome next(std::string_view input);

  /// Views into the input of the last next(), or for a quoted line into this parser; valid until the next
  /// call.
  const std::vector<std::string_view>& arguments() const { return arguments_; }
  size_t consumed() const { return consumed_; }
  size_t needed() const { return needed_; }
  const std::string& error() const { return error_; }

 private:
  Outcome next_array(std::string_view input);
  Outcome next_line(std::string_view input);
  /// The number after `sign` at `place`, which is moved to the end of its line.
  Outcome number(std::string_view input, char sign, size_t& place, size_t& value, size_t limit,
                 std::string_view what);
  bool split(std::string_view line);
  Outcome broken(std::string error);
  Outcome partial(size_t needed);

  CommandLimits limits_;
  std::vector<std::string_view> arguments_;
  std::vector<std::string> unquoted_;
  size_t consumed_ = 0;
  size_t needed_ = 1;
  std::string error_;
};

}  // namespace delayq::resp
