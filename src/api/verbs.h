#pragma once

#include <vector>

#include "api/access.h"
#include "queue/queue.h"

/// What all APIs do with the queue's verbs and their results.
namespace delayq::api {

/// The result of a batch of one: the batch's error, or the result of its item.
template <class T>
Result<T> only_result(const Result<std::vector<Result<T>>>& results) {
  return results.ok() ? results->front() : Result<T>(results.error());
}

/// The texts of the receipt live in the report.
inline Result<PushReceipt> only_result(const Result<PushReport>& report) {
  return report.ok() ? report->jobs.front() : Result<PushReceipt>(report.error());
}

/// The error of a reschedule that did not move the job. REQUIRES: `outcome` is not a success.
Error refusal_of(RescheduleOutcome outcome);

/// A page of the topics that the caller may know about. A cursor is the name of one of them. `queue` and
/// `access` must outlive the answer.
void visible_topics(Queue& queue, const Access& access, const Caller& caller, Moment now,
                    std::string_view cursor, uint32_t limit, Reply<TopicSummaries> reply);

}  // namespace delayq::api
