#include "json/writer.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "core/encoding.h"
#include "core/text.h"
#include "json/reader.h"

namespace delayq::json {

namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

/// How a character is escaped; empty if it is written as it is.
std::string_view short_escape(char c) {
  switch (c) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return {};
  }
}

}  // namespace

void append_string(std::string& out, std::string_view text) {
  out += '"';
  for (;;) {
    const size_t plain = plain_prefix(text);
    out.append(text.data(), plain);
    if (plain == text.size()) break;
    const auto byte = static_cast<unsigned char>(text[plain]);
    text.remove_prefix(plain + 1);
    if (const std::string_view escape = short_escape(static_cast<char>(byte)); !escape.empty()) {
      out += escape;
    } else {
      out += "\\u00";
      out += kHexDigits[byte >> 4];
      out += kHexDigits[byte & 15];
    }
  }
  out += '"';
}

/// With a question mark for each byte that is not part of a character.
static std::string repaired(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    std::string_view rest = text;
    if (take_code_point(rest)) {
      out += text.substr(0, text.size() - rest.size());
      text = rest;
    } else {
      out += '?';
      text.remove_prefix(1);
    }
  }
  return out;
}

Writer& Writer::key(std::string_view name) {
  separate();
  append_string(out_, name);
  out_ += ':';
  needs_comma_ = false;
  return *this;
}

Writer& Writer::text(std::string_view value) {
  separate();
  if (is_utf8(value)) {
    append_string(out_, value);
  } else {
    append_string(out_, repaired(value));
  }
  return *this;
}

Writer& Writer::number(uint64_t value) {
  std::array<char, 24> digits;
  const char* const stop = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  return raw({digits.data(), static_cast<size_t>(stop - digits.data())});
}

Writer& Writer::number(int64_t value) {
  std::array<char, 24> digits;
  const char* const stop = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  return raw({digits.data(), static_cast<size_t>(stop - digits.data())});
}

Writer& Writer::number(double value) {
  std::array<char, 40> digits;
  const char* const stop = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  return raw({digits.data(), static_cast<size_t>(stop - digits.data())});
}

Writer& Writer::bytes(std::string_view name, std::string_view value) {
  if (is_utf8(value)) return key(name).text(value);
  return key(std::string(name) + "_base64").text(to_base64(value));
}

namespace {

/// Whether the body can be written into the line as it is and be read back. The line's object is one level of
/// nesting.
bool is_plain_json(std::string_view body) {
  if (body.find_first_of("\r\n") != std::string_view::npos) return false;
  const auto brackets = std::count_if(body.begin(), body.end(), [](char c) { return c == '[' || c == '{'; });
  if (brackets >= kMaxDepth) return false;
  const Result<Slice> value = parse(body);
  return value.ok() && value->text.size() == body.size();
}

/// Whether it is worth reading as text: UTF-8 that does not grow too much by its escapes.
bool is_readable(std::string_view body) {
  size_t growth = 0;
  for (const char c : body) {
    if (static_cast<unsigned char>(c) < 0x20) growth += c == '\n' || c == '\r' || c == '\t' ? 1 : 5;
    growth += c == '"' || c == '\\' ? 1 : 0;
  }
  return growth <= body.size() && is_utf8(body);
}

}  // namespace

void write_body(Writer& json, std::string_view body) {
  if (is_plain_json(body)) {
    json.key("body").raw(body);
  } else if (is_readable(body)) {
    json.key("body_text").text(body);
  } else {
    json.key("body_base64").text(to_base64(body));
  }
}

void write_body_value(Writer& json, std::string_view body) {
  if (parse(body).ok()) {
    json.key("body").raw(body);
  } else {
    json.bytes("body", body);
  }
}

}  // namespace delayq::json
