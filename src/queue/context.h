#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <absl/functional/any_invocable.h>

#include "engine/engine.h"
#include "queue/config.h"
#include "queue/known_topics.h"
#include "queue/sequence.h"

namespace delayq {

/// What the parts of a queue share. Belongs to the Queue, outlives its parts.
struct Context {
  Engine& engine;
  const QueueConfig& config;
  KnownTopics& topics;

  Moment now{};           ///< the latest that the queue was told
  bool stopping = false;  ///< no new jobs, no new consumers
  /// Whether answers may be given on the spot: inside poll(), but not in a verb that an answer calls.
  bool may_answer = false;
  uint64_t leases_ended = 0;                        ///< counts; tells the stopper when to look
  std::vector<absl::AnyInvocable<void()>> later{};  ///< answers for the next poll()
  std::shared_ptr<Sequence> sequence{};             ///< that the verb being called belongs to; may be null
  QueueAlive alive = std::make_shared<const char>();

  /// For a verb of several steps: to be held until the last one was given to the engine.
  Steps begin_steps() const { return Steps{sequence, alive}; }
  /// For a verb that is one call of the engine about a whole topic, or all of them: that may be several steps
  /// of the engine.
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

  /// Gives an answer now or at the next poll(), so that it never comes from inside the call that asked. What
  /// is called may call verbs: have everything in order before.
  template <class T>
  void answer(Reply<T>& reply, Result<T> result) {
    if (!reply) return;
    if (may_answer) return std::exchange(reply, nullptr)(std::move(result));
    later.push_back([give = std::move(reply), what = std::move(result)]() mutable { give(std::move(what)); });
  }

  template <class T>
  void refuse(Reply<T>& reply, Error error) {
    answer(reply, Result<T>{std::move(error)});
  }
};

}  // namespace delayq
