#include "api/http/fields.h"

#include <charconv>
#include <limits>

#include <fmt/format.h>

#include "core/duration.h"
#include "core/moment.h"
#include "core/quote.h"

namespace delayq::http {

namespace {

Error invalid(std::string detail) { return {ErrorCode::kInvalid, {}, std::move(detail), {}}; }

}  // namespace

Result<Fields> Fields::of_json(std::string_view text) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) return Fields();
  const Result<json::Slice> value = json::parse(text);
  if (!value.ok()) return invalid(fmt::format("the request's body is not JSON: {}", value.error().detail));
  return of_object(*value);
}

Result<Fields> Fields::of_object(const json::Slice& object) {
  if (object.type != json::Type::kObject)
    return invalid(fmt::format("expected a JSON object, got {}", json::name_of(object.type)));
  Fields fields;
  fields.members_ = json::members_of(object);
  fields.taken_.resize(fields.members_.size());
  return fields;
}

Fields::Fields(const std::vector<std::pair<std::string, std::string>>& query) : is_query_(true) {
  for (const auto& [name, value] : query) {
    members_.push_back({name, {keep(value), json::Type::kString}});
  }
  taken_.resize(members_.size());
}

std::string_view Fields::keep(std::string text) { return texts_.emplace_back(std::move(text)); }

void Fields::note(std::string_view field, std::string_view problem) {
  if (status_.ok()) status_ = invalid(fmt::format("{}: {}", field, problem));
}

std::optional<json::Slice> Fields::take(std::string_view name) {
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
  if (value->type == json::Type::kNumber && allow_number) return value->text;
  if (value->type != json::Type::kString) {
    note(name, fmt::format("expected a string{}, got {}", allow_number ? " or a number" : "",
                           name_of(value->type)));
    return std::nullopt;
  }
  Result<std::string> text = json::text_of(*value);
  if (!text.ok()) {
    note(name, text.error().detail);
    return std::nullopt;
  }
  return keep(std::move(*text));
}

std::optional<std::string_view> Fields::text(std::string_view name) { return plain(name, false); }

std::optional<uint64_t> Fields::number(std::string_view name) {
  const std::optional<json::Slice> value = take(name);
  if (!value) return std::nullopt;
  uint64_t number = 0;
  const char* const end = value->text.data() + value->text.size();
  const auto [stop, problem] = std::from_chars(value->text.data(), end, number);
  if ((!is_query_ && value->type != json::Type::kNumber) || problem != std::errc{} || stop != end) {
    note(name, fmt::format("expected a whole number, got {}", quote(value->text)));
    return std::nullopt;
  }
  return number;
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
    Result<std::string> text = json::text_of(item);
    if (!text.ok()) {
      note(name, text.error().detail);
      return std::nullopt;
    }
    all.push_back(keep(std::move(*text)));
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

std::optional<json::Slice> Fields::value(std::string_view name) {
  for (size_t i = 0; i < members_.size(); ++i) {
    if (members_[i].name != name) continue;
    taken_[i] = true;
    return members_[i].value;  // null is a value here
  }
  return std::nullopt;
}

Status Fields::finish() {
  for (size_t i = 0; status_.ok() && i < members_.size(); ++i) {
    if (!taken_[i]) note(members_[i].name, "this field is not known here");
  }
  return status_;
}

}  // namespace delayq::http
