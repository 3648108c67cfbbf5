#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/job.h"
#include "core/retry_policy.h"
#include "queue/callback.h"
#include "queue/delivery.h"

namespace delayq {

/// How long and how many finished jobs a topic keeps. None at all when either is zero.
struct Retention {
  Millis time{};
  uint32_t count = 0;

  /// How many jobs can be kept.
  uint32_t most() const { return time == Millis::zero() ? 0 : count; }
  bool operator==(const Retention&) const = default;
};

/// What is said of a retention: its parts are asked of the defaults one by one.
struct RetentionSetting {
  std::optional<Millis> time{};
  std::optional<uint32_t> count{};

  RetentionSetting() = default;
  // Whoever says both may say it as a Retention.
  RetentionSetting(const Retention& all) : time(all.time), count(all.count) {}  // NOLINT(*-explicit-*)

  bool says_nothing() const { return !time && !count; }
  void reset() { *this = {}; }
  bool operator==(const RetentionSetting&) const = default;
};

/// So many hand-overs in so much time. A count of zero: no limit.
struct Rate {
  uint32_t count = 0;
  Millis per{};

  bool operator==(const Rate&) const = default;
};

/// What a topic says about its jobs; what it leaves unsaid is asked of the defaults (the topic "*"), and what
/// a job says for itself (JobOptions) goes before both.
struct Settings {
  std::optional<uint32_t> attempts{};  ///< 0: no limit
  std::optional<Backoff> backoff{};
  std::optional<Millis> lease{};
  RetentionSetting keep_done{};
  RetentionSetting keep_dead{};
  std::optional<Rate> rate{};
  std::optional<uint32_t> concurrency{};  ///< jobs reserved at the same time; 0: no limit
  std::optional<bool> paused{};
  std::optional<uint32_t> priority{};
  std::optional<Delivery> delivery{};
  std::optional<std::string> callback{};         ///< where webhooks go
  std::optional<std::string> callback_method{};  ///< empty: as the format has it
  std::optional<Millis> callback_timeout{};      ///< of a whole call; zero: the server's
  std::optional<CallbackFormat> callback_format{};
  /// Sign the calls; empty: the server's own. Told to nobody: kept where jobs are kept, and left out of every
  /// answer, log and export.
  std::optional<std::vector<std::string>> callback_secrets{};
  std::optional<std::string> redis_key{};  ///< the list or stream; empty: named like the topic
  std::optional<RedisContent> redis_content{};
  std::optional<uint64_t> redis_maxlen{};  ///< about so many entries of a stream are kept; 0: all

  bool operator==(const Settings&) const = default;
};

/// The name under which the defaults of all topics are kept; not a topic's name, since '*' is not allowed in
/// one.
inline constexpr std::string_view kDefaultsName = "*";

/// Settings with nothing left unsaid. The initial values are the built-in defaults.
struct EffectiveSettings {
  RetryPolicy retry;
  Millis lease = std::chrono::seconds{60};
  Retention keep_done{std::chrono::hours{1}, 1'000};
  Retention keep_dead{std::chrono::days{30}, 100'000};
  Rate rate;
  uint32_t concurrency = 0;
  bool paused = false;
  uint32_t priority = kDefaultPriority;
  Delivery delivery = Delivery::kPull;
  std::string callback;
  std::string callback_method;
  Millis callback_timeout{};
  CallbackFormat callback_format = CallbackFormat::kWebhook;
  std::vector<std::string> callback_secrets;
  std::string redis_key;
  RedisContent redis_content = RedisContent::kJob;
  uint64_t redis_maxlen = 0;

  bool operator==(const EffectiveSettings&) const = default;
};

/// OK, or what is out of range, with the field that is.
Status check_settings(const Settings& settings);

/// Writes what `settings` says over `onto`.
void apply_settings(const Settings& settings, EffectiveSettings& onto);

/// What `above` says, and where it says nothing, what `below` does.
Settings overlay(Settings below, const Settings& above);

/// Removes one setting, named as the APIs name it ("attempts", "keep_done"), so that the defaults hold again.
/// kInvalid, with the nearest name, when there is no setting of that name.
Status unset_setting(Settings& settings, std::string_view name);

/// Whether fewer done or dead jobs are kept than before, or less long.
bool keeps_less(const EffectiveSettings& now, const EffectiveSettings& before);

/// The retention of a job that is finished at `now`.
Keep keep_from(Moment now, const Retention& retention);

/// MessagePack; empty when nothing is said.
std::string encode_settings(const Settings& settings);

/// kCorrupt for bytes that are not settings or have values out of range. Unknown fields are passed over.
Result<Settings> decode_settings(std::string_view bytes);

}  // namespace delayq
