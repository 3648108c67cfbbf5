// The calls about schedules, which make jobs again and again.
#include <functional>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/http/conversation.h"
#include "api/http/v1.h"
#include "core/duration.h"
#include "core/limits.h"
#include "core/moment.h"

namespace delayq::http::v1_calls {

namespace {

constexpr uint32_t kUsualPreview = 5;

// ---- what requests have

/// The fields of a rule that a preview needs too.
void read_rule(Fields& fields, ScheduleSpec& spec) {
  if (const auto cron = fields.text("cron")) {
    spec.cron = *cron;
    if (cron->empty()) fields.note("cron", "is empty");
  }
  spec.every = fields.duration("every");
  if (const auto zone = fields.text("zone")) {
    spec.zone = *zone;
    if (zone->empty()) fields.note("zone", "is empty; leave it out for UTC");
  }
  spec.start = fields.moment("start");
}

/// One of `names` as its number, which is an enumerator.
template <class Word, size_t kSize>
void read_word(Fields& fields, std::string_view name, const std::array<std::string_view, kSize>& names,
               Word& word) {
  const auto text = fields.text(name);
  if (!text) return;
  for (size_t i = 0; i < kSize; ++i) {
    if (names[i] == *text) {
      word = static_cast<Word>(i);
      return;
    }
  }
  fields.note(name, fmt::format("expected {}", fmt::join(names, ", ")));
}

/// Everything but the name and the body.
void read_schedule(Fields& fields, ScheduleSpec& spec) {
  read_rule(fields, spec);
  spec.end = fields.moment("end");
  spec.runs = fields.number("runs");
  spec.jitter = fields.duration("jitter").value_or(Millis{});
  read_word(fields, "overlap", kOverlapNames, spec.overlap);
  read_word(fields, "missed", kMissedNames, spec.missed);
  if (const auto topic = fields.text("topic")) {
    spec.topic = *topic;
  } else {
    fields.note("topic", "is missing; the topic of the jobs");
  }
  if (const auto group = fields.text("group")) {
    if (const Status status = check_group(*group); !status) fields.note("group", status.error().detail);
    spec.group = *group;
  }
  spec.priority = fields.small_number("priority");
  read_options(fields, spec.options);
}

TopicPatterns topics_of(const Call& call) { return call.access().topics_of(call.caller()); }

// ---- what answers have

/// The zones of the schedules in an answer: finding one reads a file.
class Zones {
 public:
  /// UTC for a zone that is not known here; its schedule has a problem then.
  const Zone& find(std::string_view name) {
    const auto found = known_.find(name);
    if (found != known_.end()) return found->second;
    const Result<Zone> zone = name.empty() ? Result<Zone>{Zone()} : Zone::find(name);
    return known_.emplace(std::string(name), zone.ok() ? *zone : Zone()).first->second;
  }

 private:
  std::map<std::string, Zone, std::less<>> known_;
};

void write_rule(json::Writer& json, const ScheduleSpec& spec) {
  if (spec.every) {
    json.key("every").text(format_duration(*spec.every));
  } else {
    json.key("cron").text(spec.cron).key("zone").text(spec.zone.empty() ? "UTC" : spec.zone);
  }
  if (spec.start) json.key("start").text(format_moment(*spec.start));
  if (spec.end) json.key("end").text(format_moment(*spec.end));
  if (spec.runs) json.key("runs").number(*spec.runs);
  if (spec.jitter != Millis::zero()) json.key("jitter").text(format_duration(spec.jitter));
  json.key("overlap").text(name_of(spec.overlap)).key("missed").text(name_of(spec.missed));
}

void write_template(json::Writer& json, const ScheduleSpec& spec, bool with_body) {
  json.key("topic").text(spec.topic);
  if (with_body) write_body(json, spec.body, spec.options.content_type);
  if (!spec.group.empty()) json.key("group").text(spec.group);
  if (spec.priority) json.key("priority").number(uint64_t{*spec.priority});
  const JobOptions& options = spec.options;
  if (options.attempts) json.key("attempts").number(uint64_t{*options.attempts});
  if (options.backoff) json.key("backoff").text(format_backoff(*options.backoff));
  if (options.lease) json.key("lease").text(format_duration(*options.lease));
  if (!options.callback.empty()) json.key("callback").text(options.callback);
  if (!options.method.empty()) json.key("callback_method").text(options.method);
  if (options.format) json.key("callback_format").text(name_of(*options.format));
  if (with_body) write_headers(json, options.headers);
}

void write_progress(json::Writer& json, const ScheduleSpec& spec, const ScheduleProgress& progress) {
  json.key("created_at").text(format_moment(progress.created));
  json.key("occurrences").begin_object().key("made").number(progress.made);
  json.key("skipped").number(progress.skipped).key("missed").number(progress.missed).end_object();
  if (progress.previous == Moment{}) return;
  json.key("previous").begin_object().key("topic").text(progress.previous_topic);
  json.key("id").text(occurrence_id(spec.name, progress.previous));
  json.key("at").text(format_moment(progress.previous)).end_object();
}

void write_schedule(json::Writer& json, const ScheduleView& view, bool with_body, Zones& zones) {
  json.begin_object().key("name").text(view.spec.name);
  if (view.is_readable()) {
    json.key("state").text(name_of(view.state));
    if (view.next != kNever) {
      json.key("next_at").text(format_moment(view.next));
      json.key("next_local").text(local_time(view.next, zones.find(view.spec.zone)));
    }
    write_rule(json, view.spec);
    write_template(json, view.spec, with_body);
    write_progress(json, view.spec, view.progress);
    if (view.progress.moving) json.key("moving").boolean(true);
    if (view.spec.from_configuration) json.key("from_configuration").boolean(true);
  }
  if (!view.problem.empty()) json.key("problem").text(view.problem);
  json.end_object();
}

int write_one(json::Writer& json, const ScheduleView& view, int status) {
  Zones zones;
  write_schedule(json, view, true, zones);
  return status;
}

/// A Reply that sends the schedule.
Reply<ScheduleView> send_schedule(const Call& call) {
  return call.accept().respond<ScheduleView>(
      [](json::Writer& json, const ScheduleView& view) { return write_one(json, view, 200); });
}

}  // namespace

Status set_schedule(const Call& call) {
  ScheduleSpec spec;
  spec.name = call.names[0];
  Result<Fields> fields = fields_with_body(call, spec.body, spec.options);
  if (!fields.ok()) return fields.error();
  read_schedule(*fields, spec);
  if (Status status = fields->finish(); !status.ok()) return status;
  if (Status status = call.check(only(Scope::kSchedule), spec.topic); !status.ok()) return status;
  call.queue().set_schedule(
      call.now(), spec, topics_of(call),
      call.accept().respond<ScheduleReceipt>([](json::Writer& json, const ScheduleReceipt& receipt) {
        return write_one(json, receipt.schedule, receipt.is_new ? 201 : 200);
      }));
  return {};
}

Status get_schedule(const Call& call) {
  if (Status status = call.expect_no_query(); !status.ok()) return status;
  call.queue().get_schedule(
      call.now(), call.names[0], topics_of(call),
      [responder = call.accept()](const Result<std::optional<ScheduleView>>& found) {
        if (!found.ok()) return responder.refuse(found.error());
        if (!*found)
          return responder.refuse(
              about_field("name", Error{ErrorCode::kNotFound, {}, "there is no such schedule"}));
        responder.send_json([&](json::Writer& json) { return write_one(json, **found, 200); });
      });
  return {};
}

Status list_schedules(const Call& call) {
  Fields fields(call.target.query);
  ScheduleListing request;
  request.after = fields.text("cursor").value_or(std::string_view());
  request.limit = fields.small_number("limit").value_or(request.limit);
  const bool with_bodies = fields.boolean("bodies").value_or(false);
  if (Status status = fields.finish(); !status.ok()) return status;
  call.queue().list_schedules(
      call.now(), request, topics_of(call),
      call.accept().respond<ScheduleViews>([with_bodies](json::Writer& json, const ScheduleViews& page) {
        Zones zones;
        json.begin_object().key("schedules").begin_array();
        for (const ScheduleView& view : page.schedules) write_schedule(json, view, with_bodies, zones);
        json.end_array().key("cursor").text(page.cursor).end_object();
        return 200;
      }));
  return {};
}

/// Answered without the queue: a rule alone says when its occurrences are.
Status preview_schedule(const Call& call) {
  Fields fields(call.target.query);
  ScheduleSpec spec;
  read_rule(fields, spec);
  const Moment from = fields.moment("from").value_or(call.now());
  const uint32_t count = fields.small_number("count").value_or(kUsualPreview);
  if (Status status = fields.finish(); !status.ok()) return status;
  const Result<std::vector<Moment>> found = delayq::preview_schedule(spec, from, count);
  if (!found.ok()) return found.error();
  Zones zones;
  const Zone& zone = zones.find(spec.zone);
  call.accept().send_json([&](json::Writer& json) {
    json.begin_object().key("occurrences").begin_array();
    for (const Moment occurrence : *found) {
      json.begin_object().key("at").text(format_moment(occurrence));
      json.key("local").text(local_time(occurrence, zone)).end_object();
    }
    json.end_array().end_object();
    return 200;
  });
  return {};
}

Status remove_schedule(const Call& call) {
  if (Status status = call.expect_no_query(); !status.ok()) return status;
  call.queue().remove_schedule(call.now(), call.names[0], topics_of(call),
                               call.accept().respond<void>([](json::Writer& json) {
                                 json.begin_object().key("result").text("ok").end_object();
                                 return 200;
                               }));
  return {};
}

Status pause_schedule(const Call& call) {
  if (Status status = call.expect_nothing(); !status.ok()) return status;
  call.queue().pause_schedule(call.now(), call.names[0], topics_of(call), send_schedule(call));
  return {};
}

Status resume_schedule(const Call& call) {
  if (Status status = call.expect_nothing(); !status.ok()) return status;
  call.queue().resume_schedule(call.now(), call.names[0], topics_of(call), send_schedule(call));
  return {};
}

Status run_schedule(const Call& call) {
  if (Status status = call.expect_nothing(); !status.ok()) return status;
  call.queue().run_schedule(
      call.now(), call.names[0], topics_of(call),
      call.accept().respond<ScheduleRun>([](json::Writer& json, const ScheduleRun& run) {
        json.begin_object();
        write_receipt(json, run.topic, {.id = run.id, .state = run.state, .due = run.due});
        json.end_object();
        return 201;
      }));
  return {};
}

}  // namespace delayq::http::v1_calls
