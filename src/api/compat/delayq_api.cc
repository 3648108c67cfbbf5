// DelayQ: what its producers ask for, and the lists that it wanted to have.
#include "api/compat/delayq_api.h"

#include <array>

#include <fmt/format.h>

#include "api/compat/compat.h"
#include "api/only_result.h"
#include "core/job.h"
#include "core/moment.h"
#include "queue/job_options.h"

namespace delayq::compat {

namespace dq {

namespace {

using http::DialectCall;
using http::Exchange;
using http::Fields;

constexpr int64_t kDefaultTtr = 20;  // seconds, as in the original
constexpr std::string_view kBadRequest = "提交参数不正确！";

http::Response envelope(std::string_view code, std::string_view info, std::string_view data, int status) {
  std::string body;
  json::Writer json(body);
  json.begin_object().key("code").text(code).key("info").text(info).key("data").text(data).end_object();
  return answer(std::move(body), status);
}

Error no_such_job() { return {ErrorCode::kNotFound, {}, "任务不存在！", {}}; }

http::Response refusal(const Error& error, int status) {
  const int shown = status_of(error, status);
  return envelope("1", fmt::format("{}{}", shown == 200 ? kBadRequest : "请求被拒绝！", error.detail), "",
                  shown);
}

/// "retry": how long to wait after each failure, in seconds; one number, or several.
std::optional<Backoff> read_retry(Fields& fields) {
  const std::optional<json::Slice> value = fields.value("retry");
  if (!value || value->type == json::Type::kNull) return std::nullopt;
  std::vector<json::Slice> waits{*value};
  if (value->type == json::Type::kArray) waits = json::items_of(*value);
  StepBackoff steps;
  for (const json::Slice& wait : waits) {
    const Result<uint64_t> seconds = json::whole_number_of(wait);
    constexpr auto kMost = std::chrono::duration_cast<std::chrono::seconds>(Limits::kMaxDelay);
    if (wait.type != json::Type::kNumber || !seconds.ok() ||
        *seconds > static_cast<uint64_t>(kMost.count())) {
      fields.note("retry", "expected a number of seconds, or an array of such numbers");
      return std::nullopt;
    }
    steps.steps.emplace_back(std::chrono::seconds{*seconds});
  }
  return steps;
}

/// Everything that an add says. Texts live in `fields`.
Status read_new_job(Fields& fields, PushRequest& job) {
  job.id = fields.text("jobid").value_or(std::string_view());
  job.options.name = fields.text("name").value_or(std::string_view());
  job.topic = fields.text("topic").value_or(std::string_view());
  job.body = fields.text("data").value_or(std::string_view());
  const int64_t exectime = fields.integer("exectime").value_or(0);
  const int64_t ttr = fields.integer("ttr").value_or(0);
  job.options.attempts = fields.small_number("maxtryes");
  job.options.backoff = read_retry(fields);
  if (!fields.problem().ok()) return fields.problem();
  if (job.id->empty() || job.topic.empty()) return invalid("jobid, topic 必须填写！");
  constexpr int64_t kLatest = std::numeric_limits<int64_t>::max() / 1'000 - 1;
  if (exectime < 0 || exectime > kLatest)
    return invalid("exectime", "exectime: expected Unix seconds, or 0 for now");
  if (exectime > 0) job.at = Moment{std::chrono::seconds{exectime}};
  constexpr auto kLongest = std::chrono::duration_cast<std::chrono::seconds>(Limits::kMaxLease).count();
  if (ttr > kLongest) return invalid("ttr", fmt::format("ttr: at most {} seconds", kLongest));
  job.options.lease = std::chrono::seconds{ttr <= 0 ? kDefaultTtr : ttr};
  return check_topic(job.topic);
}

Status add(const DialectCall& call) {
  Result<Fields> fields = call.fields();
  if (!fields.ok()) return fields.error();
  PushRequest job;
  if (Status status = read_new_job(*fields, job); !status.ok()) return status;
  if (Status status = call.check(only(Scope::kPush), job.topic); !status.ok()) return status;
  job.unique_across_topics = call.may_ask_for_unique();  // since it is looked up and finished by its id alone
  const Exchange exchange = call.accept();
  std::string options;
  encode_job_options(job.options, options);
  exchange.queue().push(
      exchange.now(), {&job, 1},
      [exchange, topic = std::string(job.topic), body = std::string(job.body),
       options = std::move(options)](const Result<PushReport>& report) {
        const Result<PushReceipt> receipt = api::only_result(report);
        if (!receipt.ok()) {
          const bool is_taken = receipt.error().code == ErrorCode::kConflict;
          return exchange.refuse(
              receipt.error(),
              failure(is_taken ? "提交参数不正确！当前任务id已经存在，不允许重复添加！" : kBadRequest,
                      receipt.error()));
        }
        Job added;
        added.topic = topic;
        added.id = receipt->id;
        added.body = body;
        added.options = options;
        added.state = receipt->state;
        added.due = receipt->due;
        added.pushed = exchange.now();
        exchange.send(success("添加任务成功！", job_text(added, exchange.queue())));
      });
  return {};
}

Status info(const DialectCall& call) {
  return find_by_id(call, {"获取任务信息出错！", [](const Exchange& exchange, const FoundJob& found) {
                             exchange.send(success("获取任务成功！", job_text(found.job, exchange.queue())));
                           }});
}

Status remove(const DialectCall& call) {
  return find_by_id(
      call, {"删除任务出错！", [](const Exchange& exchange, const FoundJob& found) {
               if (!is_live(found.job.state)) {
                 const Error missing = no_such_job();
                 return exchange.refuse(missing, failure("删除任务出错！", missing));
               }
               const JobRef job{found.job.topic, found.job.id};
               exchange.queue().cancel(
                   exchange.now(), {&job, 1},
                   [exchange](const Result<std::vector<Result<CancelOutcome>>>& results) {
                     const Result<CancelOutcome> outcome = api::only_result(results);
                     if (!outcome.ok())
                       return exchange.refuse(outcome.error(), failure("删除任务出错！", outcome.error()));
                     const bool is_running = *outcome == CancelOutcome::kReserved;
                     exchange.send(
                         success(is_running ? "删除任务成功！任务正在执行，不再重试" : "删除任务成功！", ""));
                   });
             }});
}

/// The lists that the original's users were promised: every state has one, the fail pool and the finish pool
/// among them.
Status list(const DialectCall& call) {
  Result<Fields> fields = call.fields();
  if (!fields.ok()) return fields.error();
  ListRequest request;
  request.topic = fields->text("topic").value_or(std::string_view());
  const std::optional<uint64_t> state = fields->number("state");
  request.limit = fields->small_number("limit").value_or(100);
  request.cursor = fields->text("cursor").value_or(std::string_view());
  request.with_bodies = true;
  if (!fields->problem().ok()) return fields->problem();
  if (!state || *state >= kJobStateCount)
    return invalid("state", "state: expected 0 (delay), 1 (ready), 2 (reserve), 3 (finish) or 4 (fail)");
  request.state = static_cast<JobState>(*state);
  if (Status status = check_topic(request.topic); !status.ok()) return status;
  if (Status status = call.check(only(Scope::kRead), request.topic); !status.ok()) return status;
  const Exchange exchange = call.accept();
  exchange.queue().list(exchange.now(), request, [exchange](const Result<JobPage>& page) {
    if (!page.ok()) return exchange.refuse(page.error(), failure("获取任务列表出错！", page.error()));
    std::string data;
    json::Writer json(data);
    json.begin_object().key("jobs").begin_array();
    for (const Job& job : page->jobs) write_job(json, job, exchange.queue());
    json.end_array().key("cursor").text(page->cursor).end_object();
    exchange.send(success("获取任务列表成功！", data));
  });
  return {};
}

Status ping(const DialectCall& call) {
  const Exchange exchange = call.accept();
  exchange.queue().ready(exchange.now(), [exchange](const Status& status) {
    // "2019-07-28 23:03:36", in UTC.
    std::string time = format_moment(exchange.now()).substr(0, 19);
    if (time.size() > 10) time[10] = ' ';
    if (!status.ok())
      return exchange.refuse(status.error(), failure(time + "当前状态出错！", status.error()));
    exchange.send(success(time + "当前状态正常！", "PONG"));
  });
  return {};
}

constexpr Scopes kPushing = only(Scope::kPush);
constexpr Scopes kConsuming = only(Scope::kConsume);
constexpr Scopes kReading = only(Scope::kRead);
constexpr Scopes kForEverybody = 0;

constexpr std::array kRoutes{
    http::Dialect::Route{"GET", "/delayq/ping", &ping, kForEverybody},
    http::Dialect::Route{"POST", "/delayq/ping", &ping, kForEverybody},
    http::Dialect::Route{"POST", "/delayq/job/add", &add, kPushing},
    http::Dialect::Route{"POST", "/delayq/job/info", &info, kAnyScope},
    http::Dialect::Route{"GET", "/delayq/job/info", &info, kAnyScope},
    http::Dialect::Route{"POST", "/delayq/job/pop", &pop, kConsuming},
    http::Dialect::Route{"POST", "/delayq/job/bpop", &pop_waiting, kConsuming, true},
    http::Dialect::Route{"POST", "/delayq/job/finish", &finish, kConsuming},
    http::Dialect::Route{"POST", "/delayq/job/remove", &remove, kPushing},
    http::Dialect::Route{"POST", "/delayq/job/list", &list, kReading},
    http::Dialect::Route{"GET", "/delayq/job/list", &list, kReading},
};

}  // namespace

http::Response success(std::string_view info, std::string_view data) {
  return envelope("0", info, data, 200);
}

http::Response failure(std::string_view what, const Error& error) {
  return envelope("1", fmt::format("{}{}", what, error.detail), "", status_of(error, 0));
}

void write_job(json::Writer& json, const Job& job, const Queue& queue) {
  const JobOptions options = decode_job_options(job.options);
  const Millis lease = options.lease ? *options.lease : queue.effective_settings(job.topic).lease;
  json.begin_object().key("jobid").text(job.id).key("name").text(options.name).key("topic").text(job.topic);
  json.bytes("data", job.body);
  json.key("addtime").number(to_unix_seconds(job.pushed)).key("exectime").number(to_unix_seconds(job.due));
  json.key("tryes").number(uint64_t{job.attempts});
  json.key("ttr").number(int64_t{std::chrono::ceil<std::chrono::seconds>(lease).count()});
  json.key("state").number(static_cast<uint64_t>(job.state));
  if (!job.outcome.empty()) json.key("error").text(job.outcome);
  json.end_object();
}

std::string job_text(const Job& job, const Queue& queue) {
  std::string text;
  json::Writer json(text);
  write_job(json, job, queue);
  return text;
}

Status find_by_id(const DialectCall& call, const ById& what) {
  Result<Fields> fields = call.fields();
  if (!fields.ok()) return fields.error();
  const std::string_view id = fields->text("jobid").value_or(std::string_view());
  if (!fields->problem().ok()) return fields->problem();
  if (id.empty()) return invalid("jobid", "缺少参数jobid");
  if (Status status = check_id(id); !status.ok()) return invalid("jobid", "job" + status.error().detail);
  const Exchange exchange = call.accept();
  exchange.find_kept_too(id, [exchange, what](const Result<std::optional<FoundJob>>& found) {
    if (!found.ok()) return exchange.refuse(found.error(), failure(what.failed, found.error()));
    if (!*found) {
      const Error missing = no_such_job();
      return exchange.refuse(missing, failure(what.failed, missing));
    }
    what.then(exchange, **found);
  });
  return {};
}

}  // namespace dq

const http::Dialect& delayq() {
  static constexpr http::Dialect kDialect{"/delayq", dq::kRoutes, &dq::refusal};
  return kDialect;
}

}  // namespace delayq::compat
