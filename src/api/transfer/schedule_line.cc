#include "api/transfer/members.h"
#include "core/duration.h"
#include "core/encoding.h"
#include "core/moment.h"
#include "queue/job_headers.h"

namespace delayq::transfer {

// ---- parts that jobs have, too

namespace {

/// Those of a Kafka record may be any bytes, and one name may be there several times.
void write_headers(json::Writer& json, std::string_view encoded) {
  if (encoded.empty()) return;
  if (are_of_record(encoded)) {
    json.key("kafka_record_base64").text(to_base64(encoded));
    return;
  }
  json.key("headers").begin_object();
  for (const JobHeader& header : visible_headers(encoded)) json.key(header.name).text(header.value);
  json.end_object();
}

std::string_view read_headers(Members& members) {
  const json::Slice* const object = members.find("headers");
  const std::optional<std::string_view> record = members.text("kafka_record_base64");
  if (object != nullptr && record) members.note("headers", "cannot be given beside kafka_record_base64");
  if (record) {
    const std::string_view encoded = members.decoded("kafka_record_base64", *record);
    if (!encoded.empty() && !are_of_record(encoded))
      members.note("kafka_record_base64", "this is not the key and the headers of a record");
    return encoded;
  }
  if (object == nullptr) return {};
  if (object->type != json::Type::kObject) {
    members.note("headers", fmt::format("expected an object, got {}", name_of(object->type)));
    return {};
  }
  std::deque<std::string>& texts = members.texts();
  std::vector<JobHeader> headers;
  for (json::Member& member : json::members_of(*object)) {
    const std::string_view name = texts.emplace_back(std::move(member.name));
    const bool is_text = member.value.type == json::Type::kString;
    Result<std::string> text = is_text ? json::text_of(member.value) : invalid("expected a string");
    if (!text.ok()) {
      members.note(fmt::format("headers.{}", name), text.error().detail);
      return {};
    }
    headers.push_back({name, texts.emplace_back(std::move(*text))});
  }
  std::string encoded;
  encode_job_headers(headers, encoded);
  return texts.emplace_back(std::move(encoded));
}

std::string_view read_callback_headers(Members& members) {
  const json::Slice* const array = members.find("callback_headers");
  if (array == nullptr) return {};
  std::string lines;
  bool is_right = array->type == json::Type::kArray;
  if (is_right) {
    for (const json::Slice& item : json::items_of(*array)) {
      const Result<std::string> line =
          item.type == json::Type::kString ? json::text_of(item) : invalid("no text");
      // A line end would make two headers of one.
      is_right = is_right && line.ok() && line->find('\n') == std::string::npos;
      if (is_right) lines += (lines.empty() ? "" : "\n") + *line;
    }
  }
  if (!is_right) members.note("callback_headers", "expected an array of header lines");
  return members.texts().emplace_back(std::move(lines));
}

}  // namespace

void write_options(json::Writer& json, const JobOptions& options) {
  if (options.attempts) json.key("max_attempts").number(uint64_t{*options.attempts});
  if (options.backoff) json.key("backoff").text(format_backoff(*options.backoff));
  if (options.lease) json.key("lease").text(format_duration(*options.lease));
  if (!options.callback.empty()) json.key("callback").text(options.callback);
  if (!options.method.empty()) json.key("callback_method").text(options.method);
  if (options.format) json.key("callback_format").text(name_of(*options.format));
  if (!options.callback_headers.empty()) {
    json.key("callback_headers").begin_array();
    for (const JobHeader& header : parse_header_lines(options.callback_headers))
      json.text(fmt::format("{}: {}", header.name, header.value));
    json.end_array();
  }
  if (!options.content_type.empty()) json.key("content_type").text(options.content_type);
  if (!options.name.empty()) json.key("name").text(options.name);
  if (!options.kafka_topic.empty()) json.key("kafka_topic").text(options.kafka_topic);
  if (options.is_notice) json.key("is_notice").boolean(true);
  write_headers(json, options.headers);
}

std::string_view read_body(Members& members) {
  const json::Slice* value = members.find("body");
  const std::optional<std::string_view> text = members.text("body_text");
  const std::optional<std::string_view> base64 = members.text("body_base64");
  if ((value != nullptr) + text.has_value() + base64.has_value() != 1) {
    members.note("body", "expected one of body, body_text and body_base64");
    return {};
  }
  if (value != nullptr) return value->text;
  return text ? *text : members.decoded("body_base64", *base64);
}

void read_options(Members& members, JobOptions& options) {
  options.attempts = members.number("max_attempts");
  options.backoff = members.parsed("backoff", parse_backoff);
  options.lease = members.parsed("lease", parse_duration);
  options.callback = members.text("callback").value_or(std::string_view());
  options.method = members.text("callback_method").value_or(std::string_view());
  options.format = members.parsed("callback_format", parse_callback_format);
  options.callback_headers = read_callback_headers(members);
  options.content_type = members.text("content_type").value_or(std::string_view());
  options.name = members.text("name").value_or(std::string_view());
  options.kafka_topic = members.text("kafka_topic").value_or(std::string_view());
  options.is_notice = members.boolean("is_notice").value_or(false);
  options.headers = read_headers(members);
}

// ---- schedules

namespace {

void write_rule(json::Writer& json, const ScheduleSpec& spec) {
  if (spec.every) json.key("every").text(format_duration(*spec.every));
  if (!spec.cron.empty()) json.key("cron").text(spec.cron);
  if (!spec.zone.empty()) json.key("zone").text(spec.zone);
  if (spec.start) json.key("start").text(format_moment(*spec.start));
  if (spec.end) json.key("end").text(format_moment(*spec.end));
  if (spec.runs) json.key("runs").number(*spec.runs);
  if (spec.jitter != Millis::zero()) json.key("jitter").text(format_duration(spec.jitter));
  if (spec.overlap != Overlap::kAllow) json.key("overlap").text(name_of(spec.overlap));
  if (spec.missed != Missed::kOne) json.key("missed").text(name_of(spec.missed));
}

void write_progress(json::Writer& json, const ScheduleProgress& progress) {
  json.key("progress").begin_object();
  json.key("created_at").text(format_moment(progress.created));
  json.key("decided_until").text(format_moment(progress.decided));
  if (progress.made != 0) json.key("made").number(progress.made);
  if (progress.skipped != 0) json.key("skipped").number(progress.skipped);
  if (progress.missed != 0) json.key("missed").number(progress.missed);
  if (progress.previous != Moment{}) json.key("previous_at").text(format_moment(progress.previous));
  if (!progress.previous_topic.empty()) json.key("previous_topic").text(progress.previous_topic);
  if (progress.catch_up_until != Moment{})
    json.key("catch_up_until").text(format_moment(progress.catch_up_until));
  if (progress.paused) json.key("paused").boolean(true);
  if (progress.moving) json.key("moving").boolean(true);
  json.end_object();
}

void read_rule(Members& members, ScheduleSpec& spec) {
  spec.every = members.parsed("every", parse_duration);
  spec.cron = members.text("cron").value_or(std::string_view());
  spec.zone = members.text("zone").value_or(std::string_view());
  spec.start = members.parsed("start", parse_moment);
  spec.end = members.parsed("end", parse_moment);
  spec.runs = members.large_number("runs");
  spec.jitter = members.parsed("jitter", parse_duration).value_or(Millis{});
  spec.overlap = members.parsed("overlap", parse_overlap).value_or(Overlap::kAllow);
  spec.missed = members.parsed("missed", parse_missed).value_or(Missed::kOne);
}

std::optional<ScheduleProgress> read_progress(Members& members) {
  const json::Slice* const value = members.find("progress");
  if (value == nullptr) return std::nullopt;
  if (value->type != json::Type::kObject) {
    members.note("progress", fmt::format("expected an object, got {}", name_of(value->type)));
    return std::nullopt;
  }
  Members parts(*value, members.texts());
  ScheduleProgress progress;
  const std::optional<Moment> created = parts.parsed("created_at", parse_moment);
  const std::optional<Moment> decided = parts.parsed("decided_until", parse_moment);
  parts.need(created.has_value(), "created_at");
  parts.need(decided.has_value(), "decided_until");
  progress.created = created.value_or(Moment{});
  progress.decided = decided.value_or(Moment{});
  progress.made = parts.large_number("made").value_or(0);
  progress.skipped = parts.large_number("skipped").value_or(0);
  progress.missed = parts.large_number("missed").value_or(0);
  progress.previous = parts.parsed("previous_at", parse_moment).value_or(Moment{});
  progress.previous_topic = parts.text("previous_topic").value_or(std::string_view());
  progress.catch_up_until = parts.parsed("catch_up_until", parse_moment).value_or(Moment{});
  progress.paused = parts.boolean("paused").value_or(false);
  progress.moving = parts.boolean("moving").value_or(false);
  if (const Status status = parts.finish(); !status.ok()) members.note("progress", status.error().detail);
  return progress;
}

}  // namespace

void write_schedule(json::Writer& json, const ScheduleView& schedule) {
  const ScheduleSpec& spec = schedule.spec;
  json.key("schedule").text(spec.name);
  if (!schedule.is_readable()) {  // must be visible in the export; importing it is refused
    json.key("damaged").text(schedule.problem);
    return;
  }
  json.key("topic").text(spec.topic);
  write_rule(json, spec);
  if (spec.priority) json.key("priority").number(uint64_t{*spec.priority});
  if (!spec.group.empty()) json.key("group").text(spec.group);
  json::write_body(json, spec.body);
  write_options(json, spec.options);
  if (spec.from_configuration) json.key("from_configuration").boolean(true);
  write_progress(json, schedule.progress);
}

void read_schedule(Members& members, Line& line) {
  ScheduleSpec& spec = line.schedule.emplace();
  spec.name = members.text("schedule").value_or(std::string_view());
  if (members.text("damaged"))
    return members.note("damaged", "this schedule could not be read when it was exported");
  line.moving = members.boolean("moving");
  if (line.moving) return;  // it has nothing else
  const std::optional<std::string_view> topic = members.text("topic");
  members.need(topic.has_value(), "topic");
  spec.topic = line.topic = topic.value_or(std::string_view());
  read_rule(members, spec);
  spec.priority = members.number("priority");
  spec.group = members.text("group").value_or(std::string_view());
  spec.body = read_body(members);
  read_options(members, spec.options);
  spec.from_configuration = members.boolean("from_configuration").value_or(false);
  line.progress = read_progress(members);
}

}  // namespace delayq::transfer
