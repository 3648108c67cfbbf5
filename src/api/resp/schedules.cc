// SCHEDULE: recurring jobs.
#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "api/resp/conversation.h"
#include "core/duration.h"
#include "core/moment.h"
#include "core/text.h"
#include "queue/job_options.h"

namespace delayq::resp {

namespace {

constexpr uint32_t kShownOccurrences = 5;
/// SETs of one pipeline that are stored by one commit.
constexpr size_t kMostSets = 128;

/// The members of a map, which is written when all are known.
class Members {
 public:
  void add(std::string_view name, std::string_view text) { all_.emplace_back(name, text); }
  void add_made(std::string_view name, std::string text) { all_.emplace_back(name, std::move(text)); }
  void add(std::string_view name, uint64_t number) { all_.emplace_back(name, static_cast<int64_t>(number)); }
  void add_headers(std::string_view encoded) {
    if (!encoded.empty()) all_.emplace_back("headers", Headers{encoded});
  }
  void add_callback_header_names(std::string_view lines) {
    if (!lines.empty()) all_.emplace_back("callback_header_names", HeaderNames{lines});
  }
  void add(std::string_view name, Moment moment) { all_.emplace_back(name, to_unix_ms(moment)); }

  void write(Writer& writer) const {
    writer.map(all_.size());
    for (const auto& [name, value] : all_) {
      if (const auto* const names = std::get_if<HeaderNames>(&value)) {
        write_callback_header_names(writer, names->lines);
        continue;
      }
      writer.bulk(name);
      if (const auto* const number = std::get_if<int64_t>(&value)) {
        writer.integer(*number);
      } else if (const auto* const made = std::get_if<std::string>(&value)) {
        writer.bulk(*made);
      } else if (const auto* const headers = std::get_if<Headers>(&value)) {
        write_headers(writer, headers->encoded);
      } else {
        writer.bulk(std::get<std::string_view>(value));
      }
    }
  }

 private:
  struct Headers {
    std::string_view encoded;
  };
  struct HeaderNames {
    std::string_view lines;
  };
  using Value = std::variant<std::string_view, std::string, int64_t, Headers, HeaderNames>;

  std::vector<std::pair<std::string_view, Value>> all_;
};

void add_rule(Members& members, const ScheduleSpec& spec) {
  if (spec.every) {
    members.add_made("every", format_duration(*spec.every));
  } else {
    members.add("cron", spec.cron);
    members.add("zone", spec.zone.empty() ? std::string_view("UTC") : spec.zone);
  }
  if (spec.start) members.add("start_ms", *spec.start);
  if (spec.end) members.add("end_ms", *spec.end);
  if (spec.runs) members.add("runs", *spec.runs);
  if (spec.jitter != Millis::zero()) members.add_made("jitter", format_duration(spec.jitter));
  members.add("overlap", name_of(spec.overlap));
  members.add("missed", name_of(spec.missed));
}

void add_template(Members& members, const ScheduleSpec& spec) {
  const JobOptions& options = spec.options;
  if (spec.priority) members.add("priority", *spec.priority);
  if (!spec.group.empty()) members.add("group", spec.group);
  if (options.attempts) members.add("attempts", *options.attempts);
  if (options.backoff) members.add_made("backoff", format_backoff(*options.backoff));
  if (options.lease) members.add_made("lease", format_duration(*options.lease));
  if (!options.callback.empty()) members.add("callback", options.callback);
  if (!options.method.empty()) members.add("method", options.method);
  if (options.format) members.add("format", name_of(*options.format));
  members.add_callback_header_names(options.callback_headers);
}

/// The zone whose clock the rule goes by. UTC for an interval, and for a zone that this machine lacks.
Zone zone_of(const ScheduleSpec& spec) {
  if (spec.zone.empty()) return {};
  const Result<Zone> zone = Zone::find(spec.zone);
  return zone.ok() ? *zone : Zone();
}

/// What the schedule does not have is left out.
void add_schedule(Members& members, const ScheduleView& view, bool with_body) {
  const ScheduleSpec& spec = view.spec;
  const ScheduleProgress& progress = view.progress;
  members.add("name", spec.name);
  if (!view.is_readable()) return members.add("problem", view.problem);
  members.add("state", name_of(view.state));
  members.add("topic", spec.topic);
  if (with_body) {
    members.add("body", spec.body);
    if (!spec.options.content_type.empty()) members.add("content_type", spec.options.content_type);
    members.add_headers(spec.options.headers);
  }
  add_rule(members, spec);
  add_template(members, spec);
  if (view.next != kNever) {
    members.add("next_ms", view.next);
    members.add_made("next_local", local_time(view.next, zone_of(spec)));
  }
  if (progress.previous != Moment{}) {
    members.add("previous_ms", progress.previous);
    members.add("previous_topic", progress.previous_topic);
    members.add_made("previous_id", occurrence_id(spec.name, progress.previous));
  }
  members.add("created_ms", progress.created);
  members.add("occurrences_made", progress.made);
  members.add("occurrences_skipped", progress.skipped);
  members.add("occurrences_missed", progress.missed);
  if (progress.moving) members.add("moving", uint64_t{1});
  if (spec.from_configuration) members.add("from_configuration", uint64_t{1});
  if (!view.problem.empty()) members.add("problem", view.problem);
}

void write_schedule(Writer& writer, const ScheduleView& view) {
  Members members;
  add_schedule(members, view, false);
  members.write(writer);
}

void write_occurrences(Writer& writer, const std::vector<Moment>& occurrences, const Zone& zone) {
  writer.array(occurrences.size());
  for (const Moment occurrence : occurrences) {
    writer.array(2);
    writer.integer(to_unix_ms(occurrence));
    writer.bulk(local_time(occurrence, zone));
  }
}

/// Options that may come once each.
class Once {
 public:
  /// Remembers the next word as an option if `take` takes it. The result of `take`, or an error if it was
  /// there before.
  template <class Take>
  Status take(Arguments& arguments, Take&& take) {
    const std::string_view word = arguments.front();
    const size_t before = arguments.size();
    Status status = take();
    if (!status.ok() || arguments.size() == before) return status;
    const bool is_there =
        std::any_of(seen_.begin(), seen_.end(), [&](std::string_view each) { return same_word(each, word); });
    if (is_there) return invalid(word, fmt::format("{}: is given twice", word));
    seen_.push_back(word);
    return {};
  }

 private:
  std::vector<std::string_view> seen_;
};

/// The value of an option that must have one.
Result<std::string_view> filled(Arguments& arguments, std::string_view name) {
  Result<std::string_view> text = arguments.text(name);
  if (text.ok() && text->empty()) return invalid(name, fmt::format("{}: must not be empty", name));
  return text;
}

/// The options that say when. Takes one if it is there.
Status take_rule_option(Arguments& arguments, ScheduleSpec& spec) {
  if (arguments.take_word("CRON")) return keep(filled(arguments, "CRON"), spec.cron);
  if (arguments.take_word("ZONE")) return keep(filled(arguments, "ZONE"), spec.zone);
  if (arguments.take_word("EVERY")) return keep(arguments.duration("EVERY"), spec.every);
  if (arguments.take_word("START")) return keep(arguments.moment("START"), spec.start);
  if (arguments.take_word("END")) return keep(arguments.moment("END"), spec.end);
  if (arguments.take_word("RUNS")) return keep(arguments.number("RUNS"), spec.runs);
  return {};
}

Status take_count(Arguments& arguments, uint32_t& count, uint32_t most) {
  if (!arguments.take_word("COUNT")) return {};
  if (Status status = keep(arguments.small_number("COUNT"), count); !status.ok()) return status;
  return check_count("COUNT", count, most);
}

}  // namespace

Status Conversation::schedule(Verb verb, Arguments& arguments) {
  const TopicPatterns topics = front_.access.topics_of(caller_);
  switch (verb) {
    case Verb::kScheduleList:
      return list_schedules(arguments);
    case Verb::kScheduleNext:
      return next_of_schedule(arguments);
    case Verb::kScheduleGet:
      host_.queue.get_schedule(
          now_, arguments.take(), topics,
          respond<std::optional<ScheduleView>>([](Writer& writer, const std::optional<ScheduleView>& view) {
            if (!view) return writer.null();
            Members members;
            add_schedule(members, *view, true);
            members.write(writer);
          }));
      return {};
    case Verb::kScheduleDel:
      host_.queue.remove_schedule(now_, arguments.take(), topics,
                                  respond<void>([](Writer& writer) { writer.simple("OK"); }));
      return {};
    case Verb::kSchedulePause:
      host_.queue.pause_schedule(now_, arguments.take(), topics, respond<ScheduleView>(write_schedule));
      return {};
    case Verb::kScheduleResume:
      host_.queue.resume_schedule(now_, arguments.take(), topics, respond<ScheduleView>(write_schedule));
      return {};
    case Verb::kScheduleRun:
      host_.queue.run_schedule(now_, arguments.take(), topics,
                               respond<ScheduleRun>([](Writer& writer, const ScheduleRun& run) {
                                 Members members;
                                 members.add("topic", run.topic);
                                 members.add("id", run.id);
                                 members.add("state", name_of(run.state));
                                 members.add("due_ms", run.due);
                                 members.write(writer);
                               }));
      return {};
    default:
      return {};  // not one of these words: the caller says so
  }
}

Status Conversation::set_schedule(Arguments& arguments) {
  ScheduleSpec spec;
  PushRequest job;  // for the options that are those of PUSH
  headers_.clear();
  callback_headers_.clear();
  std::optional<std::string_view> body;
  const auto take_option = [&]() -> Status {
    const size_t before = arguments.size();
    if (Status status = take_rule_option(arguments, spec); !status.ok() || arguments.size() < before)
      return status;
    if (arguments.take_word("TOPIC")) return keep(arguments.text("TOPIC"), spec.topic);
    if (arguments.take_word("BODY")) return keep(arguments.text("BODY"), body);
    if (arguments.take_word("JITTER")) return keep(arguments.duration("JITTER"), spec.jitter);
    for (const std::string_view word : {"OVERLAP", "MISSED"}) {
      if (!arguments.take_word(word)) continue;
      const Result<std::string_view> value = arguments.text(word);
      if (!value.ok()) return value.error();
      const std::string lower = lowered(*value);
      return word == "OVERLAP" ? keep(parse_overlap(lower), spec.overlap)
                               : keep(parse_missed(lower), spec.missed);
    }
    return job_options(arguments, job);
  };
  spec.name = arguments.take();
  Once once;
  while (!arguments.empty()) {
    const size_t before = arguments.size();
    const bool may_repeat =
        same_word(arguments.front(), "HEADER") || same_word(arguments.front(), "CALLBACKHEADER");
    if (Status status = may_repeat ? take_option() : once.take(arguments, take_option); !status.ok())
      return status;
    if (arguments.size() == before) return {};  // not understood: the caller says so
  }
  if (spec.topic.empty()) return invalid("TOPIC", "TOPIC: is missing: the jobs need one");
  if (!body) return invalid("BODY", "BODY: is missing: the jobs need one, which may be empty");
  if (job.group) {
    if (Status status = check_group(*job.group); !status.ok()) return status;
    spec.group = *job.group;
  }
  spec.body = *body;
  spec.priority = job.priority;
  spec.options = std::move(job.options);
  begin_batch(BatchKind::kSetSchedule);
  take_headers(spec.options);
  schedules_.push_back(std::move(spec));
  return {};
}

bool Conversation::sets_another_schedule(std::span<const std::string_view> words) const {
  if (words.size() < 3 || !same_word(words[0], "SCHEDULE") || !same_word(words[1], "SET")) return false;
  return schedules_.size() < kMostSets &&
         std::none_of(schedules_.begin(), schedules_.end(),
                      [name = words[2]](const ScheduleSpec& spec) { return spec.name == name; });
}

/// Each is a verb of several steps by itself. They have different names, so it does not matter which of them
/// takes effect first; the next command waits for all of them.
void Conversation::flush_schedules() {
  answer_kind_ = api::AnswerKind::kShort;
  for (const ScheduleSpec& spec : schedules_) {
    host_.queue.set_schedule(now_, spec, front_.access.topics_of(caller_),
                             respond<ScheduleReceipt>([](Writer& writer, const ScheduleReceipt& receipt) {
                               Members members;
                               members.add("result", std::string_view(receipt.is_new        ? "created"
                                                                      : receipt.has_changed ? "updated"
                                                                                            : "unchanged"));
                               add_schedule(members, receipt.schedule, false);
                               members.write(writer);
                             }));
  }
  schedules_.clear();
  texts_.clear();
}

Status Conversation::list_schedules(Arguments& arguments) {
  ScheduleListing request;
  Once once;
  while (!arguments.empty()) {
    const size_t before = arguments.size();
    const Status status = once.take(arguments, [&]() -> Status {
      if (arguments.take_word("AFTER")) return keep(arguments.text("AFTER"), request.after);
      return take_count(arguments, request.limit, Limits::kPageJobs);
    });
    if (!status.ok() || arguments.size() == before) return status;
  }
  host_.queue.list_schedules(now_, request, front_.access.topics_of(caller_),
                             respond<ScheduleViews>([](Writer& writer, const ScheduleViews& page) {
                               writer.array(2);
                               writer.bulk(page.cursor);
                               writer.array(page.schedules.size());
                               for (const ScheduleView& view : page.schedules) write_schedule(writer, view);
                             }));
  return {};
}

Status Conversation::next_of_schedule(Arguments& arguments) {
  const std::string_view first = arguments.front();
  const bool is_rule = same_word(first, "CRON") || same_word(first, "EVERY");
  if (arguments.size() > 1 && is_rule) return next_of_rule(arguments);
  if (arguments.size() > 1) arguments.take_word("NAME");
  const std::string_view name = arguments.take();
  uint32_t count = kShownOccurrences;
  if (!arguments.empty()) {
    if (Status status = take_count(arguments, count, Limits::kPreview); !status.ok()) return status;
    if (!arguments.empty()) return {};  // not understood
  }
  host_.queue.get_schedule(
      now_, name, front_.access.topics_of(caller_),
      respond<std::optional<ScheduleView>>(
          [name = std::string(name), count](Writer& writer, const std::optional<ScheduleView>& view) {
            if (!view) {
              return write_error(
                  writer, {ErrorCode::kNotFound, {}, fmt::format("there is no schedule {}", quote(name))});
            }
            if (!view->is_readable()) return write_error(writer, {ErrorCode::kCorrupt, {}, view->problem});
            const Result<Recurrence> rule = recurrence_of(view->spec, view->progress.created);
            if (!rule.ok()) return write_error(writer, rule.error());
            write_occurrences(writer, next_occurrences(view->spec, *rule, view->progress, count),
                              zone_of(view->spec));
          }));
  return {};
}

Status Conversation::next_of_rule(Arguments& arguments) {
  // As if it were set at `from`.
  ScheduleSpec spec;
  Moment from = now_;
  uint32_t count = kShownOccurrences;
  Once once;
  while (!arguments.empty()) {
    const size_t before = arguments.size();
    const Status status = once.take(arguments, [&]() -> Status {
      if (Status option = take_rule_option(arguments, spec); !option.ok() || arguments.size() < before)
        return option;
      if (arguments.take_word("FROM")) return keep(arguments.moment("FROM"), from);
      return take_count(arguments, count, Limits::kPreview);
    });
    if (!status.ok() || arguments.size() == before) return status;
  }
  const Result<std::vector<Moment>> occurrences = preview_schedule(spec, from, count);
  if (!occurrences.ok()) return occurrences.error();
  reply([&](Writer& writer) { write_occurrences(writer, *occurrences, zone_of(spec)); });
  return {};
}

}  // namespace delayq::resp
