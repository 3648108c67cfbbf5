#include "ops/field.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/duration.h"
#include "core/moment.h"
#include "core/retry_policy.h"
#include "core/text.h"

namespace delayq {

namespace {

struct Unit {
  std::string_view name;
  uint64_t bytes;
};

/// Those of format_size() come last, from small to large.
constexpr std::array kUnits{
    Unit{"", 1},
    Unit{"KB", 1'000},
    Unit{"MB", 1'000'000},
    Unit{"GB", 1'000'000'000},
    Unit{"TB", 1'000'000'000'000},
    Unit{"B", 1},
    Unit{"KiB", uint64_t{1} << 10},
    Unit{"MiB", uint64_t{1} << 20},
    Unit{"GiB", uint64_t{1} << 30},
    Unit{"TiB", uint64_t{1} << 40},
};
constexpr size_t kFirstWritten = 5;
/// The longest value of a name in a table: some are certificates.
constexpr size_t kPairBytes = size_t{64} << 10;

Error not_a_size(std::string_view text, std::string_view advice) {
  return invalid(fmt::format("{} is not a size: {}", quote(text), advice));
}

}  // namespace

Result<uint64_t> parse_size(std::string_view text) {
  constexpr std::string_view kUse =
      R"(use a whole number of bytes, or one with a unit such as "64KB", "32MiB")";
  constexpr std::string_view kTooLarge = "it does not fit into 64 bits";
  uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc::result_out_of_range) return not_a_size(text, kTooLarge);
  if (error != std::errc{}) return not_a_size(text, kUse);
  const std::string_view name(stop, static_cast<size_t>(end - stop));
  for (const Unit& unit : kUnits) {
    if (unit.name != name) continue;
    if (number > std::numeric_limits<uint64_t>::max() / unit.bytes) return not_a_size(text, kTooLarge);
    return number * unit.bytes;
  }
  return not_a_size(text, kUse);
}

std::string format_size(uint64_t bytes) {
  const Unit* best = &kUnits[kFirstWritten];
  for (size_t i = kFirstWritten; i < kUnits.size(); ++i) {
    if (bytes != 0 && bytes % kUnits[i].bytes == 0) best = &kUnits[i];
  }
  return fmt::format("{}{}", bytes / best->bytes, best->name);
}

Status check_redis_prefix(std::string_view text) {
  const bool is_right = std::all_of(text.begin(), text.end(),
                                    [](char c) { return c > ' ' && c < '\x7f' && c != '{' && c != '}'; });
  return is_right ? Status{} : invalid("a prefix has visible ASCII characters, without { and }");
}

std::string without_password(std::string_view url) {
  const size_t begin = url.find("://");
  const size_t at = url.rfind('@');
  if (begin == std::string_view::npos || at == std::string_view::npos || at < begin) return std::string(url);
  const size_t colon = url.find(':', begin + 3);
  // Without a colon all of it may be a password.
  const size_t from = colon < at ? colon + 1 : begin + 3;
  return fmt::format("{}***{}", url.substr(0, from), url.substr(at));
}

namespace {

template <class... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <class... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

/// How a message names the given value.
std::string shown(const Given& given) {
  switch (given.kind) {
    case Given::Kind::kText:
      return quote(given.text);
    case Given::Kind::kNumber:
    case Given::Kind::kBoolean:
    case Given::Kind::kOther:
      return given.text;
    case Given::Kind::kList:
      return "a list";
    case Given::Kind::kTable:
      break;
  }
  return "a table";
}

Error wrong_kind(const Given& given, std::string_view advice) {
  return invalid(fmt::format("{} is not allowed: {}", shown(given), advice));
}

bool is_scalar(const Given& given) {
  return given.kind == Given::Kind::kText || given.kind == Given::Kind::kNumber;
}

/// A whole number, also as text: on a command line every value is text.
std::optional<uint64_t> whole_number(std::string_view text) {
  uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return number;
}

Error out_of_range(const Given& given, std::string_view min, std::string_view max) {
  return invalid(fmt::format("{} is out of range: {} to {} is allowed", shown(given), min, max));
}

Status read(const AddressField& field, const Given& given, FieldTarget& target) {
  if (given.kind != Given::Kind::kText) return wrong_kind(given, R"(use a text such as "127.0.0.1:9278")");
  Result<Address> address = parse_address(given.text);
  if (!address) return address.error();
  field.put(target, std::move(*address));
  return {};
}

Status read(const SizeField& field, const Given& given, FieldTarget& target) {
  if (!is_scalar(given)) return wrong_kind(given, R"(use a size such as "32MiB")");
  const Result<uint64_t> size = parse_size(given.text);
  if (!size) return size.error();
  if (*size < field.min || *size > field.max) {
    return out_of_range(given, format_size(field.min), format_size(field.max));
  }
  field.put(target, *size);
  return {};
}

Status read(const NumberField& field, const Given& given, FieldTarget& target) {
  const std::optional<uint64_t> number = is_scalar(given) ? whole_number(given.text) : std::nullopt;
  if (!number) {
    return wrong_kind(given, fmt::format("use a whole number from {} to {}", field.min, field.max));
  }
  if (*number < field.min || *number > field.max) {
    return out_of_range(given, fmt::format("{}", field.min), fmt::format("{}", field.max));
  }
  field.put(target, *number);
  return {};
}

Status read(const DurationField& field, const Given& given, FieldTarget& target) {
  if (!is_scalar(given)) return wrong_kind(given, R"(use a duration in quotes, such as "30s")");
  const Result<Millis> duration = parse_duration(given.text);
  if (!duration) return duration.error();
  if (*duration < field.min || *duration > field.max) {
    return out_of_range(given, format_duration(field.min), format_duration(field.max));
  }
  field.put(target, *duration);
  return {};
}

Status read(const MomentField& field, const Given& given, FieldTarget& target) {
  if (!is_scalar(given)) return wrong_kind(given, R"(use a text in quotes, such as "2030-01-31T08:00:00Z")");
  const Result<Moment> moment = parse_moment(given.text);
  if (!moment) return moment.error();
  field.put(target, *moment);
  return {};
}

Status read(const BooleanField& field, const Given& given, FieldTarget& target) {
  const bool may_be = given.kind == Given::Kind::kBoolean || given.kind == Given::Kind::kText;
  if (!may_be || (given.text != "true" && given.text != "false")) {
    return wrong_kind(given, "use true or false");
  }
  field.put(target, given.text == "true");
  return {};
}

Status read(const TextField& field, const Given& given, FieldTarget& target) {
  if (given.kind != Given::Kind::kText) {
    return field.is_secret ? invalid("the value is not a text: write it in quotes")
                           : wrong_kind(given, "use a text in quotes");
  }
  // These become paths, where a NUL would end them early.
  if (given.text.find('\0') != std::string::npos)
    return invalid(fmt::format("{} contains a NUL byte, which is not allowed",
                               field.is_secret ? "the value" : shown(given)));
  if (given.text.size() < field.min_bytes) return invalid("it is empty: a text is needed");
  if (given.text.size() > field.max_bytes) {
    return invalid(
        fmt::format("it has {} bytes: at most {} are allowed", given.text.size(), field.max_bytes));
  }
  if (field.check != nullptr && !given.text.empty()) {
    if (Status status = field.check(given.text); !status) return status;
  }
  field.put(target, given.text);
  return {};
}

Status read(const ListField& field, const Given& given, FieldTarget& target) {
  std::vector<std::string> list = given.list;
  if (given.kind == Given::Kind::kText) {
    std::string_view rest = given.text;
    while (!rest.empty()) {
      const size_t comma = std::min(rest.find(','), rest.size());
      list.emplace_back(rest.substr(0, comma));
      rest.remove_prefix(std::min(rest.size(), comma + 1));
    }
  } else if (given.kind != Given::Kind::kList) {
    return wrong_kind(given, "use a list of texts in quotes");
  }
  if (list.size() > field.most)
    return invalid(fmt::format("it has {} entries: at most {} are allowed", list.size(), field.most));
  if (field.check != nullptr) {
    if (Status status = field.check(list); !status) return status;
  }
  field.put(target, std::move(list));
  return {};
}

Status read(const PairsField& field, const Given& given, FieldTarget& target) {
  if (given.kind == Given::Kind::kTable) return {};  // the names in it are entries of their own
  if (given.kind != Given::Kind::kText) return invalid("this is a table: write NAME = VALUE below it");
  std::string_view rest = given.text;
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view each = rest.substr(0, comma);
    const size_t sign = each.find('=');
    if (sign == std::string_view::npos) return invalid("use NAME=VALUE,NAME=VALUE");
    const Given value{Given::Kind::kText, std::string(each.substr(sign + 1)), {}};
    if (Status status = read_pair(field, std::string(each.substr(0, sign)), value, target); !status)
      return status;
    rest.remove_prefix(std::min(rest.size(), comma + 1));
  }
  return {};
}

Status read(const ChoiceField& field, const Given& given, FieldTarget& target) {
  const std::string choices = fmt::format("use {}", fmt::join(field.words, " or "));
  if (given.kind != Given::Kind::kText) return wrong_kind(given, choices);
  for (size_t i = 0; i < field.words.size(); ++i) {
    if (field.words[i] != given.text) continue;
    field.put(target, i);
    return {};
  }
  for (const std::string_view word : field.later) {
    if (word == given.text)
      return invalid(fmt::format("{} is not yet in this version: {}", shown(given), choices));
  }
  return invalid(fmt::format("{} is not known: {}", shown(given), choices));
}

Status read(const BackoffField& field, const Given& given, FieldTarget& target) {
  const bool list = given.kind == Given::Kind::kList;
  if (!list && !is_scalar(given)) return wrong_kind(given, R"(use "30s", ["10s", "1m"] or "exponential:1s")");
  const std::string text = list ? fmt::format("{}", fmt::join(given.list, ",")) : given.text;
  Result<Backoff> backoff = parse_backoff(text);
  if (!backoff) return backoff.error();
  field.put(target, std::move(*backoff));
  return {};
}

Status read(const RateField& field, const Given& given, FieldTarget& target) {
  constexpr std::string_view kUse = R"(use "100/1s", at most 1000000000 in 1ms to 1d, or "0" for no limit)";
  if (!is_scalar(given)) return wrong_kind(given, kUse);
  const Result<Rate> parsed = parse_rate(given.text);
  if (!parsed) return wrong_kind(given, kUse);
  Settings settings;
  settings.rate = *parsed;
  if (!check_settings(settings)) return wrong_kind(given, kUse);
  field.put(target, *parsed);
  return {};
}

Status read(const HashField& field, const Given& given, FieldTarget& target) {
  const auto hash = given.kind == Given::Kind::kText ? parse_sha256(given.text) : std::nullopt;
  // The message does not repeat the value: it may be the secret itself.
  if (!hash) return invalid("expected the 64 hexadecimal digits that `delayq token new` prints");
  field.put(target, *hash);
  return {};
}

Status read(const ScopesField& field, const Given& given, FieldTarget& target) {
  const std::string choices = fmt::format("use a list of {}", fmt::join(kScopeNames, ", "));
  if (given.kind != Given::Kind::kList || given.list.empty()) return wrong_kind(given, choices);
  Scopes scopes = 0;
  for (const std::string& name : given.list) {
    const std::optional<Scope> scope = parse_scope(name);
    if (!scope) return invalid(fmt::format("{} is not a scope: {}", quote(name), choices));
    scopes = scopes | *scope;
  }
  field.put(target, scopes);
  return {};
}

Status read(const PatternsField& field, const Given& given, FieldTarget& target) {
  if (given.kind != Given::Kind::kList || given.list.empty())
    return wrong_kind(given, R"(use a list such as ["order", "order.*"], or ["*"] for all)");
  for (const std::string& pattern : given.list) {
    if (Status status = check_topic_pattern(pattern); !status) return status;
  }
  field.put(target, given.list);
  return {};
}

}  // namespace

Status read_pair(const PairsField& field, const std::string& name, const Given& given, FieldTarget& target) {
  const bool may_be = is_scalar(given) || given.kind == Given::Kind::kBoolean;
  // Not repeated: it may be a secret.
  if (!may_be || given.text.find('\0') != std::string::npos)
    return invalid("use a text in quotes, a number, true or false");
  if (given.text.size() > kPairBytes)
    return invalid(fmt::format("it has {} bytes: at most {} are allowed", given.text.size(), kPairBytes));
  std::map<std::string, std::string>& pairs = field.pairs(target);
  if (pairs.size() >= field.most && !pairs.contains(name))
    return invalid(fmt::format("there are too many: at most {} {} are allowed", field.most, field.item));
  pairs.insert_or_assign(name, given.text);
  return {};
}

Status read_field(const Field& field, const Given& given, FieldTarget& target) {
  return std::visit([&](const auto& kind) { return read(kind, given, target); }, field);
}

std::string describe(const Field& field) {
  return std::visit(
      Overloaded{
          [](const AddressField&) -> std::string { return "an address"; },
          [](const SizeField& f) {
            return fmt::format("a size, {} to {}", format_size(f.min), format_size(f.max));
          },
          [](const NumberField& f) { return fmt::format("a number, {} to {}", f.min, f.max); },
          [](const DurationField& f) {
            return fmt::format("a duration, {} to {}", format_duration(f.min), format_duration(f.max));
          },
          [](const MomentField&) -> std::string { return "a moment, such as 2030-01-31T08:00:00Z"; },
          [](const BooleanField&) -> std::string { return "true or false"; },
          [](const TextField& f) { return fmt::format("a text, at most {} bytes", f.max_bytes); },
          [](const ListField& f) { return fmt::format("a list of at most {} {}", f.most, f.item); },
          [](const PairsField& f) { return fmt::format("a table of at most {} {}", f.most, f.item); },
          [](const ChoiceField& f) {
            return f.words.size() == 1 ? fmt::format("only {} so far", f.words[0])
                                       : fmt::format("one of {}", fmt::join(f.words, ", "));
          },
          [](const BackoffField&) -> std::string { return "a duration, a list of them, or exponential"; },
          [](const RateField&) -> std::string { return "a count per duration"; },
          [](const HashField&) -> std::string { return "64 hexadecimal digits"; },
          [](const ScopesField&) { return fmt::format("a list of {}", fmt::join(kScopeNames, ", ")); },
          [](const PatternsField&) -> std::string {
            return "a list of topics; `order.*` means all with this prefix";
          },
      },
      field);
}

}  // namespace delayq
