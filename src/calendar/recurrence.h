#pragma once

#include <optional>
#include <variant>

#include "calendar/cron_rule.h"
#include "calendar/zone.h"
#include "core/result.h"
#include "core/time.h"

namespace delayq {

/// When a recurring job is due: every so often, or by a cron rule in a time zone. A value; all of it is
/// arithmetic, so any thread may use it and the same question always has the same answer (as long as tzdata
/// is the same).
///
/// Occurrences are moments of the years 1970 to 9999 (UTC). Those of a cron rule are whole seconds.
///
/// **Clock changes.** A rule that names hours (its hour field is anything but all 24 hours: "0 2 * * *", "0
/// */2
/// * * *", "*/30 1-3 * * *") has one occurrence for each local time that matches:
///
///  - A local time that does not exist is due at the first moment after the gap. Several such times, and a
///    time that matches at that moment anyway, are one occurrence.
///  - A local time that comes twice is due the first time only.
///
/// A rule that does not name hours ("*/15 * * * *", "0 * * * *", "0 * * * MON") has an occurrence at every
/// moment at which the local clock shows a matching time: in both of the hours that are repeated, and without
/// anything that makes up for a gap.
///
///   Europe/Berlin, 2026-03-29: 02:00 to 03:00 does not exist (01:59:59+01:00 is followed by 03:00:00+02:00)
///     "30 2 * * *"        03:00+02:00
///     "0 2,3 * * *"       03:00+02:00, once
///     "*/30 1-3 * * *"    01:00+01:00, 01:30+01:00, 03:00+02:00, 03:30+02:00
///     "*/30 * * * *"      ..., 01:30+01:00, 03:00+02:00, 03:30+02:00, ...
///
///   Europe/Berlin, 2026-10-25: 02:00 to 03:00 comes twice (02:59:59+02:00 is followed by 02:00:00+01:00)
///     "30 2 * * *"        02:30+02:00
///     "*/30 1-3 * * *"    01:00+02:00, 01:30+02:00, 02:00+02:00, 02:30+02:00, 03:00+01:00, 03:30+01:00
///     "*/30 * * * *"      ..., 02:00+02:00, 02:30+02:00, 02:00+01:00, 02:30+01:00, 03:00+01:00, ...
///
/// The same holds for a whole day that a zone leaves out (Pacific/Apia had no 2011-12-30): "0 9 * * *" is due
/// there at 2011-12-31 00:00 for the missing day, and again at 09:00.
class Recurrence {
 public:
  /// At `anchor` and every `interval` after it, whatever clocks show. The interval is 10 seconds to 100 years
  /// (Limits), else kInvalid with the field `every`; the anchor is a moment of the years 1970 to 9999, else
  /// kInvalid with the field `start`.
  static Result<Recurrence> every(Millis interval, Moment anchor);

  static Recurrence cron(const CronRule& rule, const Zone& zone) { return Recurrence(Cron{rule, zone}); }

  /// The first occurrence after `moment`, never at it. Nothing after the year 9999.
  std::optional<Moment> next_after(Moment moment) const;

  /// The last occurrence at or before `moment`. Nothing before the anchor, or before 1970. As fast as
  /// next_after(), however long ago it was.
  std::optional<Moment> last_until(Moment moment) const;

  /// How many occurrences there are from `first` to `last`, both included; counts up to `most`. Takes about
  /// as long as a few calls of next_after(), however many they are.
  uint64_t count(Moment first, Moment last, uint64_t most) const;

  /// The first of the last `most` occurrences up to `last`, which is an occurrence; those before `first` do
  /// not count. REQUIRES: first <= last, most > 0.
  Moment first_of_last(uint64_t most, Moment first, Moment last) const;

  bool operator==(const Recurrence&) const = default;

 private:
  struct Every {
    Millis interval;
    Moment anchor;
    bool operator==(const Every&) const = default;
  };
  struct Cron {
    CronRule rule;
    Zone zone;
    bool operator==(const Cron&) const = default;
  };

  explicit Recurrence(std::variant<Every, Cron> rule) : rule_(rule) {}

  std::variant<Every, Cron> rule_;
};

}  // namespace delayq
