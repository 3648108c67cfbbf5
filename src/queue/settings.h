#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/job.h"
#include "core/limits.h"
#include "core/retry_policy.h"
#include "queue/delivery.h"

namespace delayq {

/// How long and how many finished jobs a topic keeps. It keeps none when one of the two is zero.
struct Retention {
  Millis time{};
  uint32_t count = 0;

  /// How many jobs can be kept.
  uint32_t most() const { return time == Millis::zero() ? 0 : count; }
  bool operator==(const Retention&) const = default;
};

/// A retention as a topic sets it: a part that is not set has the default, independently of the other part.
struct RetentionSetting {
  std::optional<Millis> time{};
  std::optional<uint32_t> count{};

  RetentionSetting() = default;
  // Implicit, so that both parts can be set by a Retention.
  RetentionSetting(const Retention& all) : time(all.time), count(all.count) {}  // NOLINT(*-explicit-*)

  bool is_unset() const { return !time && !count; }
  void reset() { *this = {}; }
  bool operator==(const RetentionSetting&) const = default;
};

/// At most `count` hand-overs in the period `per`. A count of zero: no limit.
struct Rate {
  uint32_t count = 0;
  Millis per{};

  bool operator==(const Rate&) const = default;
};

/// "100/1s"; "0" for no limit, and then of any period. The one text of a rate, in every API and file.
Result<Rate> parse_rate(std::string_view text);
std::string format_rate(const Rate& rate);

/// The type of a member of Settings whose effective type is T.
template <class T>
struct OwnSetting {
  using Type = std::optional<T>;
};
template <>
struct OwnSetting<Retention> {
  using Type = RetentionSetting;
};

/// The settings that a topic has of its own. A setting that is not set has the default: the value of the
/// topic "*", otherwise the built-in one. The options of a job (JobOptions) override both.
/// topic_settings.def lists the members: `std::optional<uint32_t> attempts`, and so on.
struct Settings {
#define DELAYQ_SETTING(number, type, name, ...) OwnSetting<type>::Type name{};
#include "queue/topic_settings.def"

  bool operator==(const Settings&) const = default;
};

/// The name under which the defaults of all topics are stored. No topic can have it: '*' is not allowed.
inline constexpr std::string_view kDefaultsName = "*";

/// The settings in force for a topic: every one has a value. The initial values are the built-in defaults.
struct EffectiveSettings {
#define DELAYQ_SETTING(number, type, name, initial, ...) type name = initial;
#include "queue/topic_settings.def"

  bool operator==(const EffectiveSettings&) const = default;
};

// All of the following go through the table of queue/settings_table.h.

/// OK, or the first setting that is out of range.
Status check_settings(const Settings& settings);

/// Overwrites the values in `onto` by those that `settings` has.
void apply_settings(const Settings& settings, EffectiveSettings& onto);

/// The settings of both; those of `above` override those of `below`.
Settings overlay(Settings below, const Settings& above);

/// Removes one setting, named as the APIs name it ("attempts", "keep_done"), so that the defaults hold again.
/// kInvalid, with the nearest name, when there is no setting of that name.
Status unset_setting(Settings& settings, std::string_view name);

/// The form in which engines store settings: MessagePack; empty when none is set.
std::string encode_settings(const Settings& settings);

/// kCorrupt for bytes that are not settings or have values out of range. Unknown fields are skipped.
Result<Settings> decode_settings(std::string_view bytes);

/// Whether fewer done or dead jobs are kept than before, or less long.
bool keeps_less(const EffectiveSettings& now, const EffectiveSettings& before);

/// The retention of a job that is finished at `now`.
Keep keep_from(Moment now, const Retention& retention);

/// The Redis that jobs can be delivered to.
struct RedisOutlet {
  /// Whether a Redis is configured. Without one, settings that deliver to Redis are refused.
  bool is_there = false;
  /// Keys with this prefix are used by the engine: no topic may write to them. Empty: all keys are allowed.
  std::string taken_prefix{};
};

/// The configuration of a queue. When a bound is reached, pushes and pops fail with kOverloaded (for the
/// disk: kDiskFull) and a `retry_after`. Verbs that free room are never refused.
struct QueueConfig {
  static constexpr uint64_t kUnbounded = std::numeric_limits<uint64_t>::max();

  Limits limits{};
  Settings defaults{};  ///< for all topics; settings stored under "*" override them
  RedisOutlet redis{};
  /// Whether brokers of Kafka are configured. Without, settings that deliver to Kafka are refused.
  bool has_kafka = false;

  uint64_t unanswered_bytes = uint64_t{64} << 20;  ///< bytes of pushes that are not durable yet
  uint64_t jobs = kUnbounded;
  uint64_t schedules = 100'000;
  /// False: schedules are stored and read but make no jobs. For programs that only copy what is stored.
  bool makes_occurrences = true;
  uint64_t memory_bytes = kUnbounded;              ///< memory of the engine's tables
  uint64_t disk_free_bytes = uint64_t{256} << 20;  ///< pushes are refused when less than this is free

  Millis forget_topics_after = std::chrono::minutes{5};  ///< if empty, unused, and without settings
};

}  // namespace delayq
