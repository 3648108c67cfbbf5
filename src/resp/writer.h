#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace delayq::resp {

/// The version of the protocol that a client understands.
enum class Version : uint8_t { k2 = 2, k3 = 3 };

/// Appends replies to a text. Types that RESP2 does not have are written as Redis writes them: a map as an
/// array of keys and values, null as a null bulk string, a double as a bulk string, a boolean as 0 or 1.
class Writer {
 public:
  Writer(std::string& out, Version version) : out_(out), version_(version) {}

  void simple(std::string_view text) { line('+', text); }
  /// REQUIRES: no line ends in `text`.
  void error(std::string_view code, std::string_view text) {
    out_ += '-';
    out_ += code;
    out_ += ' ';
    out_ += text;
    end();
  }
  void integer(int64_t value) { header(':', value); }
  void bulk(std::string_view text) {
    header('$', static_cast<int64_t>(text.size()));
    out_ += text;
    end();
  }
  void null() { out_ += version_ == Version::k3 ? "_\r\n" : "$-1\r\n"; }
  void boolean(bool value) {
    if (version_ == Version::k2) return integer(value ? 1 : 0);
    out_ += value ? "#t\r\n" : "#f\r\n";
  }
  void number(double value) {
    std::array<char, 40> digits;
    const char* const stop = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    const std::string_view text{digits.data(), static_cast<size_t>(stop - digits.data())};
    if (version_ == Version::k2) return bulk(text);
    line(',', text);
  }
  /// `size` values follow.
  void array(size_t size) { header('*', static_cast<int64_t>(size)); }
  /// A push message of `size` values follows: not a reply. REQUIRES: version 3.
  void push(size_t size) { header('>', static_cast<int64_t>(size)); }
  /// `size` pairs of key and value follow.
  void map(size_t size) {
    if (version_ == Version::k3) return header('%', static_cast<int64_t>(size));
    header('*', static_cast<int64_t>(2 * size));
  }

  Version version() const { return version_; }

 private:
  void line(char sign, std::string_view text) {
    out_ += sign;
    out_ += text;
    end();
  }
  void header(char sign, int64_t value) {
    char digits[24];
    digits[0] = sign;
    char* const stop = std::to_chars(digits + 1, digits + sizeof digits - 2, value).ptr;
    stop[0] = '\r';
    stop[1] = '\n';
    out_.append(digits, static_cast<size_t>(stop - digits) + 2);
  }
  void end() { out_ += "\r\n"; }

  std::string& out_;
  Version version_;
};

/// Appends a command as clients send it.
inline void append_command(std::string& out, std::span<const std::string_view> arguments) {
  Writer writer(out, Version::k2);
  writer.array(arguments.size());
  for (const std::string_view argument : arguments) writer.bulk(argument);
}
inline void append_command(std::string& out, std::initializer_list<std::string_view> arguments) {
  append_command(out, std::span(arguments.begin(), arguments.size()));
}

}  // namespace delayq::resp
