#include "api/http/fields.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include <fmt/format.h>

#include "core/duration.h"
#include "core/moment.h"
#include "core/text.h"

namespace delayq::http {

namespace {

Result<uint64_t> number_of(std::string_view text) {
  uint64_t number = 0;
  const auto [stop, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem == std::errc{} && stop == text.data() + text.size()) return number;
  return invalid("not a number");
}

Status expect_object(const json::Slice& value) {
  if (value.type == json::Type::kObject) return {};
  return invalid(fmt::format("expected a JSON object, got {}", json::name_of(value.type)));
}

}  // namespace

Result<Fields> Fields::of_json(std::string_view text, const Query& query) {
  if (Status status = expect_none(query); !status.ok()) return status.error();
  if (text.empty()) return Fields();
  Fields fields;
  const Result<json::Slice> value = json::parse(text, &fields.members_);
  if (!value.ok()) return invalid(fmt::format("the request's body is not JSON: {}", value.error().detail));
  if (Status status = expect_object(*value); !status.ok()) return status.error();
  fields.taken_.resize(fields.members_.size());
  return fields;
}

Result<Fields> Fields::of_object(const json::Slice& object) {
  if (Status status = expect_object(object); !status.ok()) return status.error();
  Fields fields;
  fields.members_ = json::members_of(object);
  fields.taken_.resize(fields.members_.size());
  return fields;
}

Fields::Fields(const Query& query) : is_query_(true) {
  for (const auto& [name, value] : query) {
    members_.push_back({name, {keep(value), json::Type::kString}});
  }
  taken_.resize(members_.size());
}

std::string_view Fields::keep(std::string text) { return texts_.emplace_front(std::move(text)); }

void Fields::note(std::string_view field, std::string_view problem) {
  if (status_.ok())
    status_ = invalid(within_ + std::string(field), fmt::format("{}{}: {}", within_, field, problem));
}

void Fields::ask(std::string_view name) {
  constexpr size_t kUsual = 16;
  if (asked_.empty()) asked_.reserve(kUsual);
  asked_.push_back(name);
}

std::optional<json::Slice> Fields::take(std::string_view name) {
  ask(name);
  std::optional<json::Slice> found;
  for (size_t i = 0; i < members_.size(); ++i) {
    if (members_[i].name != name) continue;
    if (found) note(name, "given twice");
    found = members_[i].value;
    taken_[i] = true;
  }
  if (found && found->type == json::Type::kNull && !is_query_) return std::nullopt;
  return found;
}

std::optional<std::string_view> Fields::plain(std::string_view name, bool allow_number) {
  const std::optional<json::Slice> value = take(name);
  if (!value) return std::nullopt;
  if (is_query_) return value->text;
  if (value->type == json::Type::kNumber && allow_number)
    return keep(json::plain_digits_of(*value).value_or(std::string(value->text)));
  if (value->type != json::Type::kString) {
    note(name, fmt::format("expected a string{}, got {}", allow_number ? " or a number" : "",
                           name_of(value->type)));
    return std::nullopt;
  }
  return read_text(name, *value);
}

std::optional<std::string_view> Fields::read_text(std::string_view name, const json::Slice& string) {
  if (const auto plain = json::plain_text_of(string)) return plain;
  Result<std::string> text = json::text_of(string);
  if (text.ok()) return keep(std::move(*text));
  note(name, text.error().detail);
  return std::nullopt;
}

std::optional<std::string_view> Fields::text(std::string_view name) { return plain(name, false); }

std::optional<uint64_t> Fields::number(std::string_view name) {
  const std::optional<json::Slice> value = take(name);
  if (!value) return std::nullopt;
  const Result<uint64_t> number = is_query_ ? number_of(value->text) : json::whole_number_of(*value);
  if (number.ok()) return *number;
  note(name, fmt::format("expected a whole number, got {}", quote(value->text)));
  return std::nullopt;
}

std::optional<int64_t> Fields::integer(std::string_view name) {
  std::optional<json::Slice> value = take(name);
  if (!value) return std::nullopt;
  const std::string_view written = value->text;
  const bool is_negative = (is_query_ || value->type == json::Type::kNumber) && written.starts_with('-');
  if (is_negative) value->text.remove_prefix(1);
  const Result<uint64_t> number = is_query_ ? number_of(value->text) : json::whole_number_of(*value);
  if (number.ok() && *number <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    return is_negative ? -static_cast<int64_t>(*number) : static_cast<int64_t>(*number);
  note(name, fmt::format("expected a whole number, got {}", quote(written)));
  return std::nullopt;
}

std::optional<uint32_t> Fields::small_number(std::string_view name) {
  const std::optional<uint64_t> value = number(name);
  if (value && *value > std::numeric_limits<uint32_t>::max()) {
    note(name, fmt::format("{} is above {}", *value, std::numeric_limits<uint32_t>::max()));
    return std::nullopt;
  }
  return value ? std::optional(static_cast<uint32_t>(*value)) : std::nullopt;
}

std::optional<bool> Fields::boolean(std::string_view name) {
  const std::optional<json::Slice> value = take(name);
  if (!value) return std::nullopt;
  if ((!is_query_ && value->type != json::Type::kBoolean) ||
      (value->text != "true" && value->text != "false")) {
    note(name, fmt::format("expected true or false, got {}", quote(value->text)));
    return std::nullopt;
  }
  return value->text == "true";
}

std::optional<Millis> Fields::duration(std::string_view name) {
  const std::optional<std::string_view> text = plain(name, true);
  if (!text) return std::nullopt;
  const Result<Millis> parsed = parse_duration(*text);
  if (!parsed.ok()) note(name, parsed.error().detail);
  return parsed.ok() ? std::optional(*parsed) : std::nullopt;
}

std::optional<Moment> Fields::moment(std::string_view name) {
  const std::optional<std::string_view> text = plain(name, true);
  if (!text) return std::nullopt;
  const Result<Moment> parsed = parse_moment(*text);
  if (!parsed.ok()) note(name, parsed.error().detail);
  return parsed.ok() ? std::optional(*parsed) : std::nullopt;
}

std::optional<std::vector<std::string_view>> Fields::texts(std::string_view name) {
  const std::optional<json::Slice> value = take(name);
  if (!value) return std::nullopt;
  std::vector<std::string_view> all;
  if (is_query_) return all = {value->text};
  if (value->type != json::Type::kArray) {
    note(name, fmt::format("expected an array of strings, got {}", name_of(value->type)));
    return std::nullopt;
  }
  for (const json::Slice& item : json::items_of(*value)) {
    if (item.type != json::Type::kString) {
      note(name, fmt::format("expected an array of strings, got {} in it", name_of(item.type)));
      return std::nullopt;
    }
    const auto text = read_text(name, item);
    if (!text) return std::nullopt;
    all.push_back(*text);
  }
  return all;
}

std::vector<Fields::NamedText> Fields::named_texts(std::string_view name) {
  if (is_query_) return named_in_query(name);
  std::vector<NamedText> all;
  const std::optional<json::Slice> value = take(name);
  if (!value) return all;
  if (value->type != json::Type::kObject) {
    note(name, fmt::format("expected an object of strings, got {}", name_of(value->type)));
    return all;
  }
  for (json::Member& member : json::members_of(*value)) {
    const std::string_view inner = keep(std::move(member.name));
    const std::string path = fmt::format("{}.{}", name, inner);
    if (member.value.type != json::Type::kString) {
      note(path, fmt::format("expected a string, got {}", name_of(member.value.type)));
    } else if (const auto text = read_text(path, member.value)) {
      all.emplace_back(inner, *text);
    }
  }
  return all;
}

std::vector<Fields::NamedText> Fields::named_in_query(std::string_view name) {
  ask(name);
  std::vector<NamedText> all;
  for (size_t i = 0; i < members_.size(); ++i) {
    std::string_view inner = members_[i].name;
    if (!inner.starts_with(name)) continue;
    inner.remove_prefix(name.size());
    const bool is_named = inner.starts_with('[') && inner.ends_with(']');
    if (!is_named && !inner.empty()) continue;
    taken_[i] = true;
    if (inner.empty()) note(name, fmt::format("in a query this is written as {}[NAME]=VALUE", name));
    if (is_named) all.emplace_back(inner.substr(1, inner.size() - 2), members_[i].value.text);
  }
  return all;
}

std::optional<Backoff> Fields::backoff(std::string_view name) {
  std::string text;
  bool is_array = false;
  for (const json::Member& member : members_)
    is_array |= member.name == name && member.value.type == json::Type::kArray;
  if (is_array) {
    const auto steps = texts(name);
    if (!steps) return std::nullopt;
    for (const std::string_view step : *steps) {
      if (const Result<Millis> parsed = parse_duration(step); !parsed.ok()) note(name, parsed.error().detail);
    }
    text = fmt::format("{}", fmt::join(*steps, ","));
  } else {
    const auto plain_text = plain(name, true);
    if (!plain_text) return std::nullopt;
    text = *plain_text;
  }
  const Result<Backoff> parsed = parse_backoff(text);
  if (!parsed.ok()) note(name, parsed.error().detail);
  return parsed.ok() ? std::optional(*parsed) : std::nullopt;
}

std::vector<std::string_view> Fields::nulls() const {
  std::vector<std::string_view> names;
  for (const json::Member& member : members_) {
    if (member.value.type == json::Type::kNull) names.push_back(member.name);
  }
  return names;
}

std::optional<json::Slice> Fields::value(std::string_view name) {
  ask(name);
  for (size_t i = 0; i < members_.size(); ++i) {
    if (members_[i].name != name) continue;
    taken_[i] = true;
    return members_[i].value;  // null is a value here
  }
  return std::nullopt;
}

bool Fields::is_object(std::string_view name) const {
  return std::any_of(members_.begin(), members_.end(), [&](const json::Member& member) {
    return member.name == name && member.value.type == json::Type::kObject;
  });
}

std::optional<Fields> Fields::object(std::string_view name) {
  const std::optional<json::Slice> value = take(name);
  if (!value) return std::nullopt;
  Result<Fields> inner = of_object(*value);
  if (!inner.ok()) {
    note(name, inner.error().detail);
    return std::nullopt;
  }
  inner->within_ = fmt::format("{}{}.", within_, name);
  return std::move(*inner);
}

void Fields::close(Fields& inner) {
  if (Status status = inner.finish(); status_.ok()) status_ = std::move(status);
}

Error Fields::unknown(std::string_view name) const {
  const std::string path = within_ + std::string(name);
  const std::string_view what = is_query_ ? "query parameter" : "field";
  // A known name was taken before, so this one was given twice.
  if (std::find(asked_.begin(), asked_.end(), name) != asked_.end())
    return invalid(path, path + ": given twice");
  std::string detail = fmt::format("{}: there is no such {}", path, what);
  if (asked_.empty()) {
    detail += fmt::format("; this call has no {}s", what);
  } else {
    const std::string_view meant = nearest(name, asked_);
    if (!meant.empty()) detail += fmt::format("; did you mean {}?", meant);
    detail += fmt::format("{} Known: {}", meant.empty() ? "." : "", fmt::join(asked_, ", "));
  }
  Error error = invalid(path, std::move(detail));
  error.known = asked_;
  return error;
}

Status Fields::expect_none(std::string_view text, const Query& query) {
  Result<Fields> fields = of_json(text, query);
  return fields.ok() ? fields->finish() : fields.error();
}

Status Fields::finish() {
  const auto stranger = std::find(taken_.begin(), taken_.end(), false);
  if (stranger == taken_.end()) return status_;
  return unknown(members_[static_cast<size_t>(stranger - taken_.begin())].name);
}

}  // namespace delayq::http
