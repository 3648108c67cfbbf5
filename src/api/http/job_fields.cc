#include "api/http/job_fields.h"

#include "api/http/problem.h"
#include "core/moment.h"

namespace delayq::http {

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
    fields.note("body", "is missing; any JSON value will do");
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

}  // namespace delayq::http
