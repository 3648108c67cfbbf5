#include "cli/json.h"

#include <fmt/format.h>

#include "core/utf8.h"

namespace delayq::cli {

namespace {

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    if (!take_code_point(text)) return false;
  }
  return true;
}

/// REQUIRES: is_utf8(text).
void append_string(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  out += '"';
}

}  // namespace

JsonObject& JsonObject::text(std::string_view name, std::string_view value) {
  if (is_utf8(value)) {
    key(name);
    append_string(text_, value);
  } else {
    key(fmt::format("{}_base64", name));
    append_string(text_, base64(value));
  }
  return *this;
}

JsonObject& JsonObject::number(std::string_view name, int64_t value) {
  key(name);
  text_ += fmt::format("{}", value);
  return *this;
}

JsonObject& JsonObject::boolean(std::string_view name, bool value) {
  key(name);
  text_ += value ? "true" : "false";
  return *this;
}

void JsonObject::key(std::string_view name) {
  if (text_.size() > 1) text_ += ',';
  append_string(text_, name);
  text_ += ':';
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t j = 0; j < 3; ++j) {
      group = group << 8 | (j < count ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    }
    for (size_t j = 0; j < 4; ++j) out += j <= count ? kDigits[group >> (18 - 6 * j) & 63] : '=';
  }
  return out;
}

}  // namespace delayq::cli
