#include "json/splitter.h"

#include <fmt/format.h>

#include "json/reader.h"

namespace delayq::json {

namespace {

/// A buffer that grew above this is released.
constexpr size_t kKeptCapacity = 64 * 1024;

}  // namespace

Splitter::Outcome Splitter::broken(std::string_view what) {
  error_ = what;
  return Outcome::kBroken;
}

bool Splitter::find_value(std::string_view& text) {
  for (; !text.empty(); text.remove_prefix(1)) {
    const char c = text.front();
    if (is_space(c)) continue;
    switch (position_) {
      case Position::kStart:
        if (form_ == Form::kSequence) {
          position_ = Position::kInside;
          return true;
        }
        if (c != '[') {
          error_ = "expected an array";
          return false;
        }
        position_ = Position::kFirst;
        continue;
      case Position::kFirst:
      case Position::kItem:
        if (c == ']' && position_ == Position::kFirst) {
          position_ = Position::kEnd;
          continue;
        }
        if (c == ',' || c == ']' || c == '}') {
          error_ = fmt::format("expected a value, and there is a {}", c);
          return false;
        }
        position_ = Position::kInside;
        return true;
      case Position::kSeparator:
        if (c != ',' && c != ']') {
          error_ = "expected a comma or the end of the array";
          return false;
        }
        position_ = c == ',' ? Position::kItem : Position::kEnd;
        continue;
      case Position::kInside:
        return true;
      case Position::kEnd:
        error_ = "there is more behind the array";
        return false;
    }
  }
  return false;
}

size_t Splitter::find_end(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string_) {
      if (is_escaped_) {
        is_escaped_ = false;
      } else if (c == '\\') {
        is_escaped_ = true;
      } else if (c == '"') {
        in_string_ = false;
        if (depth_ == 0) return i + 1;
      }
    } else if (is_scalar_) {
      if (is_space(c) || c == ',' || c == ']' || c == '}') return i;
    } else if (c == '"') {
      in_string_ = true;
    } else if (c == '{' || c == '[') {
      ++depth_;
    } else if (c == '}' || c == ']') {
      if (--depth_ <= 0) return i + 1;
    } else if (depth_ == 0) {
      is_scalar_ = true;
    }
  }
  return std::string_view::npos;
}

Splitter::Outcome Splitter::next(std::string_view& text) {
  if (!error_.empty()) return Outcome::kBroken;
  if (position_ != Position::kInside) {
    if (begun_.capacity() > kKeptCapacity) std::string().swap(begun_);
    begun_.clear();
    depth_ = 0;
    is_scalar_ = in_string_ = is_escaped_ = false;
    if (!find_value(text)) return error_.empty() ? Outcome::kMore : Outcome::kBroken;
  }
  const size_t end = find_end(text);
  const size_t size = begun_.size() + std::min(end, text.size());
  if (size > value_bytes_) return broken(fmt::format("a value has more than {} bytes", value_bytes_));
  if (end == std::string_view::npos) {
    begun_ += text;
    text = {};
    return Outcome::kMore;
  }
  if (begun_.empty()) {
    value_ = text.substr(0, end);
  } else {
    begun_ += text.substr(0, end);
    value_ = begun_;
  }
  text.remove_prefix(end);
  position_ = form_ == Form::kArray ? Position::kSeparator : Position::kStart;
  return Outcome::kValue;
}

Splitter::Outcome Splitter::finish() {
  if (!error_.empty()) return Outcome::kBroken;
  if (position_ == Position::kInside && is_scalar_ && form_ == Form::kSequence) {
    value_ = begun_;
    position_ = Position::kStart;
    return Outcome::kValue;
  }
  const bool is_whole = form_ == Form::kArray ? position_ == Position::kEnd : position_ == Position::kStart;
  return is_whole ? Outcome::kMore : broken("it ends in the middle");
}

}  // namespace delayq::json
