#include "api/transfer/line.h"
#include "core/duration.h"
#include "core/moment.h"
#include "json/body.h"
#include "json/writer.h"

namespace delayq::transfer {

namespace {

void write_options(json::Writer& json, const JobOptions& options) {
  if (options.attempts) json.key("max_attempts").number(uint64_t{*options.attempts});
  if (options.backoff) json.key("backoff").text(format_backoff(*options.backoff));
  if (options.lease) json.key("lease").text(format_duration(*options.lease));
  if (!options.callback.empty()) json.key("callback").text(options.callback);
  if (!options.method.empty()) json.key("callback_method").text(options.method);
  if (options.format) json.key("callback_format").text(name_of(*options.format));
  if (!options.content_type.empty()) json.key("content_type").text(options.content_type);
  if (!options.name.empty()) json.key("name").text(options.name);
}

void write_retention(json::Writer& json, std::string_view name, const RetentionSetting& retention) {
  if (retention.says_nothing()) return;
  json.key(name).begin_object();
  if (retention.time) json.key("time").text(format_duration(*retention.time));
  if (retention.count) json.key("count").number(uint64_t{*retention.count});
  json.end_object();
}

void write_settings(json::Writer& json, const Settings& settings) {
  json.key("settings").begin_object();
  if (settings.attempts) json.key("attempts").number(uint64_t{*settings.attempts});
  if (settings.backoff) json.key("backoff").text(format_backoff(*settings.backoff));
  if (settings.lease) json.key("lease").text(format_duration(*settings.lease));
  write_retention(json, "keep_done", settings.keep_done);
  write_retention(json, "keep_dead", settings.keep_dead);
  if (settings.rate) {
    json.key("rate").begin_object().key("count").number(uint64_t{settings.rate->count});
    json.key("per").text(format_duration(settings.rate->per)).end_object();
  }
  if (settings.concurrency) json.key("concurrency").number(uint64_t{*settings.concurrency});
  if (settings.paused) json.key("paused").boolean(*settings.paused);
  if (settings.priority) json.key("priority").number(uint64_t{*settings.priority});
  if (settings.delivery) json.key("delivery").text(name_of(*settings.delivery));
  if (settings.callback) json.key("callback").text(*settings.callback);
  if (settings.callback_method) json.key("callback_method").text(*settings.callback_method);
  if (settings.callback_timeout)
    json.key("callback_timeout").text(format_duration(*settings.callback_timeout));
  if (settings.callback_format) json.key("callback_format").text(name_of(*settings.callback_format));
  if (settings.redis_key) json.key("redis_key").text(*settings.redis_key);
  if (settings.redis_content) json.key("redis_content").text(name_of(*settings.redis_content));
  if (settings.redis_maxlen) json.key("redis_maxlen").number(*settings.redis_maxlen);
  // Secrets stay where they are: an export is a file that is handed around.
  json.end_object();
}

void write_job(json::Writer& json, const Job& job) {
  json.key("id").text(job.id).key("state").text(name_of(job.state));
  json.key("due_at").text(format_moment(job.due)).key("pushed_at").text(format_moment(job.pushed));
  json.key("attempts").number(uint64_t{job.attempts}).key("priority").number(uint64_t{job.priority});
  if (!job.group.empty()) json.key("group").text(job.group);
  json::write_body(json, job.body);
  if (!job.options.empty()) write_options(json, decode_job_options(job.options));
  if (!job.outcome.empty()) json.bytes("outcome", job.outcome);
  if (!is_live(job.state)) json.key("kept_until").text(format_moment(job.until));
  if (job.cancel_requested) json.key("cancel_requested").boolean(true);
}

}  // namespace

void write_line(std::string& out, const ExportItem& item) {
  json::Writer json(out);
  json.begin_object().key("topic").text(item.job.topic);
  if (item.settings) {
    write_settings(json, *item.settings);
  } else if (item.job.id.empty()) {  // not to be hidden; reading it back is refused
    json.key("state").text(name_of(item.job.state)).key("damaged").text(item.job.outcome);
  } else {
    write_job(json, item.job);
  }
  json.end_object();
  out += '\n';
}

}  // namespace delayq::transfer
