#include "tests/simulation/compare.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "tests/simulation/schedule_history.h"
#include "tests/support/seen_job.h"

namespace delayq::simulation {
namespace {

std::string text(const PushAnswer& answer) {
  constexpr std::array<std::string_view, 4> kNames{"created", "replaced", "kept", "conflict"};
  return fmt::format("{} {} due={}", kNames[static_cast<size_t>(answer.outcome)], name_of(answer.state),
                     to_unix_ms(answer.due));
}
std::string text(const TakenJob& taken) { return to_string(support::seen(taken.job)); }
std::string text(AckOutcome outcome) { return outcome == AckOutcome::kAcked ? "acked" : "stale"; }
std::string text(NackOutcome outcome) {
  constexpr std::array<std::string_view, 4> kNames{"retried", "dead", "cancelled", "stale"};
  return std::string(kNames[static_cast<size_t>(outcome)]);
}
std::string text(const ExtendAnswer& until) {
  return until ? fmt::format("until={}", to_unix_ms(*until)) : "stale";
}
std::string text(const LeaseInfo& info) {
  return fmt::format("{} attempts={} options={}", info.topic, info.attempts, support::brief(info.options));
}
std::string text(CancelOutcome outcome) { return std::string(name_of(outcome)); }
std::string text(RescheduleOutcome outcome) {
  constexpr std::array<std::string_view, 4> kNames{"moved", "reserved", "done", "unknown"};
  return std::string(kNames[static_cast<size_t>(outcome)]);
}
std::string text(const std::string& name) { return name; }
std::string text(const TopicCounts& counts) {
  return fmt::format("{} oldest={}", fmt::join(counts.by_state, " "),
                     counts.oldest_ready ? to_unix_ms(*counts.oldest_ready) : -1);
}
std::string text(const TopicRow& row) { return row.topic + ": " + text(row.counts); }
std::string text(const TopicSettings& settings) {
  return fmt::format("{}: {}", settings.topic, support::brief(settings.settings));
}
std::string text(const TurnAnswer& answer) {
  constexpr std::array<std::string_view, 3> kNames{"turned", "skipped", "changed"};
  constexpr std::array<std::string_view, 4> kPushed{"created", "replaced", "kept", "conflict"};
  return fmt::format("{} {}{}", kNames[static_cast<size_t>(answer.outcome)],
                     kPushed[static_cast<size_t>(answer.pushed)],
                     answer.has_replaced ? " instead of the one before" : "");
}
std::string text(const StoredSchedule& schedule) { return to_string(schedule); }

std::string differs(std::string_view real, std::string_view expected) {
  return fmt::format("answered      {}\n    should be     {}", real, expected);
}

/// One item after the other, by what their texts say.
template <class List>
std::string by_item(const List& real, const List& expected) {
  for (size_t i = 0; i < std::max(real.size(), expected.size()); ++i) {
    const std::string has = i < real.size() ? text(real[i]) : "nothing more";
    const std::string should = i < expected.size() ? text(expected[i]) : "nothing more";
    if (has != should) return fmt::format("item {}: {}", i, differs(has, should));
  }
  return {};
}

template <class List>
List sorted(List list, auto key) {
  std::sort(list.begin(), list.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
  return list;
}

}  // namespace

std::string difference(const std::vector<PushAnswer>& real, const std::vector<PushAnswer>& expected) {
  return by_item(real, expected);
}
std::string difference(const TakeAnswer& real, const TakeAnswer& expected) {
  return by_item(real.jobs, expected.jobs);
}
std::string difference(const std::vector<AckOutcome>& real, const std::vector<AckOutcome>& expected) {
  return by_item(real, expected);
}
std::string difference(const std::vector<NackOutcome>& real, const std::vector<NackOutcome>& expected) {
  return by_item(real, expected);
}
std::string difference(const std::vector<ExtendAnswer>& real, const std::vector<ExtendAnswer>& expected) {
  return by_item(real, expected);
}
std::string difference(const std::vector<LeaseInfo>& real, const std::vector<LeaseInfo>& expected) {
  return by_item(real, expected);
}
std::string difference(const std::vector<CancelOutcome>& real, const std::vector<CancelOutcome>& expected) {
  return by_item(real, expected);
}
std::string difference(const GroupCancelAnswer& real, const GroupCancelAnswer& expected) {
  if (real.cancelled == expected.cancelled && real.reserved == expected.reserved) return {};
  return differs(fmt::format("{} cancelled, {} reserved", real.cancelled, real.reserved),
                 fmt::format("{} cancelled, {} reserved", expected.cancelled, expected.reserved));
}
std::string difference(const std::vector<RescheduleOutcome>& real,
                       const std::vector<RescheduleOutcome>& expected) {
  return by_item(real, expected);
}
std::string difference(uint64_t real, uint64_t expected) {
  return real == expected ? std::string() : differs(std::to_string(real), std::to_string(expected));
}
std::string difference(const std::optional<FoundJob>& real, const std::optional<FoundJob>& expected) {
  const std::string has = real ? to_string(support::seen(real->job)) : "no such job";
  const std::string should = expected ? to_string(support::seen(expected->job)) : "no such job";
  return has == should ? std::string() : differs(has, should);
}
std::string difference(const std::vector<std::string>& real, const std::vector<std::string>& expected) {
  const auto self = [](const std::string& name) { return name; };
  return by_item(sorted(real, self), sorted(expected, self));
}

std::string difference(const JobPage& real, const JobPage& expected) {
  std::map<std::string_view, size_t> places;
  for (size_t i = 0; i < expected.jobs.size(); ++i) places.emplace(expected.jobs[i].id, i);
  std::optional<size_t> last;
  for (const Job& job : real.jobs) {
    const auto place = places.find(job.id);
    const std::string has = to_string(support::seen(job));
    if (place == places.end()) return differs(has, "not in the list");
    const std::string should = to_string(support::seen(expected.jobs[place->second]));
    if (has != should) return differs(has, should);
    // What became ready in the same tick has entered that state at once.
    const bool ordered = job.state != JobState::kReady;
    if (ordered && last && place->second <= *last) return fmt::format("out of order: {}", has);
    last = place->second;
  }
  return {};
}

std::string difference(const TopicCounts& real, const TopicCounts& expected) {
  return text(real) == text(expected) ? std::string() : differs(text(real), text(expected));
}
std::string difference(const TopicPage& real, const TopicPage& expected) {
  if (real.topics.size() < expected.topics.size() && !real.cursor.empty()) {
    return by_item(real.topics, {expected.topics.begin(),
                                 expected.topics.begin() + static_cast<ptrdiff_t>(real.topics.size())});
  }
  return by_item(real.topics, expected.topics);
}
std::string difference(const std::vector<TopicSettings>& real, const std::vector<TopicSettings>& expected) {
  const auto topic = [](const TopicSettings& settings) { return settings.topic; };
  return by_item(sorted(real, topic), sorted(expected, topic));
}

std::string difference(const std::vector<TurnAnswer>& real, const std::vector<TurnAnswer>& expected) {
  return by_item(real, expected);
}
std::string difference(const std::optional<StoredSchedule>& real,
                       const std::optional<StoredSchedule>& expected) {
  if (real == expected) return {};
  return differs(real ? text(*real) : "no such schedule", expected ? text(*expected) : "no such schedule");
}
std::string difference(const SchedulePage& real, const SchedulePage& expected) {
  if (real.has_more != expected.has_more) return real.has_more ? "has more, should not" : "should have more";
  return by_item(real.schedules, expected.schedules);
}

}  // namespace delayq::simulation
