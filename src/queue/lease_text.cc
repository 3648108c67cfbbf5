#include "queue/lease_text.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "core/limits.h"
#include "core/text.h"
#include "queue/job_options.h"

namespace delayq {

namespace {

// In the text of an attempt: "3", "3a5" (of at most 5), "3d60000" (60 s until the next), "3a5d60000".
constexpr char kLimitMark = 'a';
constexpr char kDelayMark = 'd';
constexpr size_t kMostAttemptBytes = 48;

/// Removes a number of plain digits from the front of `text`; nullopt when there is none, or it does not fit.
template <class T>
std::optional<T> take_number(std::string_view& text) {
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || text.front() == '-') return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

bool take_mark(std::string_view& text, char mark) {
  if (!text.starts_with(mark)) return false;
  text.remove_prefix(1);
  return true;
}

std::optional<Attempt> parse_attempt(std::string_view text) {
  const std::optional<uint32_t> number = take_number<uint32_t>(text);
  if (!number) return std::nullopt;
  Attempt attempt{.number = *number};
  if (take_mark(text, kLimitMark)) {
    attempt.limit = take_number<uint32_t>(text);
    if (!attempt.limit) return std::nullopt;
  }
  if (take_mark(text, kDelayMark)) {
    const std::optional<int64_t> delay = take_number<int64_t>(text);
    if (!delay || Millis{*delay} > Limits::kMaxDelay) return std::nullopt;
    attempt.delay = Millis{*delay};
  }
  return text.empty() ? std::optional(attempt) : std::nullopt;
}

}  // namespace

Attempt attempt_of(std::string_view options, uint32_t attempts, Random& random) {
  Attempt attempt{.number = attempts};
  if (options.empty()) return attempt;
  const JobOptions own = decode_job_options(options);
  attempt.limit = own.attempts;
  if (own.backoff) attempt.delay = next_delay({0, *own.backoff}, attempts, random.next());
  return attempt;
}

std::string_view lease_text(const LeaseRef& lease, const Attempt& attempt, Arena& storage) {
  std::array<char, kMostAttemptBytes> number;
  char* const end = number.data() + number.size();
  char* last = std::to_chars(number.data(), end, attempt.number).ptr;
  if (attempt.limit) *last++ = kLimitMark, last = std::to_chars(last, end, *attempt.limit).ptr;
  if (attempt.delay) *last++ = kDelayMark, last = std::to_chars(last, end, attempt.delay->count()).ptr;
  const auto bytes = static_cast<size_t>(last - number.data());
  const std::span<char> room = storage.allocate(lease.topic.size() + lease.lease.size() + 2 + bytes);
  char* at = std::copy(lease.topic.begin(), lease.topic.end(), room.data());
  *at++ = '/';
  at = std::copy(lease.lease.begin(), lease.lease.end(), at);
  *at++ = '/';
  std::copy(number.data(), last, at);
  return {room.data(), room.size()};
}

Result<HeldLease> parse_lease(std::string_view text) {
  const std::string_view topic = topic_of_lease(text);
  const std::string_view rest = text.substr(std::min(topic.size() + 1, text.size()));
  const std::string_view lease = topic_of_lease(rest);
  std::optional<Attempt> attempt = Attempt{};
  if (lease.size() < rest.size()) attempt = parse_attempt(rest.substr(lease.size() + 1));
  if (topic.empty() || lease.empty() || !attempt)
    return invalid("lease", "lease " + quote(text) + " is not one that a pop has answered");
  return HeldLease{{topic, lease}, *attempt};
}

}  // namespace delayq
