#pragma once

#include <cstdint>

#include "core/result.h"
#include "queue/context.h"

namespace delayq {

/// Says no before a bound is passed (rule 14). Asked for each job of a push; answers kOverloaded or
/// kDiskFull, with a time after which to try again.
class Admission {
 public:
  explicit Admission(Context& context) : context_(context) {}

  /// Looks at the engine once for the batch that follows.
  void begin();
  /// Whether one more job of `bytes` may be pushed.
  Status has_room_for(uint64_t bytes) const;
  /// The same, and when it may, it counts as pushed.
  Status admit(uint64_t bytes);
  /// The same for a job that takes the place of another one, which needs no room among the jobs.
  Status admit_in_place(uint64_t bytes);
  /// Whether there are as many jobs as there may be, and the error that says so.
  bool is_full() const;
  Error full() const;
  /// `bytes` of admitted jobs were answered.
  void settle(uint64_t bytes) { unanswered_bytes_ -= bytes; }

  /// Whether a topic that is not in the table may be made.
  Status admit_topic(std::string_view op) const;

  uint64_t unanswered_bytes() const { return unanswered_bytes_; }

 private:
  Status has_room_in_place(uint64_t bytes) const;

  Context& context_;
  EngineUsage usage_;
  uint64_t unanswered_bytes_ = 0;
};

}  // namespace delayq
