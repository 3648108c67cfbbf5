#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/verb.h"
#include "resp/value.h"

namespace delayq::cli {

/// A job as POP ... HEADERS hands it over: [lease, topic, id, body, attempt, due_ms, headers].
struct Popped {
  const std::string& lease;
  const std::string& topic;
  const std::string& id;
  const std::string& body;
  int64_t attempt;
  int64_t due_ms;
  NamedTexts headers;
};

/// Refers to `job`, which must live longer; nullopt if it is not a job.
std::optional<Popped> popped_of(const resp::Value& job);

/// How a command is run for jobs.
struct WorkOrder {
  std::vector<std::string> topics;
  std::vector<std::string> words;  ///< the command
  Millis wait{};                   ///< for a job; zero: only what is ready
  Millis lease{};                  ///< extended while a command runs
  uint64_t count = 1;              ///< of jobs, at most
  bool forever = false;            ///< until a signal arrives; waits for an unreachable server
  uint32_t workers = 1;            ///< at the same time
};

struct WorkReport {
  uint64_t acked = 0;
  uint64_t nacked = 0;  ///< the command failed
  uint64_t lost = 0;    ///< another consumer has the job now, or it was cancelled: the command was stopped
};

/// Runs the command for each job: its body on standard input, DELAYQ_TOPIC, DELAYQ_ID, DELAYQ_ATTEMPT,
/// DELAYQ_LEASE, DELAYQ_DUE_AT and DELAYQ_HEADER_NAME for each header in the environment. Acks when it exits
/// with 0, nacks otherwise.
///
/// After SIGINT or SIGTERM no more jobs are taken and running commands may finish; a second signal ends them:
/// SIGTERM, and SIGKILL a second later. If the server does not answer then, the whole process ends. Changes
/// the signal handling of the whole process, so the process must do nothing else.
Result<WorkReport> run_workers(const Session& session, const WorkOrder& order);

}  // namespace delayq::cli
