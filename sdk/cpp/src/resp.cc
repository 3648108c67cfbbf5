#include "sdk/cpp/src/resp.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <charconv>
#include <cstdio>
#include <pthread.h>
#include <random>
#include <sys/random.h>

namespace delayq::sdk {

namespace {

constexpr std::size_t kLongestLine = std::size_t{1} << 20;
constexpr std::int64_t kLongestText = std::int64_t{512} << 20;
constexpr std::int64_t kMostItems = std::int64_t{1} << 21;
constexpr std::size_t kLongestReason = 1000;

void append_header(std::string& out, char sign, std::size_t value) {
  std::array<char, 24> text;
  text[0] = sign;
  char* const end = std::to_chars(text.data() + 1, text.data() + text.size() - 2, value).ptr;
  end[0] = '\r';
  end[1] = '\n';
  out.append(text.data(), static_cast<std::size_t>(end - text.data()) + 2);
}

bool parse_number(std::string_view text, std::int64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

/// Takes a line at `place`, without its end.
Taken take_line(std::string_view input, std::size_t& place, std::string_view& line) {
  const std::size_t end = input.find('\n', place);
  if (end == std::string_view::npos)
    return input.size() - place > kLongestLine ? Taken::kBroken : Taken::kPartial;
  if (end == place || input[end - 1] != '\r') return Taken::kBroken;
  line = input.substr(place, end - 1 - place);
  place = end + 1;
  return Taken::kValue;
}

Taken take_at(std::string_view input, std::size_t& place, Value& value, std::size_t depth);

Taken take_items(std::string_view input, std::size_t& place, Value& value, std::int64_t count,
                 std::size_t depth) {
  if (depth >= kDeepest || count < 0 || count > kMostItems) return Taken::kBroken;
  // What was promised is believed only as far as it has come.
  value.items.reserve(std::min<std::size_t>(static_cast<std::size_t>(count), (input.size() - place) / 3 + 1));
  for (std::int64_t i = 0; i < count; ++i) {
    const Taken taken = take_at(input, place, value.items.emplace_back(), depth + 1);
    if (taken != Taken::kValue) return taken;
  }
  return Taken::kValue;
}

Taken take_text(std::string_view input, std::size_t& place, Value& value, std::int64_t size) {
  if (size == -1) return Taken::kValue;  // RESP2's null
  if (size < 0 || size > kLongestText) return Taken::kBroken;
  const auto bytes = static_cast<std::size_t>(size);
  if (input.size() - place < bytes + 2) return Taken::kPartial;
  if (input.substr(place + bytes, 2) != "\r\n") return Taken::kBroken;
  value.type = Value::Type::kText;
  value.text.assign(input, place, bytes);
  place += bytes + 2;
  return Taken::kValue;
}

Taken take_at(std::string_view input, std::size_t& place, Value& value, std::size_t depth) {
  if (place >= input.size()) return Taken::kPartial;
  const char sign = input[place];
  std::string_view line;
  std::size_t next = place + 1;
  if (const Taken taken = take_line(input, next, line); taken != Taken::kValue) return taken;
  place = next;
  std::int64_t number = 0;
  switch (sign) {
    case '+':
    case ',':
    case '(':
      value.type = Value::Type::kText;
      value.text = line;
      return Taken::kValue;
    case '-':
      value.type = Value::Type::kError;
      value.text = line;
      return Taken::kValue;
    case '_':
      return Taken::kValue;
    case '#':
      value.type = Value::Type::kInteger;
      value.integer = line == "t" ? 1 : 0;
      return Taken::kValue;
    default:
      break;
  }
  if (!parse_number(line, number)) return Taken::kBroken;
  switch (sign) {
    case ':':
      value.type = Value::Type::kInteger;
      value.integer = number;
      return Taken::kValue;
    case '$':
    case '=':
      return take_text(input, place, value, number);
    case '*':
    case '~':
    case '>':
      if (number == -1) return Taken::kValue;
      value.type = Value::Type::kList;
      return take_items(input, place, value, number, depth);
    case '%':
      value.type = Value::Type::kMap;
      return take_items(input, place, value, number > kMostItems ? number : 2 * number, depth);
    default:
      return Taken::kBroken;
  }
}

struct Code {
  std::string_view prefix;
  ErrorCode code;
};
constexpr std::array<Code, 13> kCodes{{{"INVALID", ErrorCode::invalid},
                                       {"TOOLARGE", ErrorCode::too_large},
                                       {"CONFLICT", ErrorCode::conflict},
                                       {"NOTFOUND", ErrorCode::not_found},
                                       {"STALELEASE", ErrorCode::stale_lease},
                                       {"OVERLOADED", ErrorCode::overloaded},
                                       {"DISKFULL", ErrorCode::disk_full},
                                       {"UNAVAILABLE", ErrorCode::unavailable},
                                       {"STOPPING", ErrorCode::stopping},
                                       {"NOAUTH", ErrorCode::unauthorized},
                                       {"NOPERM", ErrorCode::forbidden},
                                       {"CORRUPT", ErrorCode::corrupt},
                                       {"INTERNAL", ErrorCode::internal}}};

/// How often this process is a child. Its ids must differ from those of its parent.
std::atomic<unsigned> forks = 0;

std::mt19937_64 seeded_generator() {
  std::array<std::uint32_t, 8> seed{};
  if (::getrandom(seed.data(), sizeof(seed), 0) != static_cast<ssize_t>(sizeof(seed))) {
    std::random_device device;
    std::generate(seed.begin(), seed.end(), std::ref(device));
  }
  std::seed_seq sequence(seed.begin(), seed.end());
  return std::mt19937_64(sequence);
}

/// The length of the UTF-8 character at the front, or 0 if these bytes are none.
std::size_t character_size(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < size) return 0;
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const bool is_overlong = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xF0 && byte(1) < 0x90);
  const bool is_no_character = (first == 0xED && byte(1) > 0x9F) || (first == 0xF4 && byte(1) > 0x8F);
  return is_overlong || is_no_character ? 0 : size;
}

}  // namespace

Words& Words::made(std::size_t size) {
  words_.emplace_back(made_[used_], size);
  ++used_;
  assert(used_ <= kMade);
  return *this;
}

Words& Words::number(std::uint64_t value) {
  char* const begin = room();
  return made(static_cast<std::size_t>(std::to_chars(begin, begin + kMadeBytes, value).ptr - begin));
}

Words& Words::millis(std::chrono::milliseconds value) {
  char* const begin = room();
  char* const end = std::to_chars(begin, begin + kMadeBytes, value.count()).ptr;
  end[0] = 'm';
  end[1] = 's';
  return made(static_cast<std::size_t>(end - begin) + 2);
}

std::int64_t unix_ms_of(std::chrono::system_clock::time_point when) {
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(when).time_since_epoch().count();
  return std::max<std::int64_t>(ms, 0);
}

Words& Words::moment(std::chrono::system_clock::time_point when) {
  const std::int64_t past = unix_ms_of(when);
  const int size = std::snprintf(room(), kMadeBytes, "%lld.%03lld", static_cast<long long>(past / 1000),
                                 static_cast<long long>(past % 1000));
  return made(static_cast<std::size_t>(size));
}

void Words::append_to(std::string& out) const {
  std::size_t size = 16;
  for (const std::string_view word : words_) size += word.size() + 16;
  if (out.capacity() - out.size() < size) out.reserve(std::max(out.size() + size, 2 * out.capacity()));
  append_header(out, '*', words_.size());
  for (const std::string_view word : words_) {
    append_header(out, '$', word.size());
    out += word;
    out += "\r\n";
  }
}

void Words::clear() {
  words_.clear();
  used_ = 0;
}

const Value* Value::find(std::string_view key) const {
  for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
    if (items[i].text == key) return &items[i + 1];
  }
  return nullptr;
}

std::string_view Value::text_of(std::string_view key) const {
  const Value* value = find(key);
  return value == nullptr ? std::string_view() : std::string_view(value->text);
}

std::int64_t Value::number_of(std::string_view key) const {
  const Value* value = find(key);
  return value == nullptr ? 0 : value->integer;
}

Taken take_value(std::string_view& input, Value& value) {
  std::size_t place = 0;
  const Taken taken = take_at(input, place, value, 0);
  if (taken == Taken::kValue) input.remove_prefix(place);
  return taken;
}

Taken ReplyScan::advance(std::string_view input) {
  while (left_[0] > 0) {
    if (place_ >= input.size()) return Taken::kPartial;
    const char sign = input[place_];
    std::size_t next = place_ + 1;
    std::string_view line;
    if (const Taken taken = take_line(input, next, line); taken != Taken::kValue) return taken;
    std::int64_t number = 0;
    const bool has_number = std::string_view("$=*~>%").find(sign) != std::string_view::npos;
    if (has_number && !parse_number(line, number)) return Taken::kBroken;
    if ((sign == '$' || sign == '=') && number >= 0) {
      if (number > kLongestText) return Taken::kBroken;
      next += static_cast<std::size_t>(number) + 2;
      if (next > input.size()) return Taken::kPartial;
    } else if (has_number && number > 0) {
      if (number > kMostItems || depth_ == kDeepest) return Taken::kBroken;
      left_[++depth_] = sign == '%' ? 2 * number : number;
      place_ = next;
      continue;
    }
    place_ = next;
    // A value is whole, and so are the lists that it completes.
    while (--left_[depth_] == 0 && depth_ > 0) --depth_;
  }
  return Taken::kValue;
}

std::size_t size_of_commands(std::string_view bytes, std::uint32_t count) {
  std::size_t place = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    std::string_view line;
    std::int64_t words = 0;
    ++place;
    take_line(bytes, place, line);
    parse_number(line, words);
    for (; words > 0; --words) {
      std::int64_t size = 0;
      ++place;
      take_line(bytes, place, line);
      parse_number(line, size);
      place += static_cast<std::size_t>(size) + 2;
    }
  }
  return place;
}

Error error_of(std::string_view line) {
  const std::size_t space = line.find(' ');
  const std::string_view prefix = line.substr(0, space);
  const auto* const found =
      std::find_if(kCodes.begin(), kCodes.end(), [&](const Code& each) { return each.prefix == prefix; });
  if (found == kCodes.end()) return {ErrorCode::internal, std::string(line)};
  const std::string message(space == std::string_view::npos ? std::string_view() : line.substr(space + 1));
  constexpr std::string_view kAgain = "(try again in ";
  const std::size_t again = message.rfind(kAgain);
  if (again == std::string::npos || !message.ends_with(')')) return {found->code, message};
  const std::size_t begin = again + kAgain.size();
  const auto wait = parse_duration(std::string_view(message).substr(begin, message.size() - begin - 1));
  return {found->code, message, wait.value_or(0ms)};
}

std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) {
  struct Unit {
    std::string_view name;
    double millis;
  };
  constexpr std::array<Unit, 5> kUnits{{{"ms", 1}, {"s", 1e3}, {"m", 6e4}, {"h", 3.6e6}, {"d", 8.64e7}}};
  if (text.empty()) return std::nullopt;
  double sum = 0;
  while (!text.empty()) {
    double number = 0;
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
    if (error != std::errc() || number < 0) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    const std::size_t size = std::min(text.find_first_of("0123456789."), text.size());
    const auto* const unit = std::find_if(
        kUnits.begin(), kUnits.end(), [&](const Unit& each) { return each.name == text.substr(0, size); });
    if (unit == kUnits.end()) return std::nullopt;
    sum += number * unit->millis;
    text.remove_prefix(size);
  }
  if (sum > 9e15) return std::nullopt;
  return std::chrono::milliseconds(static_cast<std::int64_t>(sum + 0.5));
}

std::string make_id() {
  static const bool is_watched = ::pthread_atfork(nullptr, nullptr, [] { ++forks; }) == 0;
  thread_local unsigned seeded_for = forks - 1;
  thread_local std::mt19937_64 random;
  if (seeded_for != forks || !is_watched) {
    random = seeded_generator();
    seeded_for = forks;
  }
  const auto ms = static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                                 std::chrono::system_clock::now().time_since_epoch())
                                                 .count());
  const std::uint64_t high = (ms << 16) | 0x7000 | (random() & 0x0FFF);
  const std::uint64_t low = (random() & 0x3FFF'FFFF'FFFF'FFFF) | 0x8000'0000'0000'0000;
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string id(36, '-');
  std::size_t at = 0;
  for (int shift = 124; shift >= 0; shift -= 4) {
    const std::uint64_t part = shift >= 64 ? high >> (shift - 64) : low >> shift;
    if (at == 8 || at == 13 || at == 18 || at == 23) ++at;
    id[at++] = kDigits[part & 15];
  }
  return id;
}

std::string clean_reason(std::string_view text) {
  std::string clean;
  while (!text.empty()) {
    const std::size_t size = character_size(text);
    std::string_view character = text.substr(0, std::max<std::size_t>(size, 1));
    text.remove_prefix(character.size());
    const auto first = static_cast<unsigned char>(character[0]);
    // The control characters above 0x7F are two bytes: C2 80 to C2 9F.
    const bool is_control = first < 0x20 || first == 0x7F ||
                            (first == 0xC2 && size == 2 && static_cast<unsigned char>(character[1]) < 0xA0);
    if (size == 0) character = "\xEF\xBF\xBD";
    if (is_control && character != "\t" && character != "\n") character = " ";
    if (clean.size() + character.size() > kLongestReason) break;
    clean += character;
  }
  return clean;
}

}  // namespace delayq::sdk
