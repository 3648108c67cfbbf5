#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace delayq::cli {

/// Writes one JSON object on one line, key by key.
class JsonObject {
 public:
  /// Any bytes under `key` when they are UTF-8, else in base64 under `key`_base64: JSON has no other way to
  /// give them back as they were.
  JsonObject& text(std::string_view key, std::string_view value);
  JsonObject& number(std::string_view key, int64_t value);
  JsonObject& boolean(std::string_view key, bool value);

  /// "{...}", without a newline.
  std::string finish() const { return text_ + "}"; }

 private:
  void key(std::string_view name);

  std::string text_ = "{";
};

/// With padding, as RFC 4648 has it.
std::string base64(std::string_view bytes);

}  // namespace delayq::cli
