#include "resp/command_parser.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include <fmt/format.h>

#include "core/encoding.h"
#include "core/text.h"

namespace delayq::resp {

namespace {

constexpr size_t kLongestNumber = 20;
constexpr size_t kShortestArgument = std::string_view("$0\r\n\r\n").size();

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f' || c == '\0'; }

/// Reads the sign and the number at `place` when the number has at most eight digits and its line end, as
/// nearly all have, and is not above the limit. Returns false, and changes nothing, in all other cases: these
/// are for CommandParser::number().
bool short_number(std::string_view input, char sign, size_t& place, size_t& value, size_t limit) {
  constexpr size_t kDigits = 8;
  if (place >= input.size() || input[place] != sign) return false;
  size_t end = place + 1;
  size_t read = 0;
  for (const size_t stop = std::min(input.size(), end + kDigits); end < stop; ++end) {
    const unsigned digit = static_cast<unsigned char>(input[end]) - unsigned{'0'};
    if (digit > 9) break;
    read = read * 10 + digit;
  }
  if (end == place + 1 || read > limit || input.size() - end < 2) return false;
  if (input[end] != '\r' || input[end + 1] != '\n') return false;
  value = read;
  place = end + 2;
  return true;
}

/// Takes one character, perhaps written as an escape, off the front of `text`, which is not empty.
char take_escaped(std::string_view& text) {
  if (text[0] != '\\' || text.size() < 2) {
    const char plain = text[0];
    text.remove_prefix(1);
    return plain;
  }
  if (text[1] == 'x' && text.size() >= 4 && hex_digit(text[2]) >= 0 && hex_digit(text[3]) >= 0) {
    const auto byte = static_cast<char>(hex_digit(text[2]) * 16 + hex_digit(text[3]));
    text.remove_prefix(4);
    return byte;
  }
  constexpr std::string_view kNames = "nrtba";
  constexpr std::string_view kMeanings = "\n\r\t\b\a";
  const char name = text[1];
  text.remove_prefix(2);
  const size_t place = kNames.find(name);
  return place == std::string_view::npos ? name : kMeanings[place];
}

}  // namespace

CommandParser::Outcome CommandParser::broken(std::string error) {
  error_ = std::move(error);
  return Outcome::kBroken;
}

CommandParser::Outcome CommandParser::partial(size_t needed) {
  needed_ = needed;
  return Outcome::kPartial;
}

CommandParser::Outcome CommandParser::next(std::string_view input) {
  arguments_.clear();
  consumed_ = 0;
  if (input.empty()) return partial(1);
  return input[0] == '*' ? next_array(input) : next_line(input);
}

CommandParser::Outcome CommandParser::number(std::string_view input, char sign, size_t& place, size_t& value,
                                             size_t limit, std::string_view what) {
  if (place >= input.size()) return partial(place + 1);
  if (input[place] != sign) {
    return broken(fmt::format("expected '{}', got {}", sign, quote(input.substr(place, 1))));
  }
  const char* const begin = input.data() + place + 1;
  const size_t left = input.size() - place - 1;
  const void* const end = std::memchr(begin, '\r', std::min(left, kLongestNumber + 1));
  if (end == nullptr) {
    if (left > kLongestNumber) return broken(fmt::format("the {} is not a number", what));
    return partial(input.size() + 1);
  }
  const char* const behind = static_cast<const char*>(end);
  const auto [stop, problem] = std::from_chars(begin, behind, value);
  if (problem != std::errc{} || stop != behind || begin == behind) {
    return broken(
        fmt::format("the {} is not a number: {}", what, quote({begin, static_cast<size_t>(behind - begin)})));
  }
  if (value > limit) return broken(fmt::format("the {} is {}, above the limit of {}", what, value, limit));
  place = static_cast<size_t>(behind - input.data()) + 2;
  if (place > input.size()) return partial(place);
  if (behind[1] != '\n') return broken(fmt::format("the {} is not followed by a line end", what));
  return Outcome::kCommand;
}

CommandParser::Outcome CommandParser::next_array(std::string_view input) {
  size_t place = 0;
  size_t count = 0;
  constexpr std::string_view kNullArray = "*-1\r\n";
  if (input.starts_with(kNullArray)) {  // an empty command
    consumed_ = kNullArray.size();
    return Outcome::kCommand;
  }
  if (input.size() > 1 && kNullArray.starts_with(input)) return partial(input.size() + 1);
  Outcome outcome = Outcome::kCommand;
  if (!short_number(input, '*', place, count, limits_.arguments))
    outcome = number(input, '*', place, count, limits_.arguments, "number of arguments");
  if (outcome != Outcome::kCommand) return outcome;
  size_t total = 0;
  for (size_t i = 0; i < count; ++i) {
    size_t size = 0;
    // The command needs at least the lines of its remaining arguments. Without this bound, a client that
    // sends single bytes would make us read a long command again for each byte.
    const size_t behind = (count - i - 1) * kShortestArgument;
    if (!short_number(input, '$', place, size, limits_.argument_bytes))
      outcome = number(input, '$', place, size, limits_.argument_bytes, "length of an argument");
    if (outcome == Outcome::kPartial) needed_ += behind;
    if (outcome != Outcome::kCommand) return outcome;
    total += size;
    if (total > limits_.command_bytes)
      return broken(fmt::format("the command has more than {} bytes", limits_.command_bytes));
    if (input.size() < place + size + 2) return partial(place + size + 2 + behind);
    if (input[place + size] != '\r' || input[place + size + 1] != '\n')
      return broken("an argument is not followed by a line end");
    arguments_.push_back(input.substr(place, size));
    place += size + 2;
  }
  consumed_ = place;
  return Outcome::kCommand;
}

CommandParser::Outcome CommandParser::next_line(std::string_view input) {
  const size_t end = input.find('\n');
  if (end == std::string_view::npos) {
    if (input.size() > limits_.inline_bytes) return broken("a line is too long");
    return partial(input.size() + 1);
  }
  if (end > limits_.inline_bytes) return broken("a line is too long");
  consumed_ = end + 1;
  if (!split(input.substr(0, end))) return broken("unbalanced quotes in a line");
  return Outcome::kCommand;
}

bool CommandParser::split(std::string_view line) {
  unquoted_.clear();
  for (;;) {
    while (!line.empty() && is_space(line[0])) line.remove_prefix(1);
    if (line.empty()) break;
    std::string word;
    while (!line.empty() && !is_space(line[0])) {
      const char quote_mark = line[0];
      if (quote_mark != '"' && quote_mark != '\'') {
        word += line[0];
        line.remove_prefix(1);
        continue;
      }
      line.remove_prefix(1);
      while (!line.empty() && line[0] != quote_mark) {
        if (quote_mark == '"') {
          word += take_escaped(line);
        } else {
          if (line.starts_with("\\'")) line.remove_prefix(1);
          word += line[0];
          line.remove_prefix(1);
        }
      }
      if (line.empty()) return false;
      line.remove_prefix(1);
      if (!line.empty() && !is_space(line[0])) return false;  // as in Redis: a closing quote ends the word
    }
    unquoted_.push_back(std::move(word));
  }
  for (const std::string& word : unquoted_) arguments_.emplace_back(word);
  return true;
}

}  // namespace delayq::resp
