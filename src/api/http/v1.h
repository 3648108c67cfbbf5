#pragma once

#include <string_view>

#include "api/http/dialect.h"

namespace delayq::http {

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
