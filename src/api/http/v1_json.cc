#include "api/http/v1_json.h"

#include <algorithm>

#include "api/http/response.h"
#include "core/duration.h"
#include "core/moment.h"
#include "json/writer.h"
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
}

void write_tallies(json::Writer& json, const Tallies& tallies, const Lateness& lateness, uint64_t waiters) {
  json.key("since_start").begin_object();
  for (size_t i = 0; i < kTallyCount; ++i) json.key(kTallyNames[i]).number(tallies.of(static_cast<Tally>(i)));
  json.end_object();
  // A value above all buckets is shown as the first number above them.
  static constexpr Millis kMost = Lateness::upper_bound(Lateness::kBuckets - 2) + Millis{1};
  const auto quantile = [&lateness](double part) {
    return static_cast<uint64_t>(std::min(lateness.quantile(part), kMost).count());
  };
  json.key("lateness_ms").begin_object().key("p50").number(quantile(0.5));
  json.key("p99").number(quantile(0.99)).end_object();
  json.key("waiters").number(waiters);
}

void write_settings(json::Writer& json, const EffectiveSettings& settings) {
  const auto retention = [&json](std::string_view name, const Retention& value) {
    json.key(name).begin_object().key("time").text(format_duration(value.time));
    json.key("count").number(uint64_t{value.count}).end_object();
  };
  json.key("attempts").number(uint64_t{settings.retry.attempts});
  json.key("backoff")
      .text(format_backoff(settings.retry.backoff))
      .key("lease")
      .text(format_duration(settings.lease));
  retention("keep_done", settings.keep_done);
  retention("keep_dead", settings.keep_dead);
  json.key("rate").begin_object().key("count").number(uint64_t{settings.rate.count});
  json.key("per").text(format_duration(settings.rate.per)).end_object();
  json.key("concurrency").number(uint64_t{settings.concurrency}).key("paused").boolean(settings.paused);
  json.key("priority").number(uint64_t{settings.priority}).key("delivery").text(name_of(settings.delivery));
  json.key("callback").text(settings.callback).key("callback_method").text(settings.callback_method);
  json.key("callback_timeout").text(format_duration(settings.callback_timeout));
  json.key("callback_format").text(name_of(settings.callback_format));
  // The number of secrets, never the secrets.
  json.key("callback_secret_count").number(uint64_t{settings.callback_secrets.size()});
  json.key("redis_key").text(settings.redis_key).key("redis_content").text(name_of(settings.redis_content));
  json.key("redis_maxlen").number(settings.redis_maxlen);
}

}  // namespace

// ---- what requests have

void read_job(Fields& fields, PushRequest& job) {
  if (const auto id = fields.text("id")) {
    if (job.id && *job.id != *id) fields.note("id", "is another one than that of the path");
    job.id = *id;
  }
  if (const auto group = fields.text("group")) job.group = *group;
  job.delay = fields.duration("delay");
  job.at = fields.moment("at");
  job.priority = fields.small_number("priority");
  job.options.attempts = fields.small_number("attempts");
  job.options.backoff = fields.backoff("backoff");
  job.options.lease = fields.duration("lease");
  if (const auto callback = fields.text("callback")) job.options.callback = *callback;
  if (const auto method = fields.text("callback_method")) job.options.method = *method;
  job.options.format = read_format(fields);
  if (const auto unique = fields.boolean("unique")) job.unique_across_topics = *unique;
  if (const auto conflict = read_on_conflict(fields)) job.on_conflict = *conflict;
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

void read_body(Fields& fields, PushRequest& job) {
  const auto body = fields.value("body");
  if (body) {
    job.body = body->text;
  } else {
    fields.note("body", "is missing; any JSON value is allowed");
  }
}

void write_receipt(json::Writer& json, std::string_view topic, const PushReceipt& receipt) {
  json.key("topic").text(topic).key("id").text(receipt.id).key("state").text(name_of(receipt.state));
  json.key("due_at").text(format_moment(receipt.due));
}

void write_result(json::Writer& json, std::string_view topic, const Result<PushReceipt>& result) {
  if (result.ok()) {
    write_receipt(json, topic, *result);
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
  json.key("commits").number(stats.usage.commits).end_object();
}

void write_job_body(json::Writer& json, const Job& job) {
  const std::string_view type =
      job.options.empty() ? std::string_view() : decode_job_options(job.options).content_type;
  if (type.empty()) return json::write_body_value(json, job.body);
  json.bytes("body", job.body);
  json.key("content_type").text(type);
}

void write_job(json::Writer& json, const Job& job, bool with_body) {
  json.begin_object().key("topic").text(job.topic).key("id").text(job.id).key("state").text(
      name_of(job.state));
  if (with_body) write_job_body(json, job);
  json.key("due_at").text(format_moment(job.due)).key("pushed_at").text(format_moment(job.pushed));
  json.key("attempts").number(uint64_t{job.attempts}).key("priority").number(uint64_t{job.priority});
  if (!job.group.empty()) json.key("group").text(job.group);
  if (job.state == JobState::kReserved) json.key("lease_until").text(format_moment(job.until));
  if (job.state == JobState::kDone || job.state == JobState::kDead)
    json.key("kept_until").text(format_moment(job.until));
  if (job.outlet == Outlet::kCallback) json.key("callback").text(decode_job_options(job.options).callback);
  if (!job.outcome.empty()) json.key("outcome").text(job.outcome);
  if (job.cancel_requested) json.key("cancel_requested").boolean(true);
  json.end_object();
}

void write_topic_stats(json::Writer& json, std::string_view topic, const TopicStats& stats) {
  json.begin_object().key("topic").text(topic);
  write_counts(json, stats.counts);
  write_tallies(json, stats.tallies, stats.lateness, stats.waiters);
  if (!stats.delivery_problem.empty()) json.key("delivery_problem").text(stats.delivery_problem);
  json.key("settings").begin_object();
  write_settings(json, stats.settings);
  json.end_object().end_object();
}

}  // namespace delayq::http
