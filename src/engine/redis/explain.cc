#include "engine/redis/explain.h"

#include <utility>

#include <fmt/format.h>

namespace delayq::redis {

namespace {

/// In about this time an operator may raise a limit, or consumers finish jobs.
constexpr Millis kAfterFullMemory = std::chrono::seconds{5};

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

/// The text of Redis, without the hash of the script and the line that failed.
std::string_view plain(std::string_view detail) { return detail.substr(0, detail.find(" script: ")); }

std::string foreign_key(const Refused& call) {
  const std::string which = call.key.empty() ? fmt::format("a key that begins with {}:", call.prefix)
                                             : fmt::format("the key {}", call.key);
  return fmt::format("another program has {} (WRONGTYPE): choose another {}", which, call.prefix_name);
}

std::string damage(std::string_view said, const Refused& call) {
  // The sequence is the only number that scripts increment.
  if (has(said, "not an integer") || has(said, "would overflow")) {
    return fmt::format(
        "the key {0}:{{{1}}}:seq is damaged, it is not a number: delete it (DEL {0}:{{{1}}}:seq)"
        ", and it is made anew",
        call.prefix, call.tag);
  }
  return fmt::format(
      "{} failed: {}; a key that begins with {}: is damaged: restore it from a backup of Redis, "
      "or delete those of the topic",
      call.script.empty() ? "a command" : fmt::format("the script {}", call.script), said,
      call.tag.empty() ? std::string(call.prefix) : fmt::format("{}:{{{}}}", call.prefix, call.tag));
}

}  // namespace

Error out_of_memory(std::string_view op) {
  return {ErrorCode::kOverloaded, std::string(op),
          "Redis is out of memory (OOM) and accepts no new jobs: raise its maxmemory, or finish jobs",
          kAfterFullMemory};
}

Explained explain(Error error, const Refused& call) {
  error.detail.resize(plain(error.detail).size());
  if (error.code == ErrorCode::kOverloaded && error.detail.starts_with("OOM "))
    return {out_of_memory(error.op), {}};
  if (has(error.detail, "WRONGTYPE")) {
    std::string problem = foreign_key(call);
    error.code = ErrorCode::kUnavailable;
    error.detail = problem;
    return {std::move(error), std::move(problem)};
  }
  if (error.code != ErrorCode::kInvalid) return {std::move(error), {}};
  std::string problem = damage(error.detail, call);
  error.code = ErrorCode::kCorrupt;
  error.detail = "a key of the jobs in Redis is damaged; the server's log says which, and what to do";
  return {std::move(error), std::move(problem)};
}

}  // namespace delayq::redis
