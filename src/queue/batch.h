#pragma once

#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include <absl/container/inlined_vector.h>

#include "core/limits.h"
#include "core/result.h"
#include "queue/known_topics.h"

/// What the verbs that work on batches share.
namespace delayq {

/// kTooLarge for a batch of more than Limits::kBatchJobs items. An empty batch is valid.
inline Status check_batch(std::string_view op, size_t size) {
  if (size <= Limits::kBatchJobs) return {};
  return Error{ErrorCode::kTooLarge, std::string{op},
               "a batch of " + std::to_string(size) + ": at most " + std::to_string(Limits::kBatchJobs) +
                   " are allowed"};
}

/// Maps the engine's answers to the items of a batch when invalid items were left out of the engine's call.
/// Allocates nothing as long as all items are valid.
class Places {
 public:
  /// Call one of these for every item of the batch, in order.
  void keep() {
    if (!all_kept_) kept_.push_back(items_);
    ++items_;
  }
  void leave_out() {
    if (all_kept_) {
      all_kept_ = false;
      kept_.resize(items_);
      std::iota(kept_.begin(), kept_.end(), 0U);
    }
    ++items_;
  }

  /// The index of the item to which the engine's answer number `answer` belongs.
  uint32_t operator[](size_t answer) const {
    return all_kept_ ? static_cast<uint32_t>(answer) : kept_[answer];
  }

 private:
  bool all_kept_ = true;
  uint32_t items_ = 0;
  std::vector<uint32_t> kept_;
};

/// Consecutive items of a batch that have the same topic. Most batches have one topic, so that one look-up
/// and one reference serve all items.
struct TopicRun {
  TopicPtr topic;  ///< null: the queue does not know the topic
  uint32_t count = 0;
};
using TopicRuns = absl::InlinedVector<TopicRun, 1>;

}  // namespace delayq
