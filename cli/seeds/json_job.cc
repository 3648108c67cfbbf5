#include "cli/seeds/json_job.h"

#include <charconv>

#include "core/ascii.h"

namespace delayq::cli::seeds {

Result<JsonJob> JsonJob::parse(std::string_view text) {
  JsonJob job;
  const Result<json::Slice> value = json::parse(text, &job.members_);
  if (!value.ok() || value->type != json::Type::kObject)
    return Error{ErrorCode::kCorrupt, {}, "the job is not a JSON object"};
  return job;
}

const json::Slice* JsonJob::find(std::string_view name) const {
  for (const json::Member& member : members_) {
    if (lowered(member.name) == name && member.value.type != json::Type::kNull) return &member.value;
  }
  return nullptr;
}

std::string JsonJob::text(std::string_view name) const {
  const json::Slice* const value = find(name);
  if (value == nullptr) return {};
  if (value->type == json::Type::kNumber) return std::string(value->text);
  if (value->type != json::Type::kString) return {};
  Result<std::string> text = json::text_of(*value);
  return text.ok() ? std::move(*text) : std::string();
}

std::optional<int64_t> JsonJob::number(std::string_view name) const {
  const std::string digits = text(name);
  int64_t number = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, number);
  if (digits.empty() || error != std::errc{} || stop != end) return std::nullopt;
  return number;
}

}  // namespace delayq::cli::seeds
