#include "resp/value.h"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "core/text.h"

namespace delayq::resp {

namespace {

Error broken(std::string detail) { return {ErrorCode::kCorrupt, "resp", std::move(detail), {}}; }

/// One line of a reply: a sign, its text, and how many bytes it has with its end.
struct Line {
  char sign = 0;
  std::string_view text;
  size_t size = 0;
};

std::optional<Line> first_line(std::string_view input) {
  const size_t end = input.find("\r\n");
  if (end == std::string_view::npos || end == 0) return std::nullopt;
  return Line{input[0], input.substr(1, end - 1), end + 2};
}

Result<int64_t> integer_of(const Line& line) {
  int64_t value = 0;
  const char* const end = line.text.data() + line.text.size();
  const auto [stop, problem] = std::from_chars(line.text.data(), end, value);
  if (problem != std::errc{} || stop != end || line.text.empty())
    return broken(fmt::format("not a number: {}", quote(line.text)));
  return value;
}

bool is_bulk(char sign) { return sign == '$' || sign == '=' || sign == '!'; }
bool is_aggregate(char sign) { return sign == '*' || sign == '%' || sign == '~' || sign == '>'; }

/// How many values follow the line of an aggregate, or how many bytes the line of a bulk string; -1: it is
/// null.
Result<int64_t> length_of(const Line& line, const ValueLimits& limits) {
  const Result<int64_t> length = integer_of(line);
  if (!length.ok()) return length.error();
  const auto limit = static_cast<int64_t>(is_bulk(line.sign) ? limits.bulk_bytes : limits.items);
  if (*length < -1 || *length > limit)
    return broken(fmt::format("a length of {} where at most {} is accepted", *length, limit));
  return line.sign == '%' && *length > 0 ? *length * 2 : *length;
}

/// Counts the values that are still to come; on the stack, so that counting replies costs no allocation.
class Open {
 public:
  bool any() const { return depth_ > 0; }
  /// Returns false when the nesting is too deep.
  bool push(size_t values, const ValueLimits& limits) {
    if (depth_ >= std::min(limits.depth, left_.size())) return false;
    left_[depth_++] = values;
    return true;
  }
  void count_one() {
    if (depth_ > 0) --left_[depth_ - 1];
  }
  void close_full() {
    while (depth_ > 0 && left_[depth_ - 1] == 0) --depth_;
  }

 private:
  std::array<size_t, ValueLimits::kMaxDepth> left_;  // the first depth_ are set
  size_t depth_ = 0;
};

/// Handles what follows the line of a bulk string or an aggregate: moves `place` to the end of the bulk
/// string, or adds a level to `open`. Returns false when the bulk string has not arrived completely.
Result<bool> measure_content(const Line& line, std::string_view input, size_t& place, Open& open,
                             const ValueLimits& limits) {
  const Result<int64_t> length = length_of(line, limits);
  if (!length.ok()) return length.error();
  if (is_aggregate(line.sign)) {
    if (*length > 0 && !open.push(static_cast<size_t>(*length), limits))
      return broken("values within values too deep");
    return true;
  }
  if (*length < 0) return true;
  place += static_cast<size_t>(*length) + 2;
  if (place > input.size()) return false;
  if (input.substr(place - 2, 2) != "\r\n") return broken("a bulk string without its end");
  return true;
}

/// Returns the size of the whole reply, 0 when it has not arrived completely.
Result<size_t> measure(std::string_view input, const ValueLimits& limits) {
  size_t place = 0;
  Open open;
  do {
    if (place >= input.size()) return size_t{0};
    const auto line = first_line(input.substr(place));
    if (!line) {
      if (input[place] == '\r') return broken("a line without a type");
      if (input.size() - place > limits.line_bytes) return broken("a line is too long");
      return size_t{0};
    }
    if (line->size > limits.line_bytes) return broken("a line is too long");
    place += line->size;
    open.count_one();
    if (is_bulk(line->sign) || is_aggregate(line->sign)) {
      const Result<bool> whole = measure_content(*line, input, place, open, limits);
      if (!whole.ok()) return whole.error();
      if (!*whole) return size_t{0};
    } else if (std::string_view("+-:,#_(").find(line->sign) == std::string_view::npos) {
      return broken(fmt::format("unknown type {}", quote({&line->sign, 1})));
    }
    open.close_full();
  } while (open.any());
  return place;
}

Result<Value> read_line(const Line& line) {
  Value value;
  value.text = line.text;
  switch (line.sign) {
    case '+':
      value.type = Value::Type::kSimple;
      return value;
    case '-':
      value.type = Value::Type::kError;
      return value;
    case '(':  // a number too large for an integer: as text
      value.type = Value::Type::kBulk;
      return value;
    case '_':
      return Value{};
    case '#':
      value.type = Value::Type::kBoolean;
      value.integer = line.text == "t" ? 1 : 0;
      return value;
    case ',': {
      value.type = Value::Type::kDouble;
      const char* const end = line.text.data() + line.text.size();
      const auto [stop, problem] = std::from_chars(line.text.data(), end, value.number);
      if (problem != std::errc{} || stop != end)
        return broken(fmt::format("not a number: {}", quote(line.text)));
      return value;
    }
    default: {
      const Result<int64_t> number = integer_of(line);
      if (!number.ok()) return number.error();
      value.type = Value::Type::kInteger;
      value.integer = *number;
      return value;
    }
  }
}

/// REQUIRES: measure() found a whole value here, which has checked its depth.
Result<Value> read(std::string_view& input, const ValueLimits& limits) {
  const Line line = *first_line(input);
  input.remove_prefix(line.size);
  if (!is_bulk(line.sign) && !is_aggregate(line.sign)) return read_line(line);
  const Result<int64_t> length = length_of(line, limits);
  if (!length.ok()) return length.error();
  Value value;
  if (*length < 0) return value;
  if (is_bulk(line.sign)) {
    value.type = line.sign == '!' ? Value::Type::kError : Value::Type::kBulk;
    value.text = input.substr(0, static_cast<size_t>(*length));
    if (line.sign == '=' && value.text.size() >= 4)
      value.text.erase(0, 4);  // "txt:" before a verbatim string
    input.remove_prefix(static_cast<size_t>(*length) + 2);
    return value;
  }
  value.type = line.sign == '%' ? Value::Type::kMap : Value::Type::kArray;
  for (int64_t i = 0; i < *length; ++i) {
    Result<Value> item = read(input, limits);
    if (!item.ok()) return item;
    value.items.push_back(std::move(*item));
  }
  return value;
}

}  // namespace

const Value* Value::find(std::string_view key) const {
  for (size_t i = 0; i + 1 < items.size(); i += 2) {
    if (items[i].text == key) return &items[i + 1];
  }
  return nullptr;
}

Result<std::optional<size_t>> reply_size(std::string_view input, const ValueLimits& limits) {
  const Result<size_t> size = measure(input, limits);
  if (!size.ok()) return size.error();
  return *size == 0 ? std::optional<size_t>() : std::optional(*size);
}

Result<std::optional<Value>> take_reply(std::string_view& input, const ValueLimits& limits) {
  const Result<std::optional<size_t>> size = reply_size(input, limits);
  if (!size.ok()) return size.error();
  if (!*size) return std::optional<Value>();
  std::string_view rest = input;
  Result<Value> value = read(rest, limits);
  if (!value.ok()) return value.error();
  input.remove_prefix(**size);
  return std::optional<Value>(std::move(*value));
}

std::string_view info_line(std::string_view info, std::string_view name) {
  for (size_t at = info.find(name); at != std::string_view::npos; at = info.find(name, at + 1)) {
    const bool begins_line = at == 0 || info[at - 1] == '\n';
    const size_t colon = at + name.size();
    if (!begins_line || colon >= info.size() || info[colon] != ':') continue;
    const std::string_view rest = info.substr(colon + 1);
    return rest.substr(0, rest.find_first_of("\r\n"));
  }
  return {};
}

}  // namespace delayq::resp
