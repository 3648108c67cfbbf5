#pragma once

#include <optional>
#include <string_view>

#include "api/http/dialect.h"
#include "api/http/fields.h"
#include "json/writer.h"
#include "queue/settings_table.h"
#include "queue/verbs.h"

namespace delayq::http {

// The values that several calls of HTTP v1 read or write as JSON.

/// Reads everything about a job but its body and topic. If `job` already has an id, it is the one of the
/// path.
void read_job(Fields& fields, PushRequest& job);
/// Attempts, backoff, lease, the callback and the headers: of a job, or of the jobs that a schedule makes.
void read_options(Fields& fields, JobOptions& options);
/// "callback_format", where it is given.
std::optional<CallbackFormat> read_format(Fields& fields);
/// Takes the fields of all settings in the table.
SettingValues read_settings(Fields& fields, std::span<const Setting> rows);
/// The period of a rate must be in its range even if the count is 0, which means no limit.
Status check_rate_periods(const SettingValues& settings);
/// What to do with an id that exists, where it is given.
std::optional<OnConflict> read_on_conflict(Fields& fields);
/// The body of a job in a JSON request: any value, as it was written.
std::string_view read_body(Fields& fields);
/// The fields of a request that brings the body of a job. With JSON they are members of one object, and the
/// body is among them. With any other type, the request's body is the job's, and the fields are in the query;
/// the type becomes an option. The texts live as long as the fields and the request.
Result<Fields> fields_with_body(const Call& call, std::string_view& body, JobOptions& options);
/// "text/plain" of "Text/Plain; charset=utf-8".
std::string media_type(std::string_view content_type);

/// The members of the answer to a push.
void write_receipt(json::Writer& json, std::string_view topic, const PushReceipt& receipt);
/// The same, with what became of a push: created, replaced or kept.
void write_push_receipt(json::Writer& json, std::string_view topic, const PushReceipt& receipt);
/// A result among several: the members of the receipt, or of the problem.
void write_result(json::Writer& json, std::string_view topic, const Result<PushReceipt>& result);
/// A job's fields, as every answer with jobs shows them.
void write_job(json::Writer& json, const Job& job, bool with_body, std::string_view delivery_problem = {});
/// "body": a JSON value as it was written, other text as a string; otherwise "body_base64". Then "headers",
/// if the job has some.
void write_job_body(json::Writer& json, const Job& job);
void write_body(json::Writer& json, std::string_view body, std::string_view content_type);
/// "headers", as consumers see them; nothing without any.
void write_headers(json::Writer& json, std::string_view encoded);
/// "callback_header_names": the names alone, since the values are secrets; nothing without any.
void write_callback_header_names(json::Writer& json, const JobOptions& options);
/// What /v1/stats and /v1/topics show, and /v1/events when it changes.
void write_totals(json::Writer& json, const TotalStats& stats);
void write_topic(json::Writer& json, const TopicSummary& topic);
/// The same for one topic, with its settings.
void write_topic_stats(json::Writer& json, std::string_view topic, const TopicStats& stats);

/// HTTP v1: delayq's own API, which owns all paths that no other dialect owns. openapi.yaml describes what
/// each call takes and answers. A refusal is a problem document (RFC 9457).
const Dialect& v1();

/// The handlers of v1. routes.cc has the table: method, path, handler and permissions.
namespace v1_calls {

// ---- v1_jobs.cc: producers and consumers
Status push(const Call& call);
Status push_as(const Call& call);
Status push_many(const Call& call);
Status cancel(const Call& call);
Status cancel_group(const Call& call);
Status reschedule(const Call& call);
Status pop_topic(const Call& call);
Status pop(const Call& call);
Status ack(const Call& call);
Status nack(const Call& call);
Status extend(const Call& call);
Status get(const Call& call);
Status find(const Call& call);
Status list(const Call& call);

// ---- v1_topics.cc: topics, their figures and their settings
Status topics(const Call& call);
Status topic(const Call& call);
Status totals(const Call& call);
Status forecast(const Call& call);
Status events(const Call& call);
Status change_settings(const Call& call);
Status pause(const Call& call);
Status resume(const Call& call);
Status forget(const Call& call);
Status purge(const Call& call);
Status redrive(const Call& call);

// ---- v1_schedules.cc: schedules, which make jobs again and again
Status set_schedule(const Call& call);
Status get_schedule(const Call& call);
Status list_schedules(const Call& call);
Status preview_schedule(const Call& call);
Status remove_schedule(const Call& call);
Status pause_schedule(const Call& call);
Status resume_schedule(const Call& call);
Status run_schedule(const Call& call);

// ---- v1_server.cc: the server itself, and everything that it holds
Status health(const Call& call);
Status readiness(const Call& call);
Status metrics(const Call& call);
Status openapi(const Call& call);
Status about_server(const Call& call);
Status consumers(const Call& call);
Status callbacks(const Call& call);
Status export_page(const Call& call);
Status import_lines(const Call& call);
Status backup(const Call& call);

}  // namespace v1_calls

}  // namespace delayq::http

namespace delayq::embedded {

/// src/api/http/openapi.yaml, from which the reference page is made too.
std::string_view openapi_yaml();

}  // namespace delayq::embedded
