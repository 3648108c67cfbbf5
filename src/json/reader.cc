#include "json/reader.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include <fmt/format.h>

#include "core/encoding.h"
#include "core/text.h"

namespace delayq::json {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Walks over a text and finds the ends of values. The first problem stops it.
class Walker {
 public:
  /// If `members` is given, the members of the outermost object are added there.
  explicit Walker(std::string_view text, std::vector<Member>* members = nullptr)
      : text_(text), members_(members) {}

  size_t place() const { return at_; }
  bool at_end() const { return at_ == text_.size(); }
  void skip_space() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }

  /// Moves to the end of the value that starts here.
  bool value(Slice& slice, int depth = 0) {
    const size_t start = at_;
    if (at_end()) return fail("a value is missing");
    bool good = false;
    switch (text_[at_]) {
      case '{':
        slice.type = Type::kObject;
        good = object(depth);
        break;
      case '[':
        slice.type = Type::kArray;
        good = array(depth);
        break;
      case '"':
        slice.type = Type::kString;
        good = string();
        break;
      case 't':
        slice.type = Type::kBoolean;
        good = word("true");
        break;
      case 'f':
        slice.type = Type::kBoolean;
        good = word("false");
        break;
      case 'n':
        slice.type = Type::kNull;
        good = word("null");
        break;
      default:
        slice.type = Type::kNumber;
        good = number();
    }
    slice.text = text_.substr(start, at_ - start);
    return good;
  }

  Error error() const { return invalid(fmt::format("{} at byte {}", problem_, at_)); }

 private:
  bool fail(std::string_view problem) {
    problem_ = problem;
    return false;
  }
  bool take(char c) {
    if (at_end() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool word(std::string_view expected) {
    if (!text_.substr(at_).starts_with(expected)) return fail("not a JSON value");
    at_ += expected.size();
    return true;
  }

  bool object(int depth) {
    if (depth >= kMaxDepth) return fail("values within values too deep");
    ++at_;
    skip_space();
    if (take('}')) return true;
    for (;;) {
      if (at_end() || text_[at_] != '"') return fail("a member's name is missing");
      const size_t start = at_;
      if (!string()) return false;
      const Slice name{text_.substr(start, at_ - start), Type::kString};
      skip_space();
      if (!take(':')) return fail("':' is missing");
      skip_space();
      Slice found;
      if (!value(found, depth + 1)) return false;
      if (depth == 0 && members_ != nullptr) note_member(name, found);
      skip_space();
      if (take('}')) return true;
      if (!take(',')) return fail("',' or '}' is missing");
      skip_space();
    }
  }

  bool array(int depth) {
    if (depth >= kMaxDepth) return fail("values within values too deep");
    ++at_;
    skip_space();
    if (take(']')) return true;
    for (;;) {
      Slice ignored;
      if (!value(ignored, depth + 1)) return false;
      skip_space();
      if (take(']')) return true;
      if (!take(',')) return fail("',' or ']' is missing");
      skip_space();
    }
  }

  void note_member(const Slice& name, const Slice& value) {
    constexpr size_t kUsual = 8;
    if (members_->empty()) members_->reserve(kUsual);
    // A name that is not a text is never a known one.
    Result<std::string> text = text_of(name);
    members_->push_back({text.ok() ? std::move(*text) : std::string(name.text), value});
  }

  bool string() {
    const size_t start = ++at_;
    for (;;) {
      at_ += plain_prefix(text_.substr(at_));
      if (at_end()) return fail("a string without its end");
      if (text_[at_] == '"') break;
      if (text_[at_] != '\\') return fail("a control character in a string");
      if (!escape()) return false;
      ++at_;
    }
    if (!is_utf8(text_.substr(start, at_ - start))) return fail("a string that is not UTF-8");
    ++at_;
    return true;
  }

  /// Stops at the escape's last character.
  bool escape() {
    ++at_;
    if (at_end()) return fail("a string without its end");
    if (text_[at_] == 'u') {
      for (int i = 0; i < 4; ++i) {
        ++at_;
        if (at_end() || hex_digit(text_[at_]) < 0) return fail("\\u without four hexadecimal digits");
      }
      return true;
    }
    if (std::string_view("\"\\/bfnrt").find(text_[at_]) == std::string_view::npos)
      return fail("an unknown escape");
    return true;
  }

  bool digits() {
    if (at_end() || !is_digit(text_[at_])) return fail("not a JSON value");
    while (!at_end() && is_digit(text_[at_])) ++at_;
    return true;
  }

  bool number() {
    take('-');
    if (!take('0') && !digits()) return false;
    if (take('.') && !digits()) return false;
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      if (!digits()) return false;
    }
    return true;
  }

  std::string_view text_;
  std::vector<Member>* members_;
  size_t at_ = 0;
  std::string_view problem_;
};

/// The four digits after "\u".
uint32_t code_unit(std::string_view digits) {
  uint32_t unit = 0;
  for (int i = 0; i < 4; ++i)
    unit = unit << 4 | static_cast<uint32_t>(hex_digit(digits[static_cast<size_t>(i)]));
  return unit;
}

void append_utf8(std::string& out, uint32_t point) {
  const auto add = [&out](uint32_t byte) { out += static_cast<char>(byte); };
  if (point < 0x80) return add(point);
  if (point < 0x800) {
    add(0xC0 | point >> 6);
  } else if (point < 0x10000) {
    add(0xE0 | point >> 12);
    add(0x80 | (point >> 6 & 0x3F));
  } else {
    add(0xF0 | point >> 18);
    add(0x80 | (point >> 12 & 0x3F));
    add(0x80 | (point >> 6 & 0x3F));
  }
  add(0x80 | (point & 0x3F));
}

/// Takes a \u escape (or the two of a surrogate pair) off the front of `text`, after its backslash.
bool take_unicode(std::string_view& text, std::string& out) {
  uint32_t point = code_unit(text.substr(1));
  text.remove_prefix(5);
  if (point >= 0xDC00 && point < 0xE000) return false;
  if (point >= 0xD800 && point < 0xDC00) {
    if (!text.starts_with("\\u")) return false;
    const uint32_t low = code_unit(text.substr(2));
    if (low < 0xDC00 || low >= 0xE000) return false;
    text.remove_prefix(6);
    point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00);
  }
  append_utf8(out, point);
  return true;
}

char meaning_of(char escape) {
  constexpr std::string_view kNames = "bfnrt";
  constexpr std::string_view kMeanings = "\b\f\n\r\t";
  const size_t place = kNames.find(escape);
  return place == std::string_view::npos ? escape : kMeanings[place];
}

}  // namespace

std::string_view name_of(Type type) {
  constexpr std::string_view kNames[] = {"null",     "a boolean", "a number",
                                         "a string", "an array",  "an object"};
  return kNames[static_cast<size_t>(type)];
}

namespace {

Result<Slice> take_value(std::string_view& text, std::vector<Member>* members) {
  Walker walker(text, members);
  walker.skip_space();
  Slice slice;
  if (!walker.value(slice)) return walker.error();
  walker.skip_space();
  text.remove_prefix(walker.place());
  return slice;
}

}  // namespace

Result<Slice> take_value(std::string_view& text) { return take_value(text, nullptr); }

Result<Slice> parse(std::string_view text, std::vector<Member>* members) {
  std::string_view rest = text;
  Result<Slice> value = take_value(rest, members);
  if (value.ok() && !rest.empty())
    return invalid(fmt::format("something behind the value at byte {}", text.size() - rest.size()));
  return value;
}

std::vector<Member> members_of(const Slice& object) {
  std::vector<Member> members;
  Slice again;
  Walker(object.text, &members).value(again);
  return members;
}

std::vector<Slice> items_of(const Slice& array) {
  std::vector<Slice> items;
  std::string_view rest = array.text.substr(1);
  for (;;) {
    while (!rest.empty() && (is_space(rest[0]) || rest[0] == ',')) rest.remove_prefix(1);
    if (rest.empty() || rest[0] == ']') return items;
    items.push_back(*take_value(rest));
  }
}

std::optional<std::string_view> plain_text_of(const Slice& string) {
  const std::string_view text = string.text.substr(1, string.text.size() - 2);
  return text.find('\\') == std::string_view::npos ? std::optional(text) : std::nullopt;
}

Result<std::string> text_of(const Slice& string) {
  std::string_view text = string.text.substr(1, string.text.size() - 2);
  std::string out;
  out.reserve(text.size());
  for (;;) {
    const size_t plain = std::min(text.find('\\'), text.size());
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) return out;
    text.remove_prefix(1);
    if (text[0] == 'u') {
      if (!take_unicode(text, out)) return invalid("an escape names half a surrogate pair");
    } else {
      out += meaning_of(text[0]);
      text.remove_prefix(1);
    }
  }
}

std::optional<std::string> plain_digits_of(const Slice& number) {
  constexpr int kMostPlaces = 400;  // a double has no more
  std::string_view text = number.text;
  const bool is_negative = text.starts_with('-');
  if (is_negative) text.remove_prefix(1);
  int exponent = 0;
  if (const size_t e = text.find_first_of("eE"); e != std::string_view::npos) {
    std::string_view digits = text.substr(e + 1);
    if (digits.starts_with('+')) digits.remove_prefix(1);
    const auto [stop, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
    if (problem != std::errc{} || std::abs(exponent) > kMostPlaces) return std::nullopt;
    text = text.substr(0, e);
  }
  const size_t dot = std::min(text.find('.'), text.size());
  std::string digits(text.substr(0, dot));
  if (dot < text.size()) digits += text.substr(dot + 1);
  // Where the point belongs in them; zeros make room for it.
  auto point = static_cast<std::ptrdiff_t>(dot) + exponent;
  if (point < 1) {
    digits.insert(0, static_cast<size_t>(1 - point), '0');
    point = 1;
  }
  auto whole = static_cast<size_t>(point);
  if (digits.size() < whole) digits.append(whole - digits.size(), '0');
  const size_t leading = std::min(digits.find_first_not_of('0'), whole - 1);
  digits.erase(0, leading);
  whole -= leading;
  while (digits.size() > whole && digits.back() == '0') digits.pop_back();
  if (digits.size() > whole) digits.insert(whole, 1, '.');
  return is_negative && digits != "0" ? "-" + digits : digits;
}

Result<uint64_t> whole_number_of(const Slice& number) {
  const std::optional<std::string> digits =
      number.type == Type::kNumber ? plain_digits_of(number) : std::nullopt;
  uint64_t value = 0;
  if (digits) {
    const char* const end = digits->data() + digits->size();
    const auto [stop, problem] = std::from_chars(digits->data(), end, value);
    if (problem == std::errc{} && stop == end) return value;
  }
  return invalid(fmt::format("{} is not a whole number in range", quote(number.text)));
}

}  // namespace delayq::json
