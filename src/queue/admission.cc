#include "queue/admission.h"

#include <fmt/format.h>

namespace delayq {

namespace {

// The `retry_after` of each bound: a commit takes milliseconds, consumers need seconds to remove jobs, an
// operator needs minutes to clean up a disk.
constexpr Millis kAfterCommits = std::chrono::seconds{1};
constexpr Millis kAfterHandOvers = std::chrono::seconds{5};
constexpr Millis kAfterOperators = std::chrono::minutes{1};

Error overloaded(std::string_view op, std::string detail, Millis retry_after) {
  return {ErrorCode::kOverloaded, std::string{op}, std::move(detail), retry_after};
}

}  // namespace

void Admission::begin() {
  const QueueConfig& config = context_.config;
  usage_ = context_.engine.usage();
  is_blocked_ = usage_.disk_free < config.disk_free_bytes || usage_.lacks_room ||
                usage_.memory_bytes >= config.memory_bytes;
}

Error Admission::full() const {
  return overloaded("push",
                    fmt::format("{} jobs are kept: the bound is {}, and until there are fewer, jobs can only "
                                "be replaced",
                                usage_.jobs, context_.config.jobs),
                    kAfterHandOvers);
}

Status Admission::has_room_for(uint64_t bytes) const {
  if (Status status = has_room_in_place(bytes); !status) return status;
  return is_full() ? Status{full()} : Status{};
}

Status Admission::has_room_in_place(uint64_t bytes) const {
  return fits(bytes) ? Status{} : Status{no_room()};
}

Error Admission::no_room() const {
  const QueueConfig& config = context_.config;
  if (usage_.disk_free < config.disk_free_bytes) {
    return {ErrorCode::kDiskFull, "push",
            fmt::format("{} bytes are free on the disk: new jobs are taken again from {} on",
                        usage_.disk_free, config.disk_free_bytes),
            kAfterOperators};
  }
  if (usage_.lacks_room) {
    return {ErrorCode::kDiskFull, "push",
            "the disk is full: what was accepted before waits until there is room", kAfterOperators};
  }
  if (usage_.memory_bytes >= config.memory_bytes) {
    return overloaded(
        "push",
        fmt::format("jobs use {} bytes of memory: the bound is {}", usage_.memory_bytes, config.memory_bytes),
        kAfterHandOvers);
  }
  return overloaded("push",
                    fmt::format("{} bytes of pushes are not durable yet: the bound is {}", unanswered_bytes_,
                                config.unanswered_bytes),
                    kAfterCommits);
}

Status Admission::admit(uint64_t bytes) {
  if (!fits(bytes) || is_full()) return has_room_for(bytes);
  ++usage_.jobs;
  unanswered_bytes_ += bytes;
  return {};
}

Status Admission::admit_in_place(uint64_t bytes) {
  Status status = has_room_in_place(bytes);
  if (status.ok()) unanswered_bytes_ += bytes;
  return status;
}

Status Admission::admit_topic(std::string_view op) const {
  if (context_.topics.size() < context_.config.limits.topics) return {};
  return overloaded(op, fmt::format("there are {} topics, and no room for a new one", context_.topics.size()),
                    kAfterOperators);
}

}  // namespace delayq
