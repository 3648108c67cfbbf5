// go-delay-queue: a job is addressed by its id alone, and its body is a text.
#include <array>
#include <limits>

#include <fmt/format.h>

#include "api/compat/compat.h"
#include "api/verbs.h"
#include "core/job.h"

namespace delayq::compat {

namespace {

using api::AnswerKind;
using api::Reach;
using http::Call;
using http::Fields;
using http::Responder;
using Route = http::Dialect::Route;

/// The original's codes and their messages. Errors that it does not have get their HTTP status as the code.
enum class Code : uint16_t {
  kOk = 0,
  kBadRequest = 400,
  kDelayOutOfRange = 10001,
  kNotAdded = 10002,
  kNotRemoved = 10003,
  kNotFound = 10004,
};

std::string_view text_of(Code code) {
  switch (code) {
    case Code::kOk:
      return "操作成功";
    case Code::kBadRequest:
      return "参数错误";
    case Code::kDelayOutOfRange:
      return "delay 取值范围1 - (2^31 - 1)";
    case Code::kNotAdded:
      return "添加job失败";
    case Code::kNotRemoved:
      return "删除job失败";
    case Code::kNotFound:
      return "未查询到job";
  }
  return "请求被拒绝";
}

std::string envelope(Code code, std::string_view message, std::string_view data) {
  std::string body;
  json::Writer json(body);
  json.begin_object().key("code").number(static_cast<uint64_t>(code)).key("message").text(message);
  json.key("data").raw(data).end_object();
  return body;
}

http::Response success(std::string_view data) {
  return answer(envelope(Code::kOk, text_of(Code::kOk), data));
}

/// The code is `otherwise` unless the request itself was wrong.
http::Response failure(const Error& error, Code otherwise) {
  const bool is_bad = error.code == ErrorCode::kInvalid || error.code == ErrorCode::kTooLarge;
  const Code code = is_bad ? Code::kBadRequest : otherwise;
  return answer(envelope(code, fmt::format("{}: {}", text_of(code), error.detail), "null"),
                status_of(error, 0));
}

http::Response refusal(const Error& error, int status) {
  const int shown = status_of(error, status);
  const auto code = shown == 200 ? Code::kBadRequest : static_cast<Code>(shown);
  return answer(envelope(code, fmt::format("{}: {}", text_of(code), error.detail), "null"), shown);
}

Status add(const Call& call) {
  constexpr int64_t kLongestDelay = std::numeric_limits<int32_t>::max();
  Result<Fields> fields = call.fields();
  if (!fields.ok()) return fields.error();
  PushRequest job;
  job.topic = fields->text("topic").value_or(std::string_view());
  if (const auto id = fields->text("id"); id && !id->empty()) job.id = *id;
  const std::optional<int64_t> delay = fields->integer("delay");
  job.body = fields->text("body").value_or(std::string_view());
  job.unique_across_topics = call.check_unique().ok();  // since it is looked up and removed by its id alone
  if (!fields->problem().ok()) return fields->problem();
  if (!delay) return invalid("delay", "delay: is missing; a number of seconds");
  if (*delay < 1 || *delay > kLongestDelay) {
    const Code code = Code::kDelayOutOfRange;
    call.accept_steps().refuse(invalid("delay"), answer(envelope(code, text_of(code), "null")));
    return {};
  }
  job.delay = std::chrono::seconds{*delay};
  if (Status status = check_topic(job.topic); !status.ok()) return status;
  if (Status status = call.check(only(Scope::kPush), job.topic); !status.ok()) return status;
  const Responder responder = call.accept_steps();
  responder.queue().push(responder.now(), {&job, 1}, [responder](const Result<PushReport>& report) {
    const Result<PushReceipt> receipt = api::only_result(report);
    if (!receipt.ok()) return responder.refuse(receipt.error(), failure(receipt.error(), Code::kNotAdded));
    std::string data;
    json::Writer(data).begin_object().key("job_id").text(receipt->id).end_object();
    responder.send(success(data));
  });
  return {};
}

/// The only field of get and remove.
Result<std::string> job_id_of(const Call& call) {
  Result<Fields> fields = call.fields();
  if (!fields.ok()) return fields.error();
  std::string id(fields->text("job_id").value_or(std::string_view()));
  if (!fields->problem().ok()) return fields->problem().error();
  if (Status status = check_id(id); !status.ok()) return invalid("job_id", "job_" + status.error().detail);
  return id;
}

void remove_found(const Responder& responder, const Job& job) {
  const auto refuse = [responder](const Error& error) {
    responder.refuse(error, failure(error, Code::kNotRemoved));
  };
  const JobRef name{job.topic, job.id};
  responder.queue().cancel(responder.now(), {&name, 1},
                           [responder, refuse](const Result<std::vector<Result<CancelOutcome>>>& results) {
                             const Result<CancelOutcome> outcome = api::only_result(results);
                             if (!outcome.ok()) return refuse(outcome.error());
                             responder.send(success("null"));
                           });
}

Status remove(const Call& call) {
  const Result<std::string> id = job_id_of(call);
  if (!id.ok()) return id.error();
  const Responder responder = call.accept_steps();
  responder.find(*id, [responder](const Result<std::optional<FoundJob>>& found) {
    if (!found.ok()) return responder.refuse(found.error(), failure(found.error(), Code::kNotRemoved));
    if (!*found) return responder.send(success("null"));  // a job that does not exist counts as removed
    remove_found(responder, (*found)->job);
  });
  return {};
}

std::string described(const Job& job) {
  std::string data;
  json::Writer json(data);
  json.begin_object().key("topic").text(job.topic).key("id").text(job.id);
  json.key("exec_time").number(to_unix_seconds(job.due)).key("delay").number(delay_seconds(job));
  json.bytes("body", job.body).end_object();
  return data;
}

Status get(const Call& call) {
  const Result<std::string> id = job_id_of(call);
  if (!id.ok()) return id.error();
  const Responder responder = call.accept_steps();
  // A consumer has the id from the list of its topic, where the job was delivered to: it is done by then.
  responder.find_kept_too(*id, [responder](const Result<std::optional<FoundJob>>& found) {
    if (!found.ok()) return responder.refuse(found.error(), failure(found.error(), Code::kNotFound));
    if (!*found) return responder.send(success("null"));
    responder.send(success(described((*found)->job)));
  });
  return {};
}

constexpr std::array kRoutes{
    Route{"POST", "/delay-queue/api/jobs/add", &add, only(Scope::kPush)},
    Route{"POST", "/delay-queue/api/jobs/remove", &remove, only(Scope::kPush)},
    Route{"GET", "/delay-queue/api/jobs/remove", &remove, only(Scope::kPush)},
    Route{"POST", "/delay-queue/api/jobs/get", &get, kAnyScope, Reach::kNone, AnswerKind::kJob},
    Route{"GET", "/delay-queue/api/jobs/get", &get, kAnyScope, Reach::kNone, AnswerKind::kJob},
};

}  // namespace

const http::Dialect& go_delay_queue() {
  static constexpr http::Dialect kDialect{"/delay-queue", kRoutes, &refusal};
  return kDialect;
}

}  // namespace delayq::compat
