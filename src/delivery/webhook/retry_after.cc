#include "delivery/webhook/retry_after.h"

#include <algorithm>
#include <string>

#include <curl/curl.h>

namespace delayq::webhook {

namespace {

constexpr std::chrono::seconds kLongest = std::chrono::days{365};
constexpr size_t kLongestDate = 64;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

}  // namespace

std::optional<RetryAfter> parse_retry_after(std::string_view value) {
  value = trimmed(value);
  if (value.empty()) return std::nullopt;
  RetryAfter result;
  if (std::all_of(value.begin(), value.end(), is_digit)) {
    std::chrono::seconds delay{0};
    for (const char c : value) delay = std::min(delay * 10 + std::chrono::seconds{c - '0'}, kLongest);
    result.delay = delay;
    return result;
  }
  // All three forms begin with the name of a day; what curl would make of other texts is not what was meant.
  const bool is_date = value.size() <= kLongestDate && value.front() >= 'A' && value.front() <= 'Z';
  const time_t seconds = is_date ? curl_getdate(std::string(value).c_str(), nullptr) : -1;
  if (seconds < 0) return std::nullopt;
  result.at = Moment{std::chrono::seconds{seconds}};
  return result;
}

}  // namespace delayq::webhook
