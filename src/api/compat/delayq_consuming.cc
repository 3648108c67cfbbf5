// DelayQ: what its consumers do. The API knows a job by its id alone: a pop leases it for its ttr, and finish
// acks whoever has it.
#include <fmt/format.h>

#include "api/compat/delayq_api.h"
#include "api/only_result.h"
#include "queue/job_options.h"

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
  if (topic.empty()) return invalid("topic", "topic值不能为空");
  constexpr auto kLongest = std::chrono::duration_cast<std::chrono::seconds>(Limits::kMaxWait).count();
  if (timeout < 0 || timeout > kLongest)
    return invalid("timeout", fmt::format("timeout: expected a number of seconds, at most {}", kLongest));
  if (Status status = check_topic(topic); !status.ok()) return status;
  if (Status status = call.check(only(Scope::kConsume), topic); !status.ok()) return status;
  PopRequest request;
  request.topics = {&topic, 1};
  if (waits) request.wait = std::chrono::seconds{timeout == 0 ? kDefaultWait : timeout};
  const Exchange exchange = call.accept();
  exchange.pop(request, [exchange](const Result<PopAnswer>& popped) { answer_popped(exchange, popped); });
  return {};
}

void answer_finished(const Exchange& exchange, const Status& status) {
  if (!status.ok()) return exchange.refuse(status.error(), failure(kNotFinished, status.error()));
  exchange.send(success("标识完成任务成功！", ""));
}

/// The original finishes whatever it is told to: a job that waits, or is in the fail pool, goes to the finish
/// pool, and nobody gets it any more.
void finish_untaken(const Exchange& exchange, const Job& job) {
  const Retention& keep = exchange.queue().effective_settings(job.topic).keep_done;
  const Keep kept = keep_from(exchange.now(), keep);
  const JobRef name{job.topic, job.id};
  if (kept.count == 0) {  // there is no finish pool
    return exchange.queue().cancel(
        exchange.now(), {&name, 1}, [exchange](const Result<std::vector<Result<CancelOutcome>>>& results) {
          const Result<CancelOutcome> outcome = api::only_result(results);
          answer_finished(exchange, outcome.ok() ? Status() : Status(outcome.error()));
        });
  }
  RestoreItem item;
  item.job = job;
  item.job.state = JobState::kDone;
  item.job.until = kept.until;
  item.job.outcome = {};
  item.options = decode_job_options(job.options);
  item.on_conflict = OnConflict::kReplace;
  exchange.queue().restore(exchange.now(), {&item, 1},
                           [exchange](const Result<std::vector<Result<RestoreReceipt>>>& results) {
                             const Result<RestoreReceipt> receipt = api::only_result(results);
                             answer_finished(exchange, receipt.ok() ? Status() : Status(receipt.error()));
                           });
}

}  // namespace

Status pop(const DialectCall& call) { return pop_for(call, false); }

Status pop_waiting(const DialectCall& call) { return pop_for(call, true); }

Status finish(const DialectCall& call) {
  return find_by_id(call, {kNotFinished, [](const Exchange& exchange, const FoundJob& found) {
                             if (found.job.state == JobState::kDone) return answer_finished(exchange, {});
                             if (found.job.state != JobState::kReserved)
                               return finish_untaken(exchange, found.job);
                             exchange.queue().ack_job(
                                 exchange.now(), {found.job.topic, found.job.id},
                                 [exchange](const Status& status) { answer_finished(exchange, status); });
                           }});
}

}  // namespace delayq::compat::dq
