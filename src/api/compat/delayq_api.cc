// DelayQ: jobs that are added by producers, popped and finished by consumers, and listed by people. The API
// knows a job by its id alone: a pop leases it for its ttr, and finish acks it whichever consumer has it.
#include <array>

#include <fmt/format.h>

#include "api/compat/compat.h"
#include "api/verbs.h"
#include "core/job.h"
#include "core/moment.h"
#include "queue/job_options.h"

namespace delayq::compat {

namespace {

using api::AnswerKind;
using api::Reach;
using http::Call;
using http::Fields;
using http::Responder;
using Route = http::Dialect::Route;

constexpr int64_t kDefaultTtr = 20;  // seconds, as in the original
constexpr std::string_view kBadRequest = "提交参数不正确！";

/// Seconds, for a bpop without a timeout.
constexpr int64_t kDefaultWait = 30;
constexpr std::string_view kNotFinished = "标识完成任务出错！";

http::Response envelope(std::string_view code, std::string_view info, std::string_view data, int status) {
  std::string body;
  json::Writer json(body);
  json.begin_object().key("code").text(code).key("info").text(info).key("data").text(data).end_object();
  return answer(std::move(body), status);
}

/// {"code":"0","info":...,"data":...}; data is a text, which contains JSON where the answer has several
/// values.
http::Response success(std::string_view info, std::string_view data) {
  return envelope("0", info, data, 200);
}

/// The same with code "1" and no data. `what` is what the original says about the failure.
http::Response failure(std::string_view what, const Error& error) {
  return envelope("1", fmt::format("{}{}", what, error.detail), "", status_of(error, 0));
}

/// A job as the API shows it, as JSON. A job without a ttr of its own has the one of its topic.
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

Error no_such_job() { return {ErrorCode::kNotFound, {}, "任务不存在！", {}}; }

http::Response refusal(const Error& error, int status) {
  const int shown = status_of(error, status);
  return envelope("1", fmt::format("{}{}", shown == 200 ? kBadRequest : "请求被拒绝！", error.detail), "",
                  shown);
}

/// A request with a jobid alone. `then` is called when the job was found, in any state, and the caller may
/// use its topic.
struct ById {
  std::string_view failed;  ///< the message of a failure
  void (*then)(const Responder& responder, const FoundJob& found);
};
Status find_by_id(const Call& call, const ById& what) {
  Result<Fields> fields = call.fields();
  if (!fields.ok()) return fields.error();
  const std::string_view id = fields->text("jobid").value_or(std::string_view());
  if (!fields->problem().ok()) return fields->problem();
  if (id.empty()) return invalid("jobid", "缺少参数jobid");
  if (Status status = check_id(id); !status.ok()) return invalid("jobid", "job" + status.error().detail);
  const Responder responder = call.accept_steps();
  responder.find_kept_too(id, [responder, what](const Result<std::optional<FoundJob>>& found) {
    if (!found.ok()) return responder.refuse(found.error(), failure(what.failed, found.error()));
    if (!*found) {
      const Error missing = no_such_job();
      return responder.refuse(missing, failure(what.failed, missing));
    }
    what.then(responder, **found);
  });
  return {};
}

// ---- producers, and people

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

/// The fields of an add. Texts live in `fields`.
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

Status add(const Call& call) {
  Result<Fields> fields = call.fields();
  if (!fields.ok()) return fields.error();
  PushRequest job;
  if (Status status = read_new_job(*fields, job); !status.ok()) return status;
  if (Status status = call.check(only(Scope::kPush), job.topic); !status.ok()) return status;
  job.unique_across_topics = call.check_unique().ok();  // since it is looked up and finished by its id alone
  const Responder responder = call.accept_steps();
  std::string options;
  encode_job_options(job.options, options);
  responder.queue().push(
      responder.now(), {&job, 1},
      [responder, topic = std::string(job.topic), body = std::string(job.body),
       options = std::move(options)](const Result<PushReport>& report) {
        const Result<PushReceipt> receipt = api::only_result(report);
        if (!receipt.ok()) {
          const bool is_taken = receipt.error().code == ErrorCode::kConflict;
          return responder.refuse(
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
        added.pushed = responder.now();
        responder.send(success("添加任务成功！", job_text(added, responder.queue())));
      });
  return {};
}

Status info(const Call& call) {
  return find_by_id(call,
                    {"获取任务信息出错！", [](const Responder& responder, const FoundJob& found) {
                       responder.send(success("获取任务成功！", job_text(found.job, responder.queue())));
                     }});
}

Status remove(const Call& call) {
  return find_by_id(
      call, {"删除任务出错！", [](const Responder& responder, const FoundJob& found) {
               if (!is_live(found.job.state)) {
                 const Error missing = no_such_job();
                 return responder.refuse(missing, failure("删除任务出错！", missing));
               }
               const JobRef job{found.job.topic, found.job.id};
               responder.queue().cancel(
                   responder.now(), {&job, 1},
                   [responder](const Result<std::vector<Result<CancelOutcome>>>& results) {
                     const Result<CancelOutcome> outcome = api::only_result(results);
                     if (!outcome.ok())
                       return responder.refuse(outcome.error(), failure("删除任务出错！", outcome.error()));
                     const bool is_running = *outcome == CancelOutcome::kReserved;
                     responder.send(
                         success(is_running ? "删除任务成功！任务正在执行，不再重试" : "删除任务成功！", ""));
                   });
             }});
}

/// The lists that the original documents: one for each state, including the fail pool and the finish pool.
Status list(const Call& call) {
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
  const Responder responder = call.accept_steps();
  responder.queue().list(responder.now(), request, [responder](const Result<JobPage>& page) {
    if (!page.ok()) return responder.refuse(page.error(), failure("获取任务列表出错！", page.error()));
    std::string data;
    json::Writer json(data);
    json.begin_object().key("jobs").begin_array();
    for (const Job& job : page->jobs) write_job(json, job, responder.queue());
    json.end_array().key("cursor").text(page->cursor).end_object();
    responder.send(success("获取任务列表成功！", data));
  });
  return {};
}

Status ping(const Call& call) {
  const Responder responder = call.accept_steps();
  responder.queue().ready(responder.now(), [responder](const Status& status) {
    // "2019-07-28 23:03:36", in UTC.
    std::string time = format_moment(responder.now()).substr(0, 19);
    if (time.size() > 10) time[10] = ' ';
    if (!status.ok())
      return responder.refuse(status.error(), failure(time + "当前状态出错！", status.error()));
    responder.send(success(time + "当前状态正常！", "PONG"));
  });
  return {};
}

// ---- consumers

void answer_popped(const Responder& responder, const Result<PopAnswer>& popped) {
  if (!popped.ok()) return responder.refuse(popped.error(), failure("取任务出错！", popped.error()));
  if (!popped->jobs.empty())
    return responder.send(success("取出任务成功！", job_text(popped->jobs.front().job, responder.queue())));
  // Not a failure here, though the original calls it one.
  responder.send(failure("取任务出错,当前Topic下暂无Ready job！", {ErrorCode::kNotFound, {}, {}, {}}));
}

Status pop_for(const Call& call, bool waits) {
  Result<Fields> fields = call.fields();
  if (!fields.ok()) return fields.error();
  const std::string_view topic = fields->text("topic").value_or(std::string_view());
  const int64_t timeout = waits ? fields->integer("timeout").value_or(0) : 0;
  if (!fields->problem().ok()) return fields->problem();
  if (topic.empty()) return invalid("topic", "topic值不能为空");
  constexpr auto kLongest = std::chrono::duration_cast<std::chrono::seconds>(Limits::kMaxWait).count();
  if (timeout < 0 || timeout > kLongest)
    return invalid("timeout", fmt::format("timeout: expected a number of seconds, at most {}", kLongest));
  if (Status status = check_topic(topic); !status.ok()) return status;
  if (Status status = call.check(only(Scope::kConsume), topic); !status.ok()) return status;
  PopRequest request;
  request.topics = {&topic, 1};
  if (waits) request.wait = std::chrono::seconds{timeout == 0 ? kDefaultWait : timeout};
  const Responder responder = call.accept_steps();
  responder.pop(request, [responder](const Result<PopAnswer>& popped) { answer_popped(responder, popped); });
  return {};
}

void answer_finished(const Responder& responder, const Status& status) {
  if (!status.ok()) return responder.refuse(status.error(), failure(kNotFinished, status.error()));
  responder.send(success("标识完成任务成功！", ""));
}

/// The original finishes a job in any state: one that waits, or is in the fail pool, goes to the finish pool
/// and is not delivered any more.
void finish_untaken(const Responder& responder, const Job& job) {
  const Retention& keep = responder.queue().effective_settings(job.topic).keep_done;
  const Keep kept = keep_from(responder.now(), keep);
  const JobRef name{job.topic, job.id};
  if (kept.count == 0) {  // there is no finish pool
    return responder.queue().cancel(
        responder.now(), {&name, 1}, [responder](const Result<std::vector<Result<CancelOutcome>>>& results) {
          const Result<CancelOutcome> outcome = api::only_result(results);
          answer_finished(responder, outcome.ok() ? Status() : Status(outcome.error()));
        });
  }
  RestoreItem item;
  item.job = job;
  item.job.state = JobState::kDone;
  item.job.until = kept.until;
  item.job.outcome = {};
  item.options = decode_job_options(job.options);
  item.on_conflict = OnConflict::kReplace;
  responder.queue().restore(responder.now(), {&item, 1},
                            [responder](const Result<std::vector<Result<RestoreReceipt>>>& results) {
                              const Result<RestoreReceipt> receipt = api::only_result(results);
                              answer_finished(responder, receipt.ok() ? Status() : Status(receipt.error()));
                            });
}

Status pop(const Call& call) { return pop_for(call, false); }

Status pop_waiting(const Call& call) { return pop_for(call, true); }

Status finish(const Call& call) {
  return find_by_id(call, {kNotFinished, [](const Responder& responder, const FoundJob& found) {
                             if (found.job.state == JobState::kDone) return answer_finished(responder, {});
                             if (found.job.state != JobState::kReserved)
                               return finish_untaken(responder, found.job);
                             responder.queue().ack_job(
                                 responder.now(), {found.job.topic, found.job.id},
                                 [responder](const Status& status) { answer_finished(responder, status); });
                           }});
}

constexpr Scopes kPushing = only(Scope::kPush);
constexpr Scopes kConsuming = only(Scope::kConsume);
constexpr Scopes kReading = only(Scope::kRead);
constexpr Scopes kOpenToAll = 0;

constexpr std::array kRoutes{
    Route{"GET", "/delayq/ping", &ping, kOpenToAll},
    Route{"POST", "/delayq/ping", &ping, kOpenToAll},
    Route{"POST", "/delayq/job/add", &add, kPushing},
    Route{"POST", "/delayq/job/info", &info, kAnyScope, Reach::kNone, AnswerKind::kJob},
    Route{"GET", "/delayq/job/info", &info, kAnyScope, Reach::kNone, AnswerKind::kJob},
    Route{"POST", "/delayq/job/pop", &pop, kConsuming},
    Route{"POST", "/delayq/job/bpop", &pop_waiting, kConsuming, Reach::kNone, {}, http::Flow::kMayWait},
    Route{"POST", "/delayq/job/finish", &finish, kConsuming},
    Route{"POST", "/delayq/job/remove", &remove, kPushing},
    Route{"POST", "/delayq/job/list", &list, kReading, Reach::kNone, AnswerKind::kJobs},
    Route{"GET", "/delayq/job/list", &list, kReading, Reach::kNone, AnswerKind::kJobs},
};

}  // namespace

const http::Dialect& delayq() {
  static constexpr http::Dialect kDialect{"/delayq", kRoutes, &refusal};
  return kDialect;
}

}  // namespace delayq::compat
