#include "api/resp/arguments.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/duration.h"
#include "core/moment.h"
#include "core/text.h"

namespace delayq::resp {

namespace {

/// Puts the field's name before the message of its parser.
template <class T>
Result<T> named(std::string_view field, Result<T> parsed) {
  if (parsed.ok()) return parsed;
  Error error = parsed.error();
  error.detail = fmt::format("{}: {}", field, error.detail);
  error.field = field;
  return error;
}

}  // namespace

bool same_word(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return to_lower(x) == to_lower(y); });
}

Result<std::string_view> Arguments::text(std::string_view field) {
  if (left_.empty()) return invalid(field, fmt::format("{}: a value is missing behind it", field));
  return take();
}

Result<Millis> Arguments::duration(std::string_view field) {
  const Result<std::string_view> value = text(field);
  if (!value.ok()) return value.error();
  return named(field, parse_duration(*value));
}

Result<Moment> Arguments::moment(std::string_view field) {
  const Result<std::string_view> value = text(field);
  if (!value.ok()) return value.error();
  return named(field, parse_moment(*value));
}

Result<Backoff> Arguments::backoff(std::string_view field) {
  const Result<std::string_view> value = text(field);
  if (!value.ok()) return value.error();
  return named(field, parse_backoff(*value));
}

Result<uint64_t> Arguments::number(std::string_view field) {
  const Result<std::string_view> value = text(field);
  if (!value.ok()) return value.error();
  uint64_t number = 0;
  const char* const end = value->data() + value->size();
  const auto [stop, problem] = std::from_chars(value->data(), end, number);
  if (problem != std::errc{} || stop != end || value->empty())
    return invalid(field, fmt::format("{}: {} is not a whole number", field, quote(*value)));
  return number;
}

Result<uint32_t> Arguments::small_number(std::string_view field) {
  const Result<uint64_t> value = number(field);
  if (!value.ok()) return value.error();
  constexpr uint64_t kMost = std::numeric_limits<uint32_t>::max();
  if (*value > kMost) return invalid(field, fmt::format("{}: {} is above {}", field, *value, kMost));
  return static_cast<uint32_t>(*value);
}

Result<JobState> Arguments::state(std::string_view field) {
  const Result<std::string_view> value = text(field);
  if (!value.ok()) return value.error();
  for (size_t i = 0; i < kJobStateCount; ++i) {
    if (same_word(*value, kJobStateNames[i])) return static_cast<JobState>(i);
  }
  return invalid(field,
                 fmt::format("{}: {} is none of {}", field, quote(*value), fmt::join(kJobStateNames, ", ")));
}

Error Arguments::unexpected(std::string_view usage) const {
  return invalid(fmt::format("{} is not understood here; usage: {}", quote(left_.front()), usage));
}

}  // namespace delayq::resp
