#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// JSON for the tests of the library, which cannot use the server's sources.
namespace sdk_test {

struct Json {
  enum class Type : std::uint8_t { kNull, kBoolean, kNumber, kString, kArray, kObject };

  Type type = Type::kNull;
  bool boolean = false;
  double number = 0;
  std::string text{};
  std::vector<Json> items{};
  std::vector<std::pair<std::string, Json>> members{};

  static Json of(std::string_view text) { return {.type = Type::kString, .text = std::string(text)}; }
  static Json of(double number) { return {.type = Type::kNumber, .number = number}; }
  static Json of(bool boolean) { return {.type = Type::kBoolean, .boolean = boolean}; }

  bool is_null() const { return type == Type::kNull; }
  bool is_string() const { return type == Type::kString; }
  bool is_object() const { return type == Type::kObject; }
  /// A member, or null.
  const Json* find(std::string_view name) const;
  /// Adds a member.
  Json& set(std::string_view name, Json value);
  /// Throws std::runtime_error.
  static Json parse(std::string_view text);
  std::string dump() const;
  bool operator==(const Json& other) const;
};

/// The payloads of the scenarios: bytes as text.
std::string from_base64(const std::string& text);

}  // namespace sdk_test
