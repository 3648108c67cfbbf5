#pragma once

#include <vector>

#include "queue/verbs.h"

namespace delayq::api {

/// What came of a batch of one: the batch's error, or what its item came to.
template <class T>
Result<T> only_result(const Result<std::vector<Result<T>>>& results) {
  return results.ok() ? results->front() : Result<T>(results.error());
}

/// The receipt's texts live in the report.
inline Result<PushReceipt> only_result(const Result<PushReport>& report) {
  return report.ok() ? report->jobs.front() : Result<PushReceipt>(report.error());
}

}  // namespace delayq::api
