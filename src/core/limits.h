#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "core/result.h"
#include "core/time.h"

namespace delayq {

/// Every bound of the rules, in one place. A value above its bound is an error that names the field; nothing
/// is cut silently. The constants are part of the contract (the journal's format relies on some); the members
/// are configuration.
struct Limits {
  static constexpr size_t kTopicBytes = 200;
  static constexpr size_t kIdBytes = 255;
  static constexpr size_t kGroupBytes = 255;
  static constexpr size_t kBackupNameBytes = 100;
  static constexpr size_t kReasonBytes = 1'024;
  static constexpr size_t kCallbackBytes = 2'048;
  static constexpr size_t kMaxBodyBytes = size_t{64} << 20;

  static constexpr Millis kMaxDelay = std::chrono::days{36'525};  ///< 100 years
  static constexpr Millis kMinLease{100};
  static constexpr Millis kMaxLease = std::chrono::hours{24};
  static constexpr Millis kMaxWait = std::chrono::hours{1};          ///< of a consumer for a job
  static constexpr Millis kMaxRetention = std::chrono::days{3'650};  ///< of done and dead jobs

  static constexpr Millis kMinEvery = std::chrono::seconds{10};  ///< between two occurrences of a schedule
  static constexpr Millis kMaxEvery = kMaxDelay;
  static constexpr Millis kMaxJitter = std::chrono::hours{24};
  static constexpr Millis kMissedAfter = std::chrono::minutes{1};  ///< an occurrence that is later is missed
  static constexpr uint64_t kMaxRuns = 1'000'000'000'000;          ///< of a schedule
  static constexpr uint32_t kCatchUp = 1'000;  ///< missed occurrences of a schedule that are made or counted
  static constexpr uint32_t kPreview = 1'000;  ///< occurrences in one preview of a rule
  static constexpr size_t kCronBytes = 255;
  static constexpr size_t kZoneBytes = 64;

  static constexpr uint64_t kMaxPriority = std::numeric_limits<uint32_t>::max();
  static constexpr uint64_t kMaxAttempts = 1'000'000;  ///< 0 means no limit
  static constexpr size_t kBackoffSteps = 32;
  static constexpr double kMaxBackoffFactor = 1'000;

  static constexpr uint32_t kBatchJobs = 10'000;  ///< in one push, ack, nack, cancel, ... request
  static constexpr uint32_t kPopJobs = 1'000;     ///< in one answer to a pop
  /// An answer to a pop has at least one job, and no further job once it has this many bytes; the consumer
  /// pops again for the rest. A thousand jobs of up to 8 KiB never reach it; a thousand of 1 MiB would be a
  /// gigabyte in one answer. 8 MiB are copied in some milliseconds, for which all other clients wait (a
  /// script in Redis blocks the whole of Redis), and are sent in a tenth of a second at 1 Gbit/s.
  static constexpr uint64_t kPopBytes = uint64_t{8} << 20;
  static constexpr uint32_t kPopTopics = 64;    ///< that one consumer waits for at once
  static constexpr uint32_t kPageJobs = 1'000;  ///< in one page of a listing
  static constexpr uint32_t kForecastBins = 1'000;

  size_t body_bytes = size_t{1} << 20;  ///< at most kMaxBodyBytes
  uint32_t topics = 1'000'000;
  uint32_t waiters = 100'000;  ///< consumers that wait for a job at the same moment
};

// Each check returns OK or kInvalid (a body: kTooLarge) with the field and a detail that says what is right.
// The caller sets `op`.

/// 1-200 bytes of `A-Za-z0-9_.:-` and letters of other scripts in UTF-8. Simplified: there is no table of
/// letters here, so any well-formed code point from U+0080 passes that is not a control character, a space,
/// private use or a noncharacter.
Status check_topic(std::string_view topic);

/// 1-255 bytes of UTF-8 without control characters. Spaces are allowed.
Status check_id(std::string_view id);
Status check_group(std::string_view group);

/// The name of a copy ends with this until the copy is complete.
inline constexpr std::string_view kPartialEnding = ".partial";

/// A plain name for a directory: 1-100 bytes of `A-Za-z0-9_.-`, not starting with a dot, not ending with
/// kPartialEnding.
Status check_backup_name(std::string_view name);

/// Up to 1024 bytes of UTF-8; of the control characters only tab and newline, since errors have several
/// lines.
Status check_reason(std::string_view reason);

Status check_body(size_t size, size_t max);
Status check_priority(uint64_t priority);
Status check_attempts(uint64_t attempts);

/// 0 to 100 years.
Status check_delay(Millis delay);

/// A due time given as a moment: like a delay from `now`, but it may be in the past, which means at once.
Status check_due(Moment now, Moment due);

/// 100 ms to 24 hours.
Status check_lease(Millis lease);

/// 0 to 1 hour.
Status check_wait(Millis wait);

/// A number of things in one request: 1 to `max`. `field` is what the caller named it: "count", "jobs",
/// "bins".
Status check_count(std::string_view field, uint64_t count, uint64_t max);

}  // namespace delayq
