#include "sdk/cpp/tests/json.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <stdexcept>

namespace sdk_test {

namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : rest_(text) {}

  Json value() {
    space();
    switch (rest_.empty() ? '\0' : rest_[0]) {
      case '{':
        return object();
      case '[':
        return array();
      case '"':
        return Json::of(std::string_view(string()));
      case 't':
        word("true");
        return Json::of(true);
      case 'f':
        word("false");
        return Json::of(false);
      case 'n':
        word("null");
        return {};
      default:
        return number();
    }
  }
  void end() {
    space();
    if (!rest_.empty()) fail("the end");
  }

 private:
  [[noreturn]] void fail(std::string_view wanted) {
    throw std::runtime_error("JSON: no " + std::string(wanted) + " at: " + std::string(rest_.substr(0, 40)));
  }
  void space() {
    const std::size_t end = rest_.find_first_not_of(" \t\r\n");
    rest_.remove_prefix(std::min(end, rest_.size()));
  }
  bool takes(char c) {
    space();
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void need(char c) {
    if (!takes(c)) fail(std::string(1, c));
  }
  void word(std::string_view word) {
    if (!rest_.starts_with(word)) fail(word);
    rest_.remove_prefix(word.size());
  }

  Json number() {
    double value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc()) fail("value");
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return Json::of(value);
  }

  unsigned hex() {
    unsigned value = 0;
    const auto [end, error] =
        std::from_chars(rest_.data(), rest_.data() + std::min<std::size_t>(4, rest_.size()), value, 16);
    if (error != std::errc() || end != rest_.data() + 4) fail("four digits");
    rest_.remove_prefix(4);
    return value;
  }

  void append_character(std::string& text) {
    unsigned code = hex();
    if (code >= 0xD800 && code < 0xDC00) {
      word("\\u");
      code = 0x10000 + ((code - 0xD800) << 10) + (hex() - 0xDC00);
    }
    const auto add = [&](unsigned byte) { text += static_cast<char>(byte); };
    if (code < 0x80) return add(code);
    if (code < 0x800) {
      add(0xC0 | code >> 6);
    } else if (code < 0x10000) {
      add(0xE0 | code >> 12);
      add(0x80 | (code >> 6 & 63));
    } else {
      add(0xF0 | code >> 18);
      add(0x80 | (code >> 12 & 63));
      add(0x80 | (code >> 6 & 63));
    }
    add(0x80 | (code & 63));
  }

  std::string string() {
    need('"');
    std::string text;
    for (;;) {
      if (rest_.empty()) fail("end of a string");
      const char c = rest_[0];
      rest_.remove_prefix(1);
      if (c == '"') return text;
      if (c != '\\') {
        text += c;
        continue;
      }
      if (rest_.empty()) fail("escape");
      const char escape = rest_[0];
      rest_.remove_prefix(1);
      constexpr std::string_view kNames = "\"\\/bfnrt";
      constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
      if (escape == 'u') {
        append_character(text);
      } else if (const std::size_t at = kNames.find(escape); at != std::string_view::npos) {
        text += kMeanings[at];
      } else {
        fail("escape");
      }
    }
  }

  Json array() {
    Json value{.type = Json::Type::kArray};
    need('[');
    if (takes(']')) return value;
    do value.items.push_back(this->value());
    while (takes(','));
    need(']');
    return value;
  }

  Json object() {
    Json value{.type = Json::Type::kObject};
    need('{');
    if (takes('}')) return value;
    do {
      space();
      std::string name = string();
      need(':');
      value.members.emplace_back(std::move(name), this->value());
    } while (takes(','));
    need('}');
    return value;
  }

  std::string_view rest_;
};

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      (out += '\\') += c;
    } else if (byte < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof(escape), "\\u%04x", byte);
      out += escape;
    } else {
      out += c;
    }
  }
  return out + '"';
}

}  // namespace

const Json* Json::find(std::string_view name) const {
  const auto found =
      std::find_if(members.begin(), members.end(), [&](const auto& each) { return each.first == name; });
  return found == members.end() ? nullptr : &found->second;
}

Json& Json::set(std::string_view name, Json value) {
  type = Type::kObject;
  members.emplace_back(name, std::move(value));
  return *this;
}

Json Json::parse(std::string_view text) {
  Parser parser(text);
  Json value = parser.value();
  parser.end();
  return value;
}

std::string Json::dump() const {
  std::string out;
  switch (type) {
    case Type::kNull:
      return "null";
    case Type::kBoolean:
      return boolean ? "true" : "false";
    case Type::kNumber: {
      char digits[40];
      return {digits, std::to_chars(digits, digits + sizeof(digits), number).ptr};
    }
    case Type::kString:
      return in_quotes(text);
    case Type::kArray:
      for (const Json& each : items) out += (out.empty() ? "" : ",") + each.dump();
      return "[" + out + "]";
    case Type::kObject:
      for (const auto& [name, value] : members)
        out += (out.empty() ? "" : ",") + in_quotes(name) + ":" + value.dump();
      return "{" + out + "}";
  }
  return out;
}

bool Json::operator==(const Json& other) const {
  if (type != other.type || members.size() != other.members.size()) return false;
  for (const auto& [name, value] : members) {
    const Json* const theirs = other.find(name);
    if (theirs == nullptr || !(value == *theirs)) return false;
  }
  return boolean == other.boolean && number == other.number && text == other.text && items == other.items;
}

std::string from_base64(const std::string& text) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  unsigned bits = 0;
  int count = 0;
  for (const char c : text) {
    const std::size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) break;
    bits = bits << 6 | static_cast<unsigned>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xFF);
  }
  return bytes;
}

}  // namespace sdk_test
