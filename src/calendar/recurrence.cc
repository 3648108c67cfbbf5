#include "calendar/recurrence.h"

#include <algorithm>
#include <chrono>

#include <absl/time/time.h>
#include <fmt/format.h>

#include "core/duration.h"
#include "core/limits.h"

namespace delayq {

namespace {

using absl::CivilSecond;
using TimeInfo = absl::TimeZone::TimeInfo;

constexpr Moment kFirst{};
constexpr Moment kLast = Moment{std::chrono::sys_days{std::chrono::year{10000} / 1 / 1}} - Millis{1};

std::optional<Moment> in_range(Moment moment) {
  return moment >= kFirst && moment <= kLast ? std::optional{moment} : std::nullopt;
}

std::optional<Moment> to_moment(absl::Time time) { return in_range(from_unix_ms(absl::ToUnixMillis(time))); }

/// A moment as a zone's clock shows it.
///
/// `around` describes the local time: whether there is one such moment, none or two. When the clock is set
/// back, the local times from `first` up to (not including) `end` come twice.
struct Shown {
  Shown(absl::Time moment, const absl::TimeZone& zone) : local(zone.At(moment).cs), around(zone.At(local)) {
    is_repeated = around.kind == TimeInfo::REPEATED;
    if (!is_repeated) return;
    is_second = moment >= around.trans;
    first = local - absl::ToInt64Seconds(around.post - around.trans);
    end = local + absl::ToInt64Seconds(around.trans - around.pre);
  }

  CivilSecond local;
  TimeInfo around;
  bool is_repeated = false;
  bool is_second = false;  ///< the moment is the second one with its local time
  CivilSecond first;
  CivilSecond end;
};

// A rule that names hours maps each matching local time to one moment: the only one, the first of two, or the
// end of the gap. This mapping never goes back, so it is enough to find the right local time.

std::optional<Moment> at_once(std::optional<CivilSecond> local, const absl::TimeZone& zone) {
  if (!local) return std::nullopt;
  const TimeInfo at = zone.At(*local);
  return to_moment(at.kind == TimeInfo::SKIPPED ? at.trans : at.pre);
}

std::optional<Moment> next_once(const CronRule& rule, const absl::TimeZone& zone, absl::Time moment) {
  const Shown now(moment, zone);
  // The second time around, everything up to the end of the repeated times has been due already.
  return at_once(rule.next(now.is_second ? now.end : now.local + 1), zone);
}

std::optional<Moment> last_once(const CronRule& rule, const absl::TimeZone& zone, absl::Time moment) {
  const Shown now(moment, zone);
  return at_once(rule.last(now.is_second ? now.end - 1 : now.local), zone);
}

// A rule that does not name hours matches every moment whose local time matches.

/// The first moment whose local time matches and is not before `from`, a local time that is in the future.
std::optional<Moment> next_shown(const CronRule& rule, const absl::TimeZone& zone, CivilSecond from) {
  while (const std::optional<CivilSecond> local = rule.next(from)) {
    const TimeInfo at = zone.At(*local);
    if (at.kind != TimeInfo::SKIPPED) return to_moment(at.pre);
    from = zone.At(at.trans).cs;
  }
  return std::nullopt;
}

std::optional<Moment> last_shown(const CronRule& rule, const absl::TimeZone& zone, CivilSecond until) {
  while (const std::optional<CivilSecond> local = rule.last(until)) {
    const TimeInfo at = zone.At(*local);
    if (at.kind == TimeInfo::UNIQUE) return to_moment(at.pre);
    if (at.kind == TimeInfo::REPEATED) return to_moment(at.post);
    until = zone.At(at.trans - absl::Seconds(1)).cs;
  }
  return std::nullopt;
}

std::optional<Moment> next_elapsed(const CronRule& rule, const absl::TimeZone& zone, absl::Time moment) {
  const Shown now(moment, zone);
  if (!now.is_repeated) return next_shown(rule, zone, now.local + 1);
  const std::optional<CivilSecond> same = rule.next(now.local + 1);
  if (same && *same < now.end) {
    const TimeInfo at = zone.At(*same);
    return to_moment(now.is_second ? at.post : at.pre);
  }
  if (!now.is_second) {
    const std::optional<CivilSecond> again = rule.next(now.first);
    if (again && *again < now.end) return to_moment(zone.At(*again).post);
  }
  return next_shown(rule, zone, now.end);
}

std::optional<Moment> last_elapsed(const CronRule& rule, const absl::TimeZone& zone, absl::Time moment) {
  const Shown now(moment, zone);
  if (!now.is_repeated) return last_shown(rule, zone, now.local);
  const std::optional<CivilSecond> same = rule.last(now.local);
  if (same && *same >= now.first) {
    const TimeInfo at = zone.At(*same);
    return to_moment(now.is_second ? at.post : at.pre);
  }
  if (now.is_second) {
    const std::optional<CivilSecond> before = rule.last(now.end - 1);
    if (before && *before >= now.first) return to_moment(zone.At(*before).pre);
  }
  return last_shown(rule, zone, now.first - 1);
}

// ---- counting

/// The next clock change after `moment`: when it is, and what the clock jumps from and to.
struct ClockChange {
  absl::Time when;
  CivilSecond from, to;
  bool is_gap() const { return from < to; }
};

std::optional<ClockChange> next_change(const absl::TimeZone& zone, absl::Time moment) {
  absl::TimeZone::CivilTransition change;
  if (!zone.NextTransition(moment, &change)) return std::nullopt;
  // In a gap, and in what is repeated, the moment of the change is known.
  return ClockChange{zone.At(std::min(change.from, change.to)).trans, change.from, change.to};
}

/// Each stretch between two clock changes shows each of its local times once.
uint64_t count_elapsed(const CronRule& rule, const absl::TimeZone& zone, absl::Time from, absl::Time until,
                       uint64_t most) {
  uint64_t count = 0;
  while (from <= until && count < most) {
    const std::optional<ClockChange> change = next_change(zone, from);
    const absl::Time last = change ? std::min(until, change->when - absl::Seconds(1)) : until;
    count += rule.count(zone.At(from).cs, zone.At(last).cs, most - count);
    from = last + absl::Seconds(1);
  }
  return count;
}

/// The local times whose moments are in the stretch, less those that are one occurrence with others: the
/// local times of a gap, and the first one after it.
uint64_t count_once(const CronRule& rule, const absl::TimeZone& zone, absl::Time from, absl::Time until,
                    uint64_t most) {
  const Shown before(from - absl::Seconds(1), zone);
  const Shown end(until, zone);
  uint64_t merged = 0;
  for (auto change = next_change(zone, from - absl::Seconds(1)); change && change->when <= until;
       change = next_change(zone, change->when)) {
    if (!change->is_gap()) continue;
    const uint64_t at_once = rule.count(change->from, change->to, UINT64_MAX / 2);
    if (at_once > 1) merged += at_once - 1;
  }
  return rule.count(before.is_second ? before.end : before.local + 1, end.is_second ? end.end - 1 : end.local,
                    most + merged) -
         merged;
}

/// The whole second at or before `moment`.
absl::Time second_of(Moment moment) {
  return absl::FromUnixSeconds(std::chrono::floor<std::chrono::seconds>(moment).time_since_epoch().count());
}

}  // namespace

Result<Recurrence> Recurrence::every(Millis interval, Moment anchor) {
  if (interval < Limits::kMinEvery || interval > Limits::kMaxEvery) {
    return invalid("every",
                   fmt::format("every {} is out of range: use {} to {}", format_duration(interval),
                               format_duration(Limits::kMinEvery), format_duration(Limits::kMaxEvery)));
  }
  if (!in_range(anchor)) return invalid("start", "start must be in the years 1970 to 9999 (UTC)");
  return Recurrence(Every{interval, anchor});
}

std::optional<Moment> Recurrence::next_after(Moment moment) const {
  if (moment >= kLast) return std::nullopt;
  // One before the first moment: its occurrence counts, too.
  moment = std::max(moment, kFirst - Millis{1});
  if (const auto* every = std::get_if<Every>(&rule_)) {
    if (moment < every->anchor) return every->anchor;
    const auto passed = (moment - every->anchor) / every->interval;
    return in_range(every->anchor + (passed + 1) * every->interval);
  }
  const Cron& cron = std::get<Cron>(rule_);
  const auto next = cron.rule.is_tied_to_hours() ? next_once : next_elapsed;
  return next(cron.rule, cron.zone.get(), second_of(moment));
}

std::optional<Moment> Recurrence::last_until(Moment moment) const {
  if (moment < kFirst) return std::nullopt;
  moment = std::min(moment, kLast);
  if (const auto* every = std::get_if<Every>(&rule_)) {
    if (moment < every->anchor) return std::nullopt;
    return moment - (moment - every->anchor) % every->interval;
  }
  const Cron& cron = std::get<Cron>(rule_);
  const auto last = cron.rule.is_tied_to_hours() ? last_once : last_elapsed;
  return last(cron.rule, cron.zone.get(), second_of(moment));
}

uint64_t Recurrence::count(Moment first, Moment last, uint64_t most) const {
  first = std::max(first, kFirst);
  last = std::min(last, kLast);
  if (last < first) return 0;
  if (const auto* every = std::get_if<Every>(&rule_)) {
    const std::optional<Moment> begin = next_after(first - Millis{1});
    if (!begin || *begin > last) return 0;
    return std::min<uint64_t>(static_cast<uint64_t>((last - *begin) / every->interval) + 1, most);
  }
  const Cron& cron = std::get<Cron>(rule_);
  const auto count = cron.rule.is_tied_to_hours() ? count_once : count_elapsed;
  return count(cron.rule, cron.zone.get(), second_of(first - Millis{1}) + absl::Seconds(1), second_of(last),
               most);
}

Moment Recurrence::first_of_last(uint64_t most, Moment first, Moment last) const {
  if (count(first, last, most + 1) <= most) return next_after(first - Millis{1}).value_or(last);
  // From `enough` on there are at most `most`, from `too_early` on there are more.
  Moment too_early = first;
  Moment enough = last;
  while (enough - too_early > Millis{1}) {
    const Moment middle = too_early + (enough - too_early) / 2;
    (count(middle, last, most + 1) > most ? too_early : enough) = middle;
  }
  return next_after(enough - Millis{1}).value_or(last);
}

}  // namespace delayq
