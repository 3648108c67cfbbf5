#pragma once

#include <string>

#include "core/job.h"

namespace delayq::delivery {

/// The whole job on one line, for a consumer that knows nothing else of it:
///
///   {"topic":"order","id":"7","body":{"uid":1},"attempt":1,"due_at":"2030-01-31T08:00:00.000Z",
///    "pushed_at":"2030-01-31T07:30:00.000Z","priority":1024,"group":"customer:1","name":"...",
///    "content_type":"..."}
///
/// The body is written by json::write_body(); the last three are there when the job has them.
std::string job_text(const Job& job);

}  // namespace delayq::delivery
