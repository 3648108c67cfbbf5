#include <algorithm>

#include <fmt/format.h>

#include "api/http/dialect.h"
#include "api/http/v1.h"
#include "api/transfer/line.h"
#include "core/duration.h"
#include "core/moment.h"
#include "core/text.h"
#include "json/writer.h"
#include "queue/job_headers.h"
#include "queue/job_options.h"

namespace delayq::http {

namespace {

void write_counts(json::Writer& json, const TopicCounts& counts) {
  json.key("counts").begin_object();
  for (size_t i = 0; i < kJobStateCount; ++i) {
    json.key(name_of(static_cast<JobState>(i))).number(counts.by_state[i]);
  }
  json.end_object();
  if (counts.oldest_ready) json.key("oldest_ready_at").text(format_moment(*counts.oldest_ready));
  if (counts.oldest_lease) json.key("oldest_lease_at").text(format_moment(*counts.oldest_lease));
}

void write_lateness(json::Writer& json, const Lateness& lateness) {
  json.key("lateness_ms").begin_object().key("p50").number(lateness.shown_quantile(0.5));
  json.key("p99").number(lateness.shown_quantile(0.99)).end_object();
}

void write_tallies(json::Writer& json, const Tallies& tallies, const Lateness& lateness, uint64_t waiters) {
  json.key("since_start").begin_object();
  for (size_t i = 0; i < kTallyCount; ++i) json.key(kTallyNames[i]).number(tallies.of(static_cast<Tally>(i)));
  json.end_object();
  write_lateness(json, lateness);
  json.key("waiters").number(waiters);
}

/// {"time": "1h", "count": 1000}; a part that is left out does not change.
std::optional<RetentionSetting> read_retention(Fields& fields, std::string_view name) {
  std::optional<Fields> parts = fields.object(name);
  if (!parts) return std::nullopt;
  RetentionSetting retention;
  retention.time = parts->duration("time");
  retention.count = parts->small_number("count");
  fields.close(*parts);
  return retention.is_unset() ? std::nullopt : std::optional(retention);
}

/// "100/1s", or {"count": 100, "per": "1s"}; a count of 0 is no limit.
std::optional<Rate> read_rate(Fields& fields, std::string_view name) {
  if (!fields.is_object(name)) {
    const auto text = fields.text(name);
    if (!text) return std::nullopt;
    const Result<Rate> rate = parse_rate(*text);
    // As {"count": 0}: check_rate_periods() minds the period of a rate without limit, too.
    if (rate.ok()) return rate->count > 0 ? *rate : Rate{0, std::chrono::seconds{1}};
    fields.note(name, rate.error().detail);
    return std::nullopt;
  }
  std::optional<Fields> parts = fields.object(name);
  if (!parts) return std::nullopt;
  const Rate rate{parts->small_number("count").value_or(0),
                  parts->duration("per").value_or(std::chrono::seconds{1})};
  fields.close(*parts);
  return rate;
}

/// A form counts as JSON too: it is the type that curl sends by default, and no call accepts forms.
bool is_json(std::string_view content_type) {
  const std::string type = media_type(content_type);
  return type.empty() || type == "application/json" || type == "application/x-www-form-urlencoded";
}

/// Takes the field of a setting, by its kind; nullopt when it is missing, null or wrong.
class SettingReader {
 public:
  SettingReader(Fields& fields, std::string_view name) : fields_(fields), name_(name) {}

  std::optional<SettingValue> operator()(const NumberKind& kind) const {
    if (kind.most > kMax32Bits) return any(fields_.number(name_));
    const std::optional<uint32_t> number = fields_.small_number(name_);
    return number ? std::optional<SettingValue>(uint64_t{*number}) : std::nullopt;
  }
  std::optional<SettingValue> operator()(const DurationKind& /*kind*/) const {
    return any(fields_.duration(name_));
  }
  std::optional<SettingValue> operator()(const FlagKind& /*kind*/) const {
    return any(fields_.boolean(name_));
  }
  std::optional<SettingValue> operator()(const TextKind& /*kind*/) const {
    const auto text = fields_.text(name_);
    return text ? std::optional<SettingValue>(std::string(*text)) : std::nullopt;
  }
  std::optional<SettingValue> operator()(const WordKind& kind) const {
    const auto text = fields_.text(name_);
    if (!text) return std::nullopt;
    const Result<size_t> place = kind.words.find(*text);
    if (place.ok()) return uint64_t{*place};
    fields_.note(name_, place.error().detail);
    return std::nullopt;
  }
  std::optional<SettingValue> operator()(const BackoffKind& /*kind*/) const {
    return any(fields_.backoff(name_));
  }
  std::optional<SettingValue> operator()(const RateKind& /*kind*/) const {
    return any(read_rate(fields_, name_));
  }
  std::optional<SettingValue> operator()(const RetentionKind& /*kind*/) const {
    return any(read_retention(fields_, name_));
  }
  std::optional<SettingValue> operator()(const SecretsKind& /*kind*/) const {
    const auto texts = fields_.texts(name_);
    if (!texts) return std::nullopt;
    return std::vector<std::string>(texts->begin(), texts->end());
  }

 private:
  template <class T>
  static std::optional<SettingValue> any(const std::optional<T>& value) {
    return value ? std::optional<SettingValue>(*value) : std::nullopt;
  }

  Fields& fields_;
  std::string_view name_;
};

}  // namespace

SettingValues read_settings(Fields& fields, std::span<const Setting> rows) {
  SettingValues settings{rows};
  for (size_t i = 0; i < rows.size(); ++i)
    settings.values[i] = std::visit(SettingReader(fields, rows[i].name), rows[i].kind);
  return settings;
}

Status check_rate_periods(const SettingValues& settings) {
  for (size_t i = 0; i < settings.rows.size(); ++i) {
    if (!settings.values[i] || !std::holds_alternative<Rate>(*settings.values[i])) continue;
    Rate used = std::get<Rate>(*settings.values[i]);
    used.count = std::max(used.count, 1U);
    if (Status status = check_setting(settings.rows[i], used); !status.ok()) return status;
  }
  return {};
}

// ---- what requests have

std::string media_type(std::string_view content_type) {
  const std::string_view type = content_type.substr(0, content_type.find(';'));
  return lowered(type.substr(0, type.find_last_not_of(" \t") + 1));
}

void read_job(Fields& fields, PushRequest& job) {
  if (const auto id = fields.text("id")) {
    if (job.id && *job.id != *id) fields.note("id", "is another one than that of the path");
    job.id = *id;
  }
  job.group = fields.text("group");
  job.delay = fields.duration("delay");
  job.at = fields.moment("at");
  job.priority = fields.small_number("priority");
  read_options(fields, job.options);
  if (const auto unique = fields.boolean("unique")) job.unique_across_topics = *unique;
  if (const auto conflict = read_on_conflict(fields)) job.on_conflict = *conflict;
}

namespace {

/// "headers": {"traceparent": "..."}. The queue checks them.
void read_headers(Fields& fields, JobOptions& options) {
  const std::vector<Fields::NamedText> given = fields.named_texts("headers");
  if (given.empty()) return;
  std::vector<JobHeader> headers;
  headers.reserve(given.size());
  for (const auto& [name, value] : given) headers.push_back({name, value});
  std::string encoded;
  encode_job_headers(headers, encoded);
  options.headers = fields.keep(std::move(encoded));
}

}  // namespace

void read_options(Fields& fields, JobOptions& options) {
  options.attempts = fields.small_number("attempts");
  options.backoff = fields.backoff("backoff");
  options.lease = fields.duration("lease");
  if (const auto callback = fields.text("callback")) options.callback = *callback;
  if (const auto method = fields.text("callback_method")) options.method = *method;
  options.format = read_format(fields);
  if (const auto given = fields.is_query() ? std::nullopt : fields.texts("callback_headers")) {
    constexpr std::string_view kName = "callback_headers";
    std::string lines;  // fields_with_body() refuses them in a query
    for (const std::string_view line : *given) {
      if (const Status status = add_header_line(line, lines); !status)
        fields.note(kName, status.error().detail.substr(kName.size() + 2));
    }
    options.callback_headers = fields.keep(std::move(lines));
  }
  read_headers(fields, options);
}

std::optional<CallbackFormat> read_format(Fields& fields) {
  const auto word = fields.text("callback_format");
  if (!word) return std::nullopt;
  const Result<CallbackFormat> format = parse_callback_format(*word);
  if (format.ok()) return *format;
  fields.note("callback_format", format.error().detail);
  return std::nullopt;
}

std::optional<OnConflict> read_on_conflict(Fields& fields) {
  const auto name = fields.text("on_conflict");
  if (!name) return std::nullopt;
  const std::optional<OnConflict> conflict = parse_on_conflict(*name);
  if (!conflict) fields.note("on_conflict", "expected reject, replace or keep");
  return conflict;
}

std::string_view read_body(Fields& fields) {
  const auto body = fields.value("body");
  if (!body) fields.note("body", "is missing; any JSON value is allowed");
  return body ? body->text : std::string_view();
}

Result<Fields> fields_with_body(const Call& call, std::string_view& body, JobOptions& options) {
  if (!is_json(call.request.content_type)) {
    for (const auto& [name, value] : call.target.query) {
      // Proxies and access logs keep the query of a request.
      if (name == "callback_headers")
        return invalid(
            name,
            "callback_headers: they may be secrets, which do not belong into a query: push the job as JSON");
    }
    body = call.request.body;
    options.content_type = call.request.content_type;
    return Fields(call.target.query);
  }
  if (!call.target.query.empty()) {
    const std::string& name = call.target.query.front().first;
    return invalid(
        name,
        fmt::format("{}: the fields of a job with a JSON body belong into that body, not into the query",
                    name));
  }
  Result<Fields> fields = Fields::of_json(call.request.body);
  if (fields.ok()) body = read_body(*fields);
  return fields;
}

void write_receipt(json::Writer& json, std::string_view topic, const PushReceipt& receipt) {
  json.key("topic").text(topic).key("id").text(receipt.id).key("state").text(name_of(receipt.state));
  json.key("due_at").text(format_moment(receipt.due));
}

void write_push_receipt(json::Writer& json, std::string_view topic, const PushReceipt& receipt) {
  write_receipt(json, topic, receipt);
  json.key("result").text(name_of(receipt.outcome));
}

void write_result(json::Writer& json, std::string_view topic, const Result<PushReceipt>& result) {
  if (result.ok()) {
    write_push_receipt(json, topic, *result);
  } else {
    write_problem(json, result.error());
  }
}

// ---- what answers have

void write_topic(json::Writer& json, const TopicSummary& topic) {
  json.begin_object().key("topic").text(topic.topic);
  write_counts(json, topic.counts);
  write_tallies(json, topic.tallies, topic.lateness, topic.waiters);
  json.key("paused").boolean(topic.paused).end_object();
}

void write_totals(json::Writer& json, const TotalStats& stats) {
  json.begin_object();
  write_counts(json, stats.counts);
  write_tallies(json, stats.tallies, stats.lateness, stats.waiters);
  json.key("jobs").number(stats.usage.jobs).key("topics").number(stats.usage.topics);
  json.key("memory_bytes").number(stats.usage.memory_bytes);
  json.key("disk_bytes").number(stats.usage.disk_bytes);
  json.key("live_bytes").number(stats.usage.live_bytes);
  json.key("disk_free_bytes").number(std::min<uint64_t>(stats.usage.disk_free, INT64_MAX));
  json.key("unsynced_bytes").number(stats.usage.unsynced_bytes);
  json.key("unanswered_bytes").number(stats.unanswered_bytes);
  json.key("commits").number(stats.usage.commits);
  if (stats.usage.cold_bodies) json.key("bodies_in_kafka").number(*stats.usage.cold_bodies);
  json.key("schedules").number(stats.usage.schedules).key("occurrences").begin_object();
  json.key("made").number(stats.schedules.made).key("skipped").number(stats.schedules.skipped);
  json.key("missed").number(stats.schedules.missed).key("refused").number(stats.schedules.refused);
  write_lateness(json, stats.schedules.lateness);
  json.end_object().end_object();
}

void write_job_body(json::Writer& json, const Job& job) {
  if (job.options.empty()) return write_body(json, job.body, {});
  const JobOptions options = decode_job_options(job.options);
  write_body(json, job.body, options.content_type);
  write_headers(json, options.headers);
}

void write_headers(json::Writer& json, std::string_view encoded) {
  const std::vector<JobHeader> headers = visible_headers(encoded);
  if (headers.empty()) return;
  json.key("headers").begin_object();
  for (const JobHeader& header : headers) json.key(header.name).text(header.value);
  json.end_object();
}

void write_callback_header_names(json::Writer& json, const JobOptions& options) {
  if (options.callback_headers.empty()) return;
  json.key("callback_header_names").begin_array();
  for (const JobHeader& header : parse_header_lines(options.callback_headers)) json.text(header.name);
  json.end_array();
}

void write_body(json::Writer& json, std::string_view body, std::string_view content_type) {
  if (content_type.empty()) return json::write_body_value(json, body);
  json.bytes("body", body);
  json.key("content_type").text(content_type);
}

void write_job(json::Writer& json, const Job& job, bool with_body, std::string_view delivery_problem) {
  json.begin_object().key("topic").text(job.topic).key("id").text(job.id).key("state").text(
      name_of(job.state));
  if (with_body) write_job_body(json, job);
  json.key("due_at").text(format_moment(job.due)).key("pushed_at").text(format_moment(job.pushed));
  json.key("attempts").number(uint64_t{job.attempts}).key("priority").number(uint64_t{job.priority});
  if (!job.group.empty()) json.key("group").text(job.group);
  if (job.handed_over != Moment{}) json.key("handed_over_at").text(format_moment(job.handed_over));
  if (job.state == JobState::kReserved) json.key("lease_until").text(format_moment(job.until));
  if (job.state == JobState::kDone || job.state == JobState::kDead)
    json.key("kept_until").text(format_moment(job.until));
  if (job.outlet == Outlet::kCallback) {
    const JobOptions options = decode_job_options(job.options);
    json.key("callback").text(options.callback);
    write_callback_header_names(json, options);
  }
  if (!job.outcome.empty()) json.key("outcome").text(job.outcome);
  if (job.cancel_requested) json.key("cancel_requested").boolean(true);
  if (!delivery_problem.empty()) json.key("delivery_problem").text(delivery_problem);
  json.end_object();
}

void write_topic_stats(json::Writer& json, std::string_view topic, const TopicStats& stats) {
  json.begin_object().key("topic").text(topic);
  write_counts(json, stats.counts);
  write_tallies(json, stats.tallies, stats.lateness, stats.waiters);
  json.key("paused").boolean(stats.settings.paused);
  if (!stats.delivery_problem.empty()) json.key("delivery_problem").text(stats.delivery_problem);
  json.key("settings").begin_object();
  transfer::write_settings(json, topic_settings().effective_values(stats.settings),
                           transfer::SecretCounts::kShown);
  json.end_object().end_object();
}

}  // namespace delayq::http
