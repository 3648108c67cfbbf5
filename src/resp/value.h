#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace delayq::resp {

/// A reply, as a client reads it. RESP2 and RESP3.
struct Value {
  enum class Type : uint8_t {
    kNull,
    kSimple,   ///< text: a status such as OK
    kError,    ///< text: "CODE what went wrong"
    kInteger,  ///< integer
    kBulk,     ///< text: any bytes
    kDouble,   ///< number
    kBoolean,  ///< integer: 0 or 1
    kArray,    ///< items; sets and pushes are read as this, too
    kMap,      ///< items: key, value, key, value ...
  };

  Type type = Type::kNull;
  int64_t integer = 0;
  double number = 0;
  std::string text;
  std::vector<Value> items;

  bool is_error() const { return type == Type::kError; }
  /// The value of `key` in a map, or in an array of keys and values as RESP2 has them; null when there is
  /// none.
  const Value* find(std::string_view key) const;
};

/// What a client accepts; more is an error.
struct ValueLimits {
  size_t depth = 32;  ///< at most kMaxDepth
  size_t bulk_bytes = 512u << 20;
  size_t items = 1u << 20;
  size_t line_bytes = 1u << 20;  ///< of a status, an error, a number

  static constexpr size_t kMaxDepth = 64;
};

/// The size of the whole reply at the front of `input`: nullopt when it has not arrived completely, kCorrupt
/// when the bytes are not a reply. Builds nothing, so it is the cheap way to count replies.
Result<std::optional<size_t>> reply_size(std::string_view input, const ValueLimits& limits = {});

/// Removes the reply at the front of `input` and returns it; nullopt when it has not arrived completely.
Result<std::optional<Value>> take_reply(std::string_view& input, const ValueLimits& limits = {});

/// The value of a line "name:value" in the reply to INFO; empty when there is none. A view into `info`.
std::string_view info_line(std::string_view info, std::string_view name);

}  // namespace delayq::resp
