#include "core/retry_policy.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "core/duration.h"
#include "core/limits.h"
#include "core/text.h"

namespace delayq {

namespace {

constexpr std::string_view kExponential = "exponential";
constexpr size_t kRatioDecimals = 6;
constexpr int64_t kRatioScale = 1'000'000;

Error not_a_backoff(std::string_view text, std::string_view advice) {
  return invalid(fmt::format("{} is not a backoff: {}", quote(text), advice));
}

// ---- next_delay

Millis delay_of(const StepBackoff& backoff, uint32_t failures, uint64_t /*random*/) {
  if (backoff.steps.empty()) return Millis::zero();
  return backoff.steps[std::min<size_t>(failures, backoff.steps.size()) - 1];
}

Millis delay_of(const ExponentialBackoff& backoff, uint32_t failures, uint64_t random) {
  // Delays are far below 2^53 ms, so a double holds them exactly; a power that overflows is infinite, and the
  // cap wins.
  const auto cap = static_cast<double>(backoff.cap.count());
  const double grown = static_cast<double>(backoff.base.count()) * std::pow(backoff.factor, failures - 1);
  const double full = std::ceil(std::min(grown, cap));
  const double spread = std::floor(full * backoff.jitter);
  const double unit = static_cast<double>(random >> 11) * 0x1p-53;
  const double cut = std::min(std::floor(unit * (spread + 1)), spread);
  return Millis{static_cast<int64_t>(full - cut)};
}

// ---- check_backoff

Status check(const StepBackoff& backoff) {
  if (backoff.steps.empty() || backoff.steps.size() > Limits::kBackoffSteps) {
    return invalid("backoff", fmt::format("backoff has {} steps: 1 to {} are allowed", backoff.steps.size(),
                                          Limits::kBackoffSteps));
  }
  for (Millis step : backoff.steps) {
    if (step < Millis::zero() || step > Limits::kMaxDelay) {
      return invalid("backoff", fmt::format("backoff step {} is out of range: 0s to {} is allowed",
                                            format_duration(step), format_duration(Limits::kMaxDelay)));
    }
  }
  return {};
}

Status check(const ExponentialBackoff& backoff) {
  if (backoff.base < Millis{1} || backoff.base > Limits::kMaxDelay) {
    return invalid("backoff", fmt::format("backoff base {} is out of range: 1ms to {} is allowed",
                                          format_duration(backoff.base), format_duration(Limits::kMaxDelay)));
  }
  if (backoff.cap < backoff.base || backoff.cap > Limits::kMaxDelay) {
    return invalid("backoff", fmt::format("backoff cap {} is out of range: the base, {}, to {} is allowed",
                                          format_duration(backoff.cap), format_duration(backoff.base),
                                          format_duration(Limits::kMaxDelay)));
  }
  // Written so that NaN, which compares false with everything, is refused.
  if (!(backoff.factor >= 1 && backoff.factor <= Limits::kMaxBackoffFactor)) {
    return invalid("backoff", fmt::format("backoff factor {} is out of range: 1 to {} is allowed",
                                          backoff.factor, Limits::kMaxBackoffFactor));
  }
  if (!(backoff.jitter >= 0 && backoff.jitter <= 1)) {
    return invalid("backoff",
                   fmt::format("backoff jitter {} is out of range: 0 to 1 is allowed", backoff.jitter));
  }
  return {};
}

// ---- text

/// "2", "1.5": a number of up to six decimals.
std::optional<double> parse_ratio(std::string_view text) {
  const std::optional<Decimal> number = take_decimal(text);
  if (!number || !text.empty() || number->fraction.size() > kRatioDecimals) return std::nullopt;
  const std::optional<int64_t> scaled = scale_up(*number, kRatioScale);
  if (!scaled) return std::nullopt;
  return static_cast<double>(*scaled) / static_cast<double>(kRatioScale);
}

std::string format_ratio(double ratio) {
  std::string text = fmt::format("{:.{}f}", ratio, kRatioDecimals);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

Result<Backoff> parse_steps(std::string_view text) {
  StepBackoff backoff;
  for (size_t at = 0; at <= text.size();) {
    if (backoff.steps.size() == Limits::kBackoffSteps) {
      return not_a_backoff(text, fmt::format("at most {} steps are allowed", Limits::kBackoffSteps));
    }
    const size_t end = std::min(text.find(',', at), text.size());
    const Result<Millis> step = parse_duration(text.substr(at, end - at));
    if (!step) return not_a_backoff(text, R"(use "30s", "10s,1m,10m" or "exponential:1s:2:1h:0.2")");
    backoff.steps.push_back(*step);
    at = end + 1;
  }
  return Backoff{std::move(backoff)};
}

/// `rest` is what follows "exponential".
Result<Backoff> parse_exponential(std::string_view text, std::string_view rest) {
  ExponentialBackoff backoff;
  constexpr std::string_view kAdvice =
      R"(use "exponential:BASE:FACTOR:CAP:JITTER" as in "exponential:1s:2:1h:0.2")";
  for (int field = 0; !rest.empty(); ++field) {
    if (rest.front() != ':' || rest.size() == 1 || field == 4) return not_a_backoff(text, kAdvice);
    rest.remove_prefix(1);
    const std::string_view part = rest.substr(0, rest.find(':'));
    rest.remove_prefix(part.size());
    if (field == 0 || field == 2) {
      const Result<Millis> duration = parse_duration(part);
      if (!duration) return not_a_backoff(text, kAdvice);
      (field == 0 ? backoff.base : backoff.cap) = *duration;
    } else {
      const std::optional<double> ratio = parse_ratio(part);
      if (!ratio) return not_a_backoff(text, kAdvice);
      (field == 1 ? backoff.factor : backoff.jitter) = *ratio;
    }
  }
  return Backoff{backoff};
}

}  // namespace

std::optional<Millis> next_delay(const RetryPolicy& policy, uint32_t attempts_made, uint64_t random) {
  if (policy.attempts != 0 && attempts_made >= policy.attempts) return std::nullopt;
  const uint32_t failures = std::max(attempts_made, uint32_t{1});
  return std::visit([&](const auto& backoff) { return delay_of(backoff, failures, random); }, policy.backoff);
}

Status check_backoff(const Backoff& backoff) {
  return std::visit([](const auto& kind) { return check(kind); }, backoff);
}

Result<Backoff> parse_backoff(std::string_view text) {
  Result<Backoff> backoff = text.starts_with(kExponential)
                                ? parse_exponential(text, text.substr(kExponential.size()))
                                : parse_steps(text);
  if (backoff) {
    if (Status status = check_backoff(*backoff); !status) return not_a_backoff(text, status.error().detail);
  }
  return backoff;
}

std::string format_backoff(const Backoff& backoff) {
  if (const auto* exponential = std::get_if<ExponentialBackoff>(&backoff)) {
    return fmt::format("{}:{}:{}:{}:{}", kExponential, format_duration(exponential->base),
                       format_ratio(exponential->factor), format_duration(exponential->cap),
                       format_ratio(exponential->jitter));
  }
  std::string text;
  for (Millis step : std::get<StepBackoff>(backoff).steps) {
    if (!text.empty()) text += ',';
    text += format_duration(step);
  }
  return text;
}

}  // namespace delayq
