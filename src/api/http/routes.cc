// Every call of HTTP v1.
#include <array>

#include "api/http/v1.h"

namespace delayq::http {

namespace {

using api::AnswerKind;
using api::Reach;
using Route = Dialect::Route;
using namespace v1_calls;

constexpr Scopes kPushing = only(Scope::kPush);
constexpr Scopes kConsuming = only(Scope::kConsume);
constexpr Scopes kReading = only(Scope::kRead);
constexpr Scopes kScheduling = only(Scope::kSchedule);
constexpr Scopes kLookingAtSchedules = Scope::kRead | Scope::kSchedule;
constexpr Scopes kOperating = only(Scope::kAdmin);
constexpr Scopes kOpenToAll = 0;

constexpr std::array kRoutes{
    Route{"POST", "/v1/topics/{topic}/jobs", &push, kPushing, Reach::kTopic},
    Route{"GET", "/v1/topics/{topic}/jobs", &list, kReading, Reach::kTopic, AnswerKind::kJobs},
    Route{"PUT", "/v1/topics/{topic}/jobs/{id}", &push_as, kPushing, Reach::kTopic},
    Route{"GET", "/v1/topics/{topic}/jobs/{id}", &get, kAnyScope, Reach::kTopic, AnswerKind::kJob},
    Route{"DELETE", "/v1/topics/{topic}/jobs/{id}", &cancel, kPushing, Reach::kTopic},
    Route{"PATCH", "/v1/topics/{topic}/jobs/{id}", &reschedule, kPushing, Reach::kTopic},
    // Most of what it may answer is counted when its jobs have arrived, as a part of the request (kept()):
    // a client could make the server reserve it with a head alone.
    Route{"POST", "/v1/jobs", &push_many, kPushing, Reach::kNone, AnswerKind::kShort, Flow::kInPieces},
    Route{"GET", "/v1/jobs/{id}", &find, kAnyScope, Reach::kNone, AnswerKind::kJob},
    Route{"DELETE", "/v1/groups/{group}", &cancel_group, kPushing, Reach::kNone},
    Route{"POST", "/v1/topics/{topic}/pop", &pop_topic, kConsuming, Reach::kTopic, {}, Flow::kMayWait},
    Route{"POST", "/v1/pop", &pop, kConsuming, Reach::kNone, {}, Flow::kMayWait},
    Route{"POST", "/v1/ack", &ack, kConsuming, Reach::kNone},
    Route{"POST", "/v1/nack", &nack, kConsuming, Reach::kNone},
    Route{"POST", "/v1/extend", &extend, kConsuming, Reach::kNone},
    Route{"GET", "/v1/topics", &topics, kAnyScope, Reach::kNone, AnswerKind::kNames},
    Route{"GET", "/v1/topics/{topic}", &topic, kAnyScope, Reach::kTopic},
    Route{"PATCH", "/v1/topics/{topic}", &change_settings, kOperating, Reach::kTopic},
    Route{"DELETE", "/v1/topics/{topic}", &purge, kOperating, Reach::kTopic},
    Route{"POST", "/v1/topics/{topic}/pause", &pause, kOperating, Reach::kTopic},
    Route{"POST", "/v1/topics/{topic}/resume", &resume, kOperating, Reach::kTopic},
    Route{"POST", "/v1/topics/{topic}/forget", &forget, kOperating, Reach::kTopic},
    Route{"POST", "/v1/topics/{topic}/redrive", &redrive, kOperating, Reach::kTopic},
    // The topic of a schedule is in its definition: the calls themselves check it.
    Route{"GET", "/v1/schedules", &list_schedules, kLookingAtSchedules, Reach::kNone, AnswerKind::kJobs},
    Route{"GET", "/v1/schedules/preview", &preview_schedule, kLookingAtSchedules, Reach::kNone,
          AnswerKind::kNames},
    Route{"PUT", "/v1/schedules/{name}", &set_schedule, kScheduling, Reach::kNone, AnswerKind::kJob},
    Route{"GET", "/v1/schedules/{name}", &get_schedule, kLookingAtSchedules, Reach::kNone, AnswerKind::kJob},
    Route{"DELETE", "/v1/schedules/{name}", &remove_schedule, kScheduling, Reach::kNone},
    Route{"POST", "/v1/schedules/{name}/pause", &pause_schedule, kScheduling, Reach::kNone, AnswerKind::kJob},
    Route{"POST", "/v1/schedules/{name}/resume", &resume_schedule, kScheduling, Reach::kNone,
          AnswerKind::kJob},
    Route{"POST", "/v1/schedules/{name}/run", &run_schedule, kScheduling, Reach::kNone},
    Route{"GET", "/v1/forecast", &forecast, kReading, Reach::kNone},
    Route{"GET", "/v1/stats", &totals, kAnyScope, Reach::kAll},
    Route{"GET", "/v1/consumers", &consumers, kReading, Reach::kAll, AnswerKind::kNames},
    Route{"GET", "/v1/callbacks", &callbacks, kReading, Reach::kAll, AnswerKind::kNames},
    Route{"GET", "/v1/server", &about_server, kAnyScope, Reach::kNone},
    Route{"GET", "/v1/export", &export_page, kOperating, Reach::kAll, AnswerKind::kJobs},
    Route{"POST", "/v1/import", &import_lines, kOperating, Reach::kAll},
    Route{"POST", "/v1/backups", &backup, kOperating, Reach::kAll},
    Route{"GET", "/healthz", &health, kOpenToAll, Reach::kNone},
    Route{"GET", "/readyz", &readiness, kOpenToAll, Reach::kNone},
    Route{"GET", "/v1/events", &events, kReading, Reach::kNone},
    Route{"GET", "/metrics", &metrics, kReading, Reach::kAll, AnswerKind::kNames},
    Route{"GET", "/openapi.yaml", &openapi, kAnyScope, Reach::kNone},
};

Response refusal(const Error& error, int status) {
  Response response;
  response.content_type = "application/problem+json";
  response.status = status != 0 ? status : traits_of(error.code).http_status;
  json::Writer json(response.body);
  write_problem_document(json, error, response.status);
  return response;
}

}  // namespace

const Dialect& v1() {
  static constexpr Dialect kDialect{"", kRoutes, &refusal};
  return kDialect;
}

}  // namespace delayq::http
