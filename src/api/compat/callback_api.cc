// delay_queue_callback: jobs that are called back at their time, by PUT, until the answer is "ok".
#include <array>

#include <fmt/format.h>

#include "api/compat/compat.h"
#include "api/verbs.h"
#include "core/job.h"
#include "json/writer.h"

namespace delayq::compat {

namespace {

using api::AnswerKind;
using api::Reach;
using http::Call;
using http::Fields;
using http::Responder;
using Route = http::Dialect::Route;

constexpr uint32_t kAttempts = 3;  // the default of the original's configuration

http::Response envelope(bool success, std::string_view message, std::string_view data, int status = 200) {
  std::string body;
  json::Writer json(body);
  json.begin_object().key("success").number(uint64_t{success}).key("message").text(message);
  json.key("data").raw(data).end_object();
  return answer(std::move(body), status);
}

/// The text of the original, and what exactly is wrong.
http::Response failure(std::string_view what, const Error& error) {
  return envelope(false, fmt::format("{}: {}", what, error.detail), "null", status_of(error, 0));
}

http::Response refusal(const Error& error, int status) {
  const int shown = status_of(error, status);
  const std::string_view what = shown == 200   ? "参数不正确"
                                : shown == 405 ? "不存在的请求方法"
                                               : "请求被拒绝";
  return envelope(false, fmt::format("{}: {}", what, error.detail), "null", shown);
}

/// How a job of this API is delivered: all that makes it different from any other job.
void set_delivery(const Queue& queue, PushRequest& job, std::string_view callback) {
  job.options.callback = callback;
  job.options.method = "PUT";  // whatever the topic's other callbacks use
  job.options.format = CallbackFormat::kCallbackApi;
  // Attempts that an operator has configured are for these jobs, too.
  const bool is_said = queue.settings(job.topic).attempts || queue.settings(kDefaultsName).attempts ||
                       queue.effective_settings(job.topic).attempts != EffectiveSettings{}.attempts;
  if (!is_said) job.options.attempts = kAttempts;
}

Status add(const Call& call) {
  Result<Fields> fields = call.fields();
  if (!fields.ok()) return fields.error();
  PushRequest job;
  job.id = fields->text("id").value_or(std::string_view());
  const int64_t delay = fields->integer("delay").value_or(0);
  const std::string_view callback = fields->text("callback").value_or(std::string_view());
  job.topic = fields->text("topic").value_or(std::string_view());
  const std::optional<json::Slice> body = fields->value("body");
  job.body = body ? body->text : "null";
  if (!fields->problem().ok()) return fields->problem();
  if (job.id->empty()) return invalid("id", "不合法的JOBID (id)");
  if (delay <= 0) return invalid("delay", "执行时间不合法 (delay)");
  if (callback.empty()) return invalid("callback", "未填写回调URL (callback)");
  if (job.topic.empty()) return invalid("topic", "工作类型不能为空 (topic)");
  if (delay > std::chrono::duration_cast<std::chrono::seconds>(Limits::kMaxDelay).count())
    return invalid("delay", "执行时间不合法 (delay): at most 100 years");
  job.delay = std::chrono::seconds{delay};
  if (Status status = check_topic(job.topic); !status.ok()) return status;
  if (Status status = call.check(only(Scope::kPush), job.topic); !status.ok()) return status;
  const Responder responder = call.accept_steps();
  set_delivery(responder.queue(), job, callback);
  responder.queue().push(responder.now(), {&job, 1}, [responder](const Result<PushReport>& report) {
    const Result<PushReceipt> receipt = api::only_result(report);
    if (!receipt.ok()) return responder.refuse(receipt.error(), failure("加入工作队列失败", receipt.error()));
    responder.send(envelope(true, "添加新任务成功", "null"));
  });
  return {};
}

/// Reads the job that get and remove name; its texts live in `fields`.
Result<JobRef> job_of(const Call& call, Fields& fields, Scopes scopes) {
  const JobRef job{fields.text("topic").value_or(std::string_view()),
                   fields.text("id").value_or(std::string_view())};
  if (!fields.problem().ok()) return fields.problem().error();
  if (job.id.empty()) return invalid("id", "jobID参数缺失 (id)");
  if (job.topic.empty()) return invalid("topic", "topic参数缺失 (topic)");
  if (Status status = check_topic(job.topic); !status.ok()) return status.error();
  if (Status status = call.check(scopes, job.topic); !status.ok()) return status.error();
  return job;
}

/// The members of the document's example: without the callback, which is only in the document's table.
std::string described(const Job& job) {
  std::string data;
  json::Writer json(data);
  json.begin_object().key("topic").text(job.topic).key("id").text(job.id);
  json.key("delay").number(delay_seconds(job));
  json::write_body_value(json, job.body);
  json.key("job_sign").text(fmt::format("{}-{}", job.topic, job.id)).end_object();
  return data;
}

Status get(const Call& call) {
  Result<Fields> fields = call.fields();
  if (!fields.ok()) return fields.error();
  const Result<JobRef> job = job_of(call, *fields, kAnyScope);
  if (!job.ok()) return job.error();
  const Responder responder = call.accept_steps();
  responder.queue().get(responder.now(), *job, [responder](const Result<std::optional<FoundJob>>& found) {
    constexpr std::string_view kFailed = "获取job信息失败";
    if (!found.ok()) return responder.refuse(found.error(), failure(kFailed, found.error()));
    // The original forgets a job when it is done or dead.
    if (!*found || !is_live((*found)->job.state)) {
      const Error missing{ErrorCode::kNotFound, {}, "there is no such job", {}};
      return responder.refuse(missing, failure(kFailed, missing));
    }
    responder.send(envelope(true, "添加新任务成功", described((*found)->job)));  // the document says so
  });
  return {};
}

Status remove(const Call& call) {
  Result<Fields> fields = call.fields();
  if (!fields.ok()) return fields.error();
  const Result<JobRef> job = job_of(call, *fields, only(Scope::kPush));
  if (!job.ok()) return job.error();
  const Responder responder = call.accept_steps();
  responder.queue().cancel(
      responder.now(), {&*job, 1}, [responder](const Result<std::vector<Result<CancelOutcome>>>& results) {
        const Result<CancelOutcome> outcome = api::only_result(results);
        if (!outcome.ok()) return responder.refuse(outcome.error(), failure("删除job失败", outcome.error()));
        responder.send(envelope(true, "删除job成功", "null"));
      });
  return {};
}

constexpr std::array kRoutes{
    Route{"POST", "/job", &add, only(Scope::kPush)},
    Route{"GET", "/job", &get, kAnyScope, Reach::kNone, AnswerKind::kJob},
    Route{"DELETE", "/job", &remove, only(Scope::kPush)},
};

}  // namespace

const http::Dialect& callback() {
  static constexpr http::Dialect kDialect{"/job", kRoutes, &refusal};
  return kDialect;
}

}  // namespace delayq::compat
