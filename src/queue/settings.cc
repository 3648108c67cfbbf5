#include "queue/settings.h"

#include <fmt/format.h>

#include "core/duration.h"
#include "core/limits.h"

namespace delayq {

namespace {

constexpr Millis kMaxCallbackTimeout = std::chrono::hours{1};
constexpr uint32_t kMaxRateCount = 1'000'000'000;
constexpr Millis kMaxRatePeriod = std::chrono::days{1};

Status check_retention(std::string_view field, const RetentionSetting& retention) {
  const Millis time = retention.time.value_or(Millis::zero());
  if (time >= Millis::zero() && time <= Limits::kMaxRetention) return {};
  return invalid(fmt::format("{}.time", field),
                 fmt::format("{} time {} is out of range: 0s to {} is allowed", field, format_duration(time),
                             format_duration(Limits::kMaxRetention)));
}

Status check_rate(const std::optional<Rate>& rate) {
  if (!rate || rate->count == 0) return {};
  if (rate->count > kMaxRateCount) {
    return invalid("rate.count", fmt::format("rate {} is out of range: 1 to {} is allowed, or 0 for no limit",
                                             rate->count, kMaxRateCount));
  }
  if (rate->per >= Millis{1} && rate->per <= kMaxRatePeriod) return {};
  return invalid("rate.per", fmt::format("rate per {} is out of range: 1ms to {} is allowed",
                                         format_duration(rate->per), format_duration(kMaxRatePeriod)));
}

Status check_callback_settings(const Settings& settings) {
  // An empty callback or method takes back what the defaults say.
  if (settings.callback && !settings.callback->empty()) {
    if (Status status = check_callback(*settings.callback); !status) return status;
  }
  if (settings.callback_method && !settings.callback_method->empty()) {
    if (Status status = check_callback_method(*settings.callback_method); !status) return status;
  }
  const Millis timeout = settings.callback_timeout.value_or(Millis::zero());
  if (timeout != Millis::zero() && (timeout < Millis{1} || timeout > kMaxCallbackTimeout)) {
    return invalid(
        "callback_timeout",
        fmt::format("callback_timeout {} is out of range: 1ms to {} is allowed, or 0s for the server's",
                    format_duration(timeout), format_duration(kMaxCallbackTimeout)));
  }
  return settings.callback_secrets ? check_callback_secrets(*settings.callback_secrets) : Status{};
}

template <class T>
void copy_if_said(const std::optional<T>& from, T& to) {
  if (from) to = *from;
}

void copy_if_said(const RetentionSetting& from, Retention& to) {
  copy_if_said(from.time, to.time);
  copy_if_said(from.count, to.count);
}

}  // namespace

Status check_settings(const Settings& settings) {
  if (settings.attempts) {
    if (Status status = check_attempts(*settings.attempts); !status) return status;
  }
  if (settings.backoff) {
    if (Status status = check_backoff(*settings.backoff); !status) return status;
  }
  if (settings.lease) {
    if (Status status = check_lease(*settings.lease); !status) return status;
  }
  if (Status status = check_retention("keep_done", settings.keep_done); !status) return status;
  if (Status status = check_retention("keep_dead", settings.keep_dead); !status) return status;
  if (Status status = check_rate(settings.rate); !status) return status;
  if (settings.redis_key) {
    if (Status status = check_redis_key(*settings.redis_key); !status) return status;
  }
  if (settings.redis_maxlen.value_or(0) > kMaxRedisMaxlen) {
    return invalid("redis_maxlen",
                   fmt::format("redis_maxlen {} is out of range: 1 to {} is allowed, or 0 for no bound",
                               *settings.redis_maxlen, kMaxRedisMaxlen));
  }
  return check_callback_settings(settings);
}

void apply_settings(const Settings& settings, EffectiveSettings& onto) {
  copy_if_said(settings.attempts, onto.retry.attempts);
  copy_if_said(settings.backoff, onto.retry.backoff);
  copy_if_said(settings.lease, onto.lease);
  copy_if_said(settings.keep_done, onto.keep_done);
  copy_if_said(settings.keep_dead, onto.keep_dead);
  copy_if_said(settings.rate, onto.rate);
  copy_if_said(settings.concurrency, onto.concurrency);
  copy_if_said(settings.paused, onto.paused);
  copy_if_said(settings.priority, onto.priority);
  copy_if_said(settings.delivery, onto.delivery);
  copy_if_said(settings.callback, onto.callback);
  copy_if_said(settings.callback_method, onto.callback_method);
  copy_if_said(settings.callback_timeout, onto.callback_timeout);
  copy_if_said(settings.callback_format, onto.callback_format);
  copy_if_said(settings.callback_secrets, onto.callback_secrets);
  copy_if_said(settings.redis_key, onto.redis_key);
  copy_if_said(settings.redis_content, onto.redis_content);
  copy_if_said(settings.redis_maxlen, onto.redis_maxlen);
}

Settings overlay(Settings below, const Settings& above) {
  const auto lay = [](const auto& from, auto& onto) {
    if (from) onto = from;
  };
  lay(above.attempts, below.attempts);
  lay(above.backoff, below.backoff);
  lay(above.lease, below.lease);
  lay(above.keep_done.time, below.keep_done.time);
  lay(above.keep_done.count, below.keep_done.count);
  lay(above.keep_dead.time, below.keep_dead.time);
  lay(above.keep_dead.count, below.keep_dead.count);
  lay(above.rate, below.rate);
  lay(above.concurrency, below.concurrency);
  lay(above.paused, below.paused);
  lay(above.priority, below.priority);
  lay(above.delivery, below.delivery);
  lay(above.callback, below.callback);
  lay(above.callback_method, below.callback_method);
  lay(above.callback_timeout, below.callback_timeout);
  lay(above.callback_format, below.callback_format);
  lay(above.callback_secrets, below.callback_secrets);
  lay(above.redis_key, below.redis_key);
  lay(above.redis_content, below.redis_content);
  lay(above.redis_maxlen, below.redis_maxlen);
  return below;
}

bool keeps_less(const EffectiveSettings& now, const EffectiveSettings& before) {
  const auto is_less = [](const Retention& a, const Retention& b) {
    return a.most() < b.most() || a.time < b.time;
  };
  return is_less(now.keep_done, before.keep_done) || is_less(now.keep_dead, before.keep_dead);
}

Keep keep_from(Moment now, const Retention& retention) {
  if (retention.most() == 0) return {};
  return {saturating_add(now, retention.time), retention.count};
}

}  // namespace delayq
