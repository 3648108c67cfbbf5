#pragma once

#include <cstdint>

#include "core/result.h"
#include "queue/context.h"

namespace delayq {

/// Refuses jobs before a bound is exceeded (rule 14). Each job of a push is checked; the errors are
/// kOverloaded and kDiskFull, with a `retry_after`.
class Admission {
 public:
  explicit Admission(Context& context) : context_(context) {}

  /// Call before each batch: reads the usage of the engine, which holds for all its jobs.
  void begin();
  /// Whether one more job of `bytes` may be pushed.
  Status has_room_for(uint64_t bytes) const;
  /// The same; if the job may be pushed, it is counted.
  Status admit(uint64_t bytes);
  /// The same for what does not add to the number of jobs: a job that can only replace another one, or the
  /// definition of a schedule.
  Status admit_in_place(uint64_t bytes);
  /// Whether the number of jobs has reached its bound, and the error for that.
  bool is_full() const { return usage_.jobs >= context_.config.jobs; }
  Error full() const;
  /// The pushes of admitted jobs of `bytes` were answered.
  void settle(uint64_t bytes) { unanswered_bytes_ -= bytes; }

  /// Whether a new topic may be created.
  Status admit_topic(std::string_view op) const;

  uint64_t unanswered_bytes() const { return unanswered_bytes_; }

 private:
  /// Whether disk and memory, as begin() found them, and the pushes that are not answered leave room. If no
  /// other push is pending, a single job may exceed the bound; otherwise it could never be pushed.
  bool fits(uint64_t bytes) const {
    return !is_blocked_ &&
           (unanswered_bytes_ == 0 || unanswered_bytes_ + bytes <= context_.config.unanswered_bytes);
  }
  Status has_room_in_place(uint64_t bytes) const;
  /// Why fits() is false.
  Error no_room() const;

  Context& context_;
  EngineUsage usage_;
  bool is_blocked_ = false;  ///< `usage_` is above a bound of disk or memory
  uint64_t unanswered_bytes_ = 0;
};

}  // namespace delayq
