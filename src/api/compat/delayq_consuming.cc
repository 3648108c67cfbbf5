// DelayQ: what its consumers do. The API knows a job by its id alone: a pop leases it for its ttr, and finish
// acks whoever has it.
#include <fmt/format.h>

#include "api/compat/delayq_api.h"

namespace delayq::compat::dq {

namespace {

using http::DialectCall;
using http::Exchange;
using http::Fields;

/// Of a bpop that does not say how long.
constexpr int64_t kDefaultWait = 30;
constexpr std::string_view kNotFinished = "标识完成任务出错！";

void answer_popped(const Exchange& exchange, const Result<PopAnswer>& popped) {
  if (!popped.ok()) return exchange.refuse(popped.error(), failure("取任务出错！", popped.error()));
  if (!popped->jobs.empty())
    return exchange.send(success("取出任务成功！", job_text(popped->jobs.front().job, exchange.queue())));
  // An answer like any other, though the original calls it a failure.
  exchange.send(failure("取任务出错,当前Topic下暂无Ready job！", {ErrorCode::kNotFound, {}, {}, {}}));
}

Status pop_for(const DialectCall& call, bool waits) {
  Result<Fields> fields = call.fields();
  if (!fields.ok()) return fields.error();
  const std::string_view topic = fields->text("topic").value_or(std::string_view());
  const int64_t timeout = waits ? fields->integer("timeout").value_or(0) : 0;
  if (!fields->problem().ok()) return fields->problem();
  if (topic.empty()) return invalid("topic值不能为空");
  constexpr auto kLongest = std::chrono::duration_cast<std::chrono::seconds>(Limits::kMaxWait).count();
  if (timeout < 0 || timeout > kLongest)
    return invalid(fmt::format("timeout: expected a number of seconds, at most {}", kLongest));
  if (Status status = check_topic(topic); !status.ok()) return status;
  if (Status status = call.check(only(Scope::kConsume), topic); !status.ok()) return status;
  PopRequest request;
  request.topics = {&topic, 1};
  if (waits) request.wait = std::chrono::seconds{timeout == 0 ? kDefaultWait : timeout};
  const Exchange exchange = call.accept();
  exchange.pop(request, [exchange](const Result<PopAnswer>& popped) { answer_popped(exchange, popped); });
  return {};
}

}  // namespace

Status pop(const DialectCall& call) { return pop_for(call, false); }

Status pop_waiting(const DialectCall& call) { return pop_for(call, true); }

Status finish(const DialectCall& call) {
  return find_by_id(
      call, {kNotFinished, only(Scope::kConsume), [](const Exchange& exchange, const FoundJob& found) {
               exchange.queue().ack_job(
                   exchange.now(), {found.job.topic, found.job.id}, [exchange](const Status& status) {
                     if (!status.ok())
                       return exchange.refuse(status.error(), failure(kNotFinished, status.error()));
                     exchange.send(success("标识完成任务成功！", ""));
                   });
             }});
}

}  // namespace delayq::compat::dq
