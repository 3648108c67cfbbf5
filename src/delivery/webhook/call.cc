#include "delivery/webhook/call.h"

#include <algorithm>
#include <array>

#include <curl/curl.h>

#include "core/text.h"

namespace delayq::webhook {

namespace {

constexpr std::chrono::seconds kLongestRetryDelay = std::chrono::days{365};
constexpr size_t kLongestDate = 64;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool has_control_character(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f; });
}

}  // namespace

void HeaderLines::add(std::string_view name, std::string_view value) {
  if (value.empty()) return;
  // A colon would end the name.
  if (name.empty() || name.find_first_of(": ;") != std::string_view::npos || has_control_character(name) ||
      has_control_character(value)) {
    is_valid_ = false;
    return;
  }
  lines_.append(name).append(": ").append(value);
  lines_ += '\0';
}

std::optional<std::string_view> HeaderLines::find(std::string_view name) const {
  std::string_view rest = lines_;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\0'));
    if (line.starts_with(name) && line.substr(name.size()).starts_with(": "))
      return line.substr(name.size() + 2);
    rest.remove_prefix(line.size() + 1);
  }
  return std::nullopt;
}

std::string_view name_of(CallError error) {
  constexpr std::array<std::string_view, 9> kNames{
      "none", "bad_call", "refused_address", "resolve", "connect", "tls", "timeout", "broken", "no_room"};
  return kNames[static_cast<size_t>(error)];
}

Millis RetryAfter::from(Moment now) const {
  if (delay) return *delay;
  return at ? std::max(*at - now, Millis::zero()) : Millis::zero();
}

std::optional<RetryAfter> parse_retry_after(std::string_view value) {
  value = trimmed(value, " \t");
  if (value.empty()) return std::nullopt;
  RetryAfter result;
  if (std::all_of(value.begin(), value.end(), is_digit)) {
    std::chrono::seconds delay{0};
    for (const char c : value)
      delay = std::min(delay * 10 + std::chrono::seconds{c - '0'}, kLongestRetryDelay);
    result.delay = delay;
    return result;
  }
  // All three forms begin with the name of a day; curl would accept other texts too, and guess.
  const bool is_date = value.size() <= kLongestDate && value.front() >= 'A' && value.front() <= 'Z';
  const time_t seconds = is_date ? curl_getdate(std::string(value).c_str(), nullptr) : -1;
  if (seconds < 0) return std::nullopt;
  result.at = Moment{std::chrono::seconds{seconds}};
  return result;
}

CallClass class_of(const CallResult& result) {
  switch (result.error) {
    case CallError::kNone: {
      const int hundreds = result.status / 100;
      if (hundreds < 1 || hundreds > 5) return CallClass::kOther;
      return static_cast<CallClass>(hundreds - 1);
    }
    case CallError::kRefusedAddress:
      return CallClass::kRefused;
    case CallError::kResolve:
      return CallClass::kResolve;
    case CallError::kConnect:
      return CallClass::kConnect;
    case CallError::kTls:
      return CallClass::kTls;
    case CallError::kTimeout:
      return CallClass::kTimeout;
    case CallError::kBadCall:
    case CallError::kBroken:
    case CallError::kNoRoom:
      break;
  }
  return CallClass::kOther;
}

}  // namespace delayq::webhook
