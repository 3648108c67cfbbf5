#include "queue/schedule.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/moment.h"
#include "core/siphash.h"
#include "core/text.h"
#include "queue/msgpack.h"

namespace delayq {

namespace {

/// The keys of a definition's map. Stored: a number is never used again for something else.
enum class Field : uint64_t {
  kTopic = 0,
  kBody = 1,
  kGroup = 2,
  kPriority = 3,
  kOptions = 4,
  kEvery = 5,
  kCron = 6,
  kZone = 7,
  kStart = 8,
  kEnd = 9,
  kRuns = 10,
  kJitter = 11,
  kOverlap = 12,
  kMissed = 13,
  kFromConfiguration = 14,
};

/// Version of the progress's array.
constexpr uint64_t kProgressVersion = 1;
constexpr uint32_t kProgressItems = 10;  ///< at least; later ones are there only when they are needed

template <class T, size_t N>
Result<T> parse_word(std::string_view field, std::string_view text,
                     const std::array<std::string_view, N>& names) {
  for (size_t i = 0; i < N; ++i) {
    if (names[i] == text) return static_cast<T>(i);
  }
  return invalid(field,
                 fmt::format("{} {} is not known: use {}", field, quote(text), fmt::join(names, ", ")));
}

Moment moment_of(uint64_t ms) { return from_unix_ms(static_cast<int64_t>(ms)); }
uint64_t ms_of(Moment moment) { return static_cast<uint64_t>(to_unix_ms(moment)); }

Status check_rule(const ScheduleSpec& spec, Moment now) {
  if (spec.every.has_value() == !spec.cron.empty()) {
    return invalid(spec.every ? "every" : "cron", "every and cron: give exactly one of them");
  }
  if (spec.every && !spec.zone.empty()) {
    return invalid("zone", "zone belongs to a cron rule: an interval is the same in every zone");
  }
  for (const auto& [field, moment] : {std::pair{"start", spec.start}, std::pair{"end", spec.end}}) {
    if (!moment) continue;
    if (*moment < Moment{})
      return invalid(field, fmt::format("{}: years before 1970 are not allowed", field));
    if (*moment > saturating_add(now, Limits::kMaxDelay)) {
      return invalid(field, fmt::format("{}: {} is more than 100 years away", field, format_moment(*moment)));
    }
  }
  if (spec.end && spec.start && *spec.end < *spec.start) {
    return invalid("end", fmt::format("end {} is before start {}", format_moment(*spec.end),
                                      format_moment(*spec.start)));
  }
  if (spec.runs && (*spec.runs == 0 || *spec.runs > Limits::kMaxRuns)) {
    return invalid("runs",
                   fmt::format("runs {} is out of range: 1 to {} is allowed", *spec.runs, Limits::kMaxRuns));
  }
  if (spec.jitter < Millis::zero() || spec.jitter > Limits::kMaxJitter) {
    return invalid("jitter", "jitter is out of range: 0 to 24h is allowed");
  }
  const Result<Recurrence> rule = recurrence_of(spec, now);
  return rule.ok() ? Status{} : Status{rule.error()};
}

void read_field(Field field, MsgpackReader& reader, ScheduleSpec& spec) {
  switch (field) {
    case Field::kTopic:
      spec.topic = reader.text();
      return;
    case Field::kBody:
      spec.body = reader.text();
      return;
    case Field::kGroup:
      spec.group = reader.text();
      return;
    case Field::kPriority:
      spec.priority = reader.uint32();
      return;
    case Field::kOptions:
      spec.options = decode_job_options(reader.text());
      return;
    case Field::kEvery:
      spec.every = reader.millis();
      return;
    case Field::kCron:
      spec.cron = reader.text();
      return;
    case Field::kZone:
      spec.zone = reader.text();
      return;
    case Field::kStart:
      spec.start = moment_of(reader.uint());
      return;
    case Field::kEnd:
      spec.end = moment_of(reader.uint());
      return;
    case Field::kRuns:
      spec.runs = reader.uint();
      return;
    case Field::kJitter:
      spec.jitter = reader.millis();
      return;
    case Field::kOverlap:
      spec.overlap = static_cast<Overlap>(std::min<uint64_t>(reader.uint(), kOverlapNames.size() - 1));
      return;
    case Field::kMissed:
      spec.missed = static_cast<Missed>(std::min<uint64_t>(reader.uint(), kMissedNames.size() - 1));
      return;
    case Field::kFromConfiguration:
      spec.from_configuration = reader.boolean();
      return;
  }
  reader.skip();
}

}  // namespace

Result<Overlap> parse_overlap(std::string_view text) {
  return parse_word<Overlap>("overlap", text, kOverlapNames);
}

Result<Missed> parse_missed(std::string_view text) {
  return parse_word<Missed>("missed", text, kMissedNames);
}

Status check_schedule_name(std::string_view name) {
  if (name == kPreviewName) {
    return invalid("name",
                   "the name preview is reserved: GET /v1/schedules/preview shows the occurrences of a rule");
  }
  // Clients shorten paths that have these.
  const bool is_relative_path = name == "." || name == "..";
  if (!is_relative_path && check_topic(name)) return {};
  return invalid("name",
                 "the name of a schedule has 1 to 200 bytes of A-Z a-z 0-9 _ . : - and letters of other "
                 "scripts");
}

Status check_schedule(const ScheduleSpec& spec, Moment now, const Limits& limits) {
  if (Status status = check_schedule_name(spec.name); !status) return status;
  if (Status status = check_topic(spec.topic); !status) return status;
  if (Status status = check_body(spec.body.size(), limits.body_bytes); !status) return status;
  if (!spec.group.empty()) {
    if (Status status = check_group(spec.group); !status) return status;
  }
  if (Status status = check_rule(spec, now); !status) return status;
  return spec.options.says_nothing() ? Status{} : check_new_options(spec.options);
}

Status check_progress(const ScheduleProgress& progress) {
  // Ids of occurrences have four digits for the year.
  constexpr Moment kLast = from_unix_ms(253'402'300'799'999);
  for (const auto& [field, moment] :
       {std::pair{"created_at", progress.created}, std::pair{"decided_until", progress.decided},
        std::pair{"previous_at", progress.previous}, std::pair{"catch_up_until", progress.catch_up_until}}) {
    if (moment < Moment{} || moment > kLast)
      return invalid(field, fmt::format("{}: only the years 1970 to 9999 are allowed", field));
  }
  for (const auto& [field, count] : {std::pair{"made", progress.made}, std::pair{"skipped", progress.skipped},
                                     std::pair{"missed", progress.missed}}) {
    if (count > Limits::kMaxRuns)
      return invalid(
          field, fmt::format("{} {} is out of range: 0 to {} is allowed", field, count, Limits::kMaxRuns));
  }
  if (progress.previous == Moment{} && progress.previous_topic.empty()) return {};
  if (check_topic(progress.previous_topic).ok()) return {};
  return invalid("previous_topic", "previous_topic: the topic of the job that was made last is needed");
}

Result<Recurrence> recurrence_of(const ScheduleSpec& spec, Moment created) {
  if (spec.every) return Recurrence::every(*spec.every, spec.start.value_or(created));
  const Result<CronRule> rule = CronRule::parse(spec.cron);
  if (!rule.ok()) return rule.error();
  const Result<Zone> zone = spec.zone.empty() ? Result<Zone>{Zone{}} : Zone::find(spec.zone);
  if (!zone.ok()) return zone.error();
  return Recurrence::cron(*rule, *zone);
}

// ---- stored

std::string encode_definition(const ScheduleSpec& spec) {
  std::string options;
  encode_job_options(spec.options, options);
  const uint32_t pairs = 2 + uint32_t{!spec.group.empty()} + spec.priority.has_value() + !options.empty() +
                         spec.every.has_value() + !spec.cron.empty() + !spec.zone.empty() +
                         spec.start.has_value() + spec.end.has_value() + spec.runs.has_value() +
                         (spec.jitter != Millis::zero()) + (spec.overlap != Overlap::kAllow) +
                         (spec.missed != Missed::kOne) + spec.from_configuration;
  std::string out;
  MsgpackWriter writer{out};
  const auto key = [&writer](Field field) { writer.uint(static_cast<uint64_t>(field)); };
  writer.map(pairs);
  key(Field::kTopic), writer.text(spec.topic);
  key(Field::kBody), writer.text(spec.body);
  if (!spec.group.empty()) key(Field::kGroup), writer.text(spec.group);
  if (spec.priority) key(Field::kPriority), writer.uint(*spec.priority);
  if (!options.empty()) key(Field::kOptions), writer.text(options);
  if (spec.every) key(Field::kEvery), writer.millis(*spec.every);
  if (!spec.cron.empty()) key(Field::kCron), writer.text(spec.cron);
  if (!spec.zone.empty()) key(Field::kZone), writer.text(spec.zone);
  if (spec.start) key(Field::kStart), writer.uint(ms_of(*spec.start));
  if (spec.end) key(Field::kEnd), writer.uint(ms_of(*spec.end));
  if (spec.runs) key(Field::kRuns), writer.uint(*spec.runs);
  if (spec.jitter != Millis::zero()) key(Field::kJitter), writer.millis(spec.jitter);
  if (spec.overlap != Overlap::kAllow) key(Field::kOverlap), writer.uint(static_cast<uint64_t>(spec.overlap));
  if (spec.missed != Missed::kOne) key(Field::kMissed), writer.uint(static_cast<uint64_t>(spec.missed));
  if (spec.from_configuration) key(Field::kFromConfiguration), writer.boolean(true);
  return out;
}

std::optional<ScheduleSpec> decode_definition(const StoredSchedule& stored) {
  ScheduleSpec spec;
  spec.name = stored.name;
  MsgpackReader reader{stored.definition};
  const uint32_t pairs = reader.map();
  for (uint32_t i = 0; i < pairs && reader.ok(); ++i)
    read_field(static_cast<Field>(reader.uint()), reader, spec);
  if (!reader.complete() || !check_topic(spec.topic)) return std::nullopt;
  return spec;
}

std::string encode_progress(const ScheduleProgress& progress) {
  std::string out;
  MsgpackWriter writer{out};
  writer.array(kProgressItems + (progress.moving ? 1 : 0));
  writer.uint(kProgressVersion);
  writer.uint(ms_of(progress.created));
  writer.uint(ms_of(progress.decided));
  writer.uint(progress.made);
  writer.uint(progress.skipped);
  writer.uint(progress.missed);
  writer.uint(ms_of(progress.previous));
  writer.text(progress.previous_topic);
  writer.uint(ms_of(progress.catch_up_until));
  writer.boolean(progress.paused);
  if (progress.moving) writer.boolean(true);
  return out;
}

std::optional<ScheduleProgress> decode_progress(std::string_view bytes) {
  ScheduleProgress progress;
  MsgpackReader reader{bytes};
  const uint32_t items = reader.array();
  if (items < kProgressItems || reader.uint() != kProgressVersion) return std::nullopt;
  progress.created = moment_of(reader.uint());
  progress.decided = moment_of(reader.uint());
  progress.made = reader.uint();
  progress.skipped = reader.uint();
  progress.missed = reader.uint();
  progress.previous = moment_of(reader.uint());
  progress.previous_topic = reader.text();
  progress.catch_up_until = moment_of(reader.uint());
  progress.paused = reader.boolean();
  if (items > kProgressItems) progress.moving = reader.boolean();
  for (uint32_t i = kProgressItems + 1; i < items && reader.ok(); ++i) reader.skip();
  if (!reader.complete()) return std::nullopt;
  return progress;
}

// ---- what is made, and when

namespace {

bool has_all_runs(const ScheduleSpec& spec, const ScheduleProgress& progress) {
  return spec.runs && progress.made >= *spec.runs;
}

/// The first occurrence that nothing was decided about.
std::optional<Moment> first_undecided(const ScheduleSpec& spec, const Recurrence& rule,
                                      const ScheduleProgress& progress) {
  Moment after = progress.decided;
  if (spec.start) after = std::max(after, *spec.start - Millis{1});
  const std::optional<Moment> first = rule.next_after(after);
  if (!first || (spec.end && *first > *spec.end)) return std::nullopt;
  return first;
}

}  // namespace

uint64_t count_undecided(const ScheduleSpec& spec, const Recurrence& rule, const ScheduleProgress& progress,
                         Moment now) {
  if (has_all_runs(spec, progress)) return 0;
  const std::optional<Moment> first = first_undecided(spec, rule, progress);
  return first ? rule.count(*first, spec.end ? std::min(now, *spec.end) : now, Limits::kCatchUp) : 0;
}

Moment next_occurrence(const ScheduleSpec& spec, const Recurrence& rule, const ScheduleProgress& progress) {
  if (progress.paused || progress.moving || has_all_runs(spec, progress)) return kNever;
  return first_undecided(spec, rule, progress).value_or(kNever);
}

std::vector<Moment> next_occurrences(const ScheduleSpec& spec, const Recurrence& rule,
                                     ScheduleProgress progress, uint32_t count) {
  std::vector<Moment> occurrences;
  while (occurrences.size() < count) {
    const Moment next = next_occurrence(spec, rule, progress);
    if (next == kNever) break;
    occurrences.push_back(next);
    progress.decided = next;
    ++progress.made;
  }
  return occurrences;
}

ScheduleState state_of(const ScheduleSpec& spec, const Recurrence& rule, const ScheduleProgress& progress) {
  if (has_all_runs(spec, progress) || !first_undecided(spec, rule, progress)) return ScheduleState::kEnded;
  return progress.paused || progress.moving ? ScheduleState::kPaused : ScheduleState::kActive;
}

ScheduleStep step_schedule(const ScheduleSpec& spec, const Recurrence& rule, const ScheduleProgress& progress,
                           Moment now) {
  ScheduleStep step;
  step.progress = step.if_skipped = progress;
  const Moment first = next_occurrence(spec, rule, progress);
  step.next = first;
  if (first > now) return step;

  const Moment until = spec.end ? std::min(now, *spec.end) : now;
  const Moment last = std::max(first, rule.last_until(until).value_or(first));
  Moment made = last;
  bool is_made = true;
  if (spec.missed == Missed::kAll) {
    const bool is_catching_up = first <= progress.catch_up_until;
    made = is_catching_up ? first : rule.first_of_last(Limits::kCatchUp, first, last);
    step.progress.catch_up_until = is_catching_up ? progress.catch_up_until : last;
  } else if (spec.missed == Missed::kSkip) {
    is_made = now - last <= Limits::kMissedAfter;
  }
  step.missed = rule.count(first, made, Limits::kCatchUp) - (is_made ? 1 : 0);
  step.progress.missed += step.missed;
  step.progress.decided = made;
  step.if_skipped = step.progress;
  if (is_made) {
    step.occurrence = made;
    ++step.progress.made;
    step.progress.previous = made;
    step.progress.previous_topic = spec.topic;
    ++step.if_skipped.skipped;
  }
  // Not yet the end if this was the last run: it may be skipped, and then it does not count.
  step.next = first_undecided(spec, rule, step.progress).value_or(kNever);
  return step;
}

Result<std::vector<Moment>> preview_schedule(const ScheduleSpec& spec, Moment from, uint32_t count) {
  if (Status status = check_count("count", count, Limits::kPreview); !status) return status.error();
  if (Status status = check_rule(spec, from); !status) return status.error();
  const Result<Recurrence> rule = recurrence_of(spec, from);
  if (!rule.ok()) return rule.error();
  return next_occurrences(spec, *rule, {.created = from, .decided = from}, count);
}

Moment due_of(const ScheduleSpec& spec, Moment occurrence) {
  if (spec.jitter == Millis::zero()) return occurrence;
  const SipKey key{ms_of(occurrence), 0x6a69747465722121};
  const uint64_t hash = siphash128(key, spec.name).low;
  return saturating_add(occurrence, Millis{static_cast<int64_t>(hash % (ms_of(Moment{spec.jitter}) + 1))});
}

}  // namespace delayq
