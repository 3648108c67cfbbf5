#include "delivery/webhook/outcome.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/limits.h"
#include "core/text.h"

namespace delayq::webhook {

namespace {

/// Of the answer, kept with the job.
constexpr size_t kShownBytes = 200;
constexpr std::string_view kSpace = " \t\r\n";

/// What came from elsewhere must not make the text one that the queue refuses.
std::string presentable(std::string text) {
  text.resize(std::min(text.size(), Limits::kReasonBytes));
  if (check_reason(text)) return text;
  for (char& c : text) {
    if (c < 0x20 || c > 0x7e) c = c == '\n' || c == '\t' ? c : '?';
  }
  return text;
}

std::string text_of(const CallResult& result) {
  const int64_t took = std::chrono::round<Millis>(result.took).count();
  if (!result.is_answered())
    return presentable(fmt::format("{} after {} ms: {}", name_of(result.error), took, result.error_text));
  std::string_view answer = trimmed(result.answer, kSpace);
  const bool is_cut = result.is_answer_cut || answer.size() > kShownBytes;
  answer = answer.substr(0, kShownBytes);
  if (answer.empty()) return fmt::format("{} in {} ms", result.status, took);
  return presentable(fmt::format("{} in {} ms: {}{}", result.status, took, answer, is_cut ? "..." : ""));
}

bool is_host_failure(const CallResult& result) {
  switch (result.error) {
    case CallError::kNone:
      return result.status >= 502 && result.status <= 504;
    case CallError::kBadCall:
    case CallError::kNoRoom:
      return false;
    default:
      return true;
  }
}

bool is_success(const CallResult& result, CallbackFormat format) {
  if (result.status < 200 || result.status > 299) return false;
  return format != CallbackFormat::kCallbackApi ||
         (trimmed(result.answer, kSpace) == "ok" && !result.is_answer_cut);
}

}  // namespace

Outcome outcome_of(const CallResult& result, CallbackFormat format, Moment now) {
  Outcome outcome;
  outcome.text = text_of(result);
  outcome.host_failed = is_host_failure(result);
  if (!result.is_answered()) return outcome;
  if (is_success(result, format)) {
    outcome.fate = Fate::kDone;
  } else if (result.status == 410) {
    outcome.fate = Fate::kDead;
  } else if (result.retry_after && (result.status == 429 || result.status == 503)) {
    outcome.retry_after = std::min(result.retry_after->from(now), kLongestRetryAfter);
  }
  return outcome;
}

}  // namespace delayq::webhook
