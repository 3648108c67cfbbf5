#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

/// Reads JSON (RFC 8259) as slices of its own text, so that a value can be kept and given back byte for byte:
/// numbers keep their digits, objects their order.
namespace delayq::json {

/// Whether a byte may be between JSON tokens.
constexpr bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/// Whether a byte is not escaped within a JSON string: not a quote, a backslash or a control character.
constexpr bool is_plain(unsigned char byte) { return byte >= 0x20 && byte != '"' && byte != '\\'; }

/// How many bytes at the front of `text` are plain. Looks at eight at a time, since most texts are plain to
/// their end.
inline size_t plain_prefix(std::string_view text) {
  constexpr uint64_t kOnes = 0x0101010101010101;
  constexpr uint64_t kHighBits = kOnes << 7;
  // The high bit of a byte is set where that byte of `eight` is zero; bytes above the first such byte may be
  // wrong.
  const auto zeros = [](uint64_t eight) { return (eight - kOnes) & ~eight & kHighBits; };
  size_t at = 0;
  if constexpr (std::endian::native == std::endian::little) {
    for (uint64_t eight = 0; at + sizeof(eight) <= text.size(); at += sizeof(eight)) {
      std::memcpy(&eight, text.data() + at, sizeof(eight));
      const uint64_t controls = (eight - kOnes * 0x20) & ~eight & kHighBits;
      const uint64_t special = controls | zeros(eight ^ kOnes * '"') | zeros(eight ^ kOnes * '\\');
      if (special != 0) return at + static_cast<size_t>(std::countr_zero(special)) / 8;
    }
  }
  while (at < text.size() && is_plain(static_cast<unsigned char>(text[at]))) ++at;
  return at;
}

enum class Type : uint8_t { kNull, kBoolean, kNumber, kString, kArray, kObject };

/// "null", "a boolean", ... for messages.
std::string_view name_of(Type type);

/// One well-formed value: a view into the text it was read from, without the space around it.
struct Slice {
  std::string_view text;
  Type type = Type::kNull;

  /// REQUIRES: type is kBoolean.
  bool is_true() const { return text == "true"; }
};

struct Member {
  std::string name;
  Slice value;
};

/// How deep arrays and objects may be nested.
inline constexpr int kMaxDepth = 128;

/// Checks all of `text`, which must be one value. The error's detail says what is wrong and at which byte. If
/// `members` is given and the value is an object, its members are appended there.
Result<Slice> parse(std::string_view text, std::vector<Member>* members = nullptr);

/// Reads the value at the front of `text` and removes it, with the space around it: for values one after
/// another.
Result<Slice> take_value(std::string_view& text);

/// The members of an object, in their order. REQUIRES: parse() found it to be one.
std::vector<Member> members_of(const Slice& object);

/// The items of an array. REQUIRES: parse() found it to be one.
std::vector<Slice> items_of(const Slice& array);

/// The content of a string without escapes, as a view into its text. Returns nullopt if it has escapes.
/// REQUIRES: parse() found it to be a string.
std::optional<std::string_view> plain_text_of(const Slice& string);

/// The content of a string: its escapes resolved, as UTF-8. Fails with kInvalid when an escape is half of a
/// surrogate pair. REQUIRES: parse() found it to be a string.
Result<std::string> text_of(const Slice& string);

/// The digits of a number without its exponent, and without superfluous zeros: "1.50e3" is "1500", "-0.0" is
/// "0". nullopt for one with hundreds of digits. REQUIRES: parse() found it to be a number.
std::optional<std::string> plain_digits_of(const Slice& number);

/// A number that is whole and fits, however it is written.
Result<uint64_t> whole_number_of(const Slice& number);

}  // namespace delayq::json
