#include "tests/simulation/occurrences.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/moment.h"

namespace delayq::simulation {
namespace {

/// A stored schedule, read.
struct Reading {
  ScheduleSpec spec;
  ScheduleProgress progress;
  Recurrence rule;

  uint64_t counted() const { return progress.made + progress.skipped + progress.missed; }
  bool is_over() const { return spec.runs && progress.made >= *spec.runs; }
  /// Everything up to here was decided, or never was an occurrence.
  Moment decided() const {
    return spec.start ? std::max(progress.decided, *spec.start - Millis{1}) : progress.decided;
  }
  /// The last moment, up to `now`, at which an occurrence can be.
  Moment until(Moment now) const { return spec.end ? std::min(now, *spec.end) : now; }
  /// The first occurrence after that; kNever when there is none.
  Moment next_after(Moment moment) const {
    const Moment next = rule.next_after(moment).value_or(kNever);
    return spec.end && next > *spec.end ? kNever : next;
  }
  /// Occurrences after `from`, up to `to`; counts up to Limits::kCatchUp.
  uint64_t count(Moment from, Moment to) const {
    uint64_t count = 0;
    for (Moment at = next_after(from); at <= to && at != kNever && count < Limits::kCatchUp; ++count)
      at = next_after(at);
    return count;
  }
};

std::optional<Reading> read(const StoredSchedule& stored) {
  const std::optional<ScheduleSpec> spec = decode_definition(stored);
  const std::optional<ScheduleProgress> progress = decode_progress(stored.progress);
  if (!spec || !progress) return std::nullopt;
  const Result<Recurrence> rule = recurrence_of(*spec, progress->created);
  if (!rule.ok()) return std::nullopt;
  return Reading{*spec, *progress, *rule};
}

/// When the engine must report the schedule again: at the first occurrence that nothing was decided about.
std::string judge_next(const Reading& after, Moment next) {
  const Moment first = after.next_after(after.decided());
  if (next == first) return {};
  if (next == kNever && (after.progress.paused || after.is_over())) return {};
  return fmt::format("looks again at {}, and the next occurrence is at {}",
                     next == kNever ? "no time" : format_moment(next),
                     first == kNever ? "no time" : format_moment(first));
}

/// The occurrence that a turn makes: it is the one that the rule and `missed` say.
std::string judge_occurrence(const Reading& before, const Reading& after, const Occurrences::Turn& turn,
                             Moment at) {
  const NewJob& job = *turn.request.job;
  if (at > turn.now) return "made before its time";
  if (job.due < at || job.due > at + before.spec.jitter) return "due at the wrong time";
  if (before.progress.paused) return "made while it is paused";
  if (before.is_over()) return "made after its last run";
  if (at <= before.decided()) return "made although it was decided before";
  if (at != after.progress.decided) return "made, and another one was decided";
  if (before.rule.last_until(at) != at || (before.spec.end && at > *before.spec.end))
    return "no occurrence of the rule";
  const Moment until = before.until(turn.now);
  if (before.spec.missed != Missed::kAll) {
    if (before.next_after(at) <= until) return "made, and there is a later one";
    if (before.spec.missed == Missed::kSkip && turn.now - at > Limits::kMissedAfter) return "made too late";
  } else if (before.next_after(before.decided()) != at &&
             before.count(at - Millis{1}, until) != Limits::kCatchUp) {
    return "not the first one that was not made";
  }
  const bool is_skipped = turn.answer.outcome == TurnOutcome::kSkipped;
  if (after.progress.made != before.progress.made + (is_skipped ? 0 : 1) ||
      after.progress.skipped != before.progress.skipped + (is_skipped ? 1 : 0))
    return "not counted as what it is";
  return {};
}

/// A turn without a job: nothing was due, or it is too late for what was.
std::string judge_silence(const Reading& before, const Reading& after, Moment now) {
  if (after.progress.made != before.progress.made || after.progress.skipped != before.progress.skipped)
    return "counts a job that was not made";
  if (after.progress.decided == before.progress.decided) return {};
  if (before.progress.paused) return "decided while it is paused";
  if (before.spec.missed != Missed::kSkip || now - after.progress.decided <= Limits::kMissedAfter ||
      before.next_after(after.progress.decided) <= before.until(now))
    return "gave up an occurrence that should be made";
  return {};
}

}  // namespace

std::string Occurrences::turned(const Turn& turn) {
  Line& line = lines_[std::string(turn.request.name)];
  Entry entry{.operation = turn.operation, .is_gone = turn.after == nullptr};
  const std::string wrong = judge(turn, line, entry);
  line.push_back(std::move(entry));
  return wrong.empty()
             ? wrong
             : fmt::format("schedule {}{}{}: {}", turn.request.name, turn.request.job ? ", job " : "",
                           turn.request.job ? turn.request.job->id : "", wrong);
}

std::string Occurrences::judge(const Turn& turn, const Line& line, Entry& entry) const {
  const bool is_new = turn.before == nullptr;
  if (!is_new && !line.empty()) entry.is_countable = line.back().is_countable;
  if (turn.after == nullptr) return turn.request.job ? "removed and made" : "";
  const std::optional<Reading> after = read(*turn.after);
  if (!after) return "what is stored cannot be read";
  if (std::string wrong = judge_next(*after, turn.after->next); !wrong.empty()) return wrong;
  if (is_new) return after->counted() == 0 && !turn.request.job ? "" : "new, and has counted already";
  const std::optional<Reading> before = read(*turn.before);
  if (!before) return "what was stored cannot be read";
  if (after->progress.decided < before->progress.decided) return "decides again what was decided before";
  if (turn.after->definition != turn.before->definition) {
    // Occurrences of another rule begin when it is set: from then on the counts are of two rules. What the
    // old one had not decided until then is missed.
    const bool has_same_rule = after->spec.has_same_rule(before->spec);
    entry.is_countable &= has_same_rule && after->progress.decided == before->progress.decided &&
                          after->spec.end == before->spec.end;
    const uint64_t given_up =
        has_same_rule || before->is_over() ? 0 : before->count(before->decided(), before->until(turn.now));
    if (after->progress.missed - before->progress.missed != given_up)
      return fmt::format("changed, and of {} occurrences {} were counted as missed", given_up,
                         after->progress.missed - before->progress.missed);
    return after->counted() == before->counted() + given_up && !turn.request.job
               ? ""
               : "counts while it is changed";
  }

  const uint64_t occurrences = before->count(before->decided(), after->progress.decided);
  if (occurrences == Limits::kCatchUp) entry.is_countable = false;
  if (after->counted() - before->counted() != occurrences) {
    return fmt::format("{} occurrences came, and {} were counted", occurrences,
                       after->counted() - before->counted());
  }
  if (!turn.request.job) return judge_silence(*before, *after, turn.now);

  const std::string id{turn.request.job->id};
  const std::string_view name = turn.request.name;
  if (occurrence_owner(id) != name || id.size() == name.size()) return "not the id of an occurrence";
  const Result<Moment> at = parse_moment(std::string_view(id).substr(name.size() + 1));
  if (!at.ok()) return "not the id of an occurrence";
  if (std::string wrong = judge_occurrence(*before, *after, turn, *at); !wrong.empty()) return wrong;

  std::string last;
  for (auto each = line.rbegin(); each != line.rend() && !each->is_gone; ++each) {
    if (each->made == id) return "made twice";
    if (last.empty()) last = each->made;
  }
  if (before->spec.overlap != Overlap::kAllow) {
    const std::string previous{turn.request.previous ? turn.request.previous->id : ""};
    if (previous != last) return fmt::format("comes after '{}', should after '{}'", previous, last);
  }
  if (turn.answer.outcome == TurnOutcome::kTurned) entry.made = id;
  return {};
}

void Occurrences::went_back(std::string_view name, Operation operation) {
  const auto found = lines_.find(name);
  if (found == lines_.end()) return;
  while (!found->second.empty() && found->second.back().operation > operation) found->second.pop_back();
}

std::string Occurrences::check_counts(const StoredSchedule& schedule) const {
  const auto line = lines_.find(schedule.name);
  const std::optional<Reading> stored = read(schedule);
  if (line == lines_.end() || line->second.empty() || !stored) return "nobody has set it";
  uint64_t made = 0;
  for (auto each = line->second.rbegin(); each != line->second.rend() && !each->is_gone; ++each)
    made += each->made.empty() ? 0 : 1;
  if (made != stored->progress.made)
    return fmt::format("says it has made {} jobs, and made {}", stored->progress.made, made);
  if (!line->second.back().is_countable) return {};

  uint64_t occurrences = 0;
  Moment at = stored->progress.created;
  if (stored->spec.start) at = std::max(at, *stored->spec.start - Millis{1});
  for (at = stored->next_after(at); at != kNever && at <= stored->progress.decided;
       at = stored->next_after(at))
    ++occurrences;
  if (occurrences == stored->counted()) return {};
  return fmt::format("{} occurrences came since it was set, and {} were counted", occurrences,
                     stored->counted());
}

uint64_t Occurrences::made() const {
  uint64_t made = 0;
  for (const auto& [name, line] : lines_)
    made += static_cast<uint64_t>(
        std::count_if(line.begin(), line.end(), [](const Entry& entry) { return !entry.made.empty(); }));
  return made;
}

}  // namespace delayq::simulation
