#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <absl/container/inlined_vector.h>
#include <absl/functional/any_invocable.h>

#include "core/limits.h"
#include "core/result.h"
#include "engine/engine.h"
#include "queue/news.h"
#include "queue/settings.h"
#include "queue/topics.h"
#include "queue/verbs.h"

namespace delayq {

/// What the parts of a queue share. The Queue owns it; it outlives the parts.
struct Context {
  Engine& engine;
  const QueueConfig& config;
  KnownTopics& topics;
  News& news;

  Moment now{};           ///< the `now` of the latest call
  bool stopping = false;  ///< pushes and pops are refused
  /// Whether a Reply may be called immediately: inside poll(), but not in a verb that a Reply calls.
  bool may_answer = false;
  uint64_t leases_ended = 0;                        ///< how many leases have ended; the Stopper compares it
  std::vector<absl::AnyInvocable<void()>> later{};  ///< Replies to call in the next poll()
  std::shared_ptr<Sequence> sequence{};             ///< the sequence of the current verb; may be null
  QueueAlive alive = std::make_shared<const char>();
  /// Why the host of a callback is not called now; empty: nothing is known against it. May be empty itself.
  std::function<std::string(Moment now, std::string_view url)> callback_problem{};

  std::string problem_of_callback(std::string_view url) const {
    return callback_problem && !url.empty() ? callback_problem(now, url) : std::string();
  }

  /// For a verb of several steps, which holds the result until its last step was sent to the engine.
  Steps begin_steps() const { return Steps{sequence, alive}; }
  /// For a verb that is one call of the engine on a whole topic or on all topics. An engine with parts
  /// executes that in several steps.
  template <class T>
  Reply<T> in_steps(Reply<T> reply) const {
    if (!engine.has_parts()) return reply;
    return [steps = begin_steps(), reply = std::move(reply)](Result<T> result) mutable {
      reply(std::move(result));
    };
  }

  /// kStopping for `op` while the server stops.
  Status check_running(std::string_view op) const {
    if (!stopping) return {};
    return Error{ErrorCode::kStopping, std::string{op}, "the server is shutting down"};
  }

  /// Calls the Reply now or in the next poll(), so that a verb never calls its own Reply. The Reply may call
  /// verbs, so the caller's state must be consistent before.
  template <class T>
  void answer(Reply<T>& reply, Result<T> result) {
    if (!reply) return;
    if (may_answer) return std::exchange(reply, nullptr)(std::move(result));
    later.push_back([give = std::move(reply), what = std::move(result)]() mutable { give(std::move(what)); });
  }

  /// Replies with an error.
  template <class T>
  void refuse(Reply<T>& reply, Error error) {
    answer(reply, Result<T>{std::move(error)});
  }
};

// What the verbs that work on batches share.

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
