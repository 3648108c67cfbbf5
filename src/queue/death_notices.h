#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <string>

#include "queue/context.h"

namespace delayq {

/// Lets jobs die whose topic names somebody to be told of it (the setting `on_dead`).
///
/// The notice is a job like any other: of the topic that is named, or of the dead job's own topic with the
/// URL that is named as its callback. It is stored before the job becomes dead, and the job becomes dead only
/// when the notice is durable. So no death goes untold, whatever stops in between. Its id is computed from
/// the job and its last attempt: whoever repeats the step stores the same notice, not another one.
///
/// A server that stops between the two steps leaves a job that was announced and is not dead. Its lease
/// expires, and it is decided again: usually it dies then, but a consumer may also finish it.
///
/// Nobody is told of the death of a notice, so no chain of topics goes round.
class DeathNotices {
 public:
  explicit DeathNotices(Context& context) : context_(context) {}

  /// Whether somebody is to be told of the deaths in a topic with these settings.
  static bool are_wanted(const EffectiveSettings& settings, std::string_view topic);

  /// How a job dies: what the engine's nack needs. Its consumer has written the topic and the lease, so there
  /// need not be any such job: nothing is kept for the topic before the engine has found it.
  struct Death {
    std::string topic;
    std::string lease;  ///< the engine's text
    Keep keep;
    std::string reason;
    bool expired = false;
  };
  /// Replies when the job is dead, or kStale or kCancelled as a nack does. After an error the job is as it
  /// was.
  void announce(Death death, Reply<NackOutcome> reply);

 private:
  struct Pending {
    Death death;
    Reply<NackOutcome> reply;
  };
  using PendingPtr = std::unique_ptr<Pending>;

  /// Bodies are read whole, so only a few at once.
  static constexpr size_t kAtOnce = 16;

  void begin_more();
  void read(PendingPtr pending);
  void push(PendingPtr pending, const TopicPtr& topic, const Job& job);
  void bury(PendingPtr pending);
  void end(PendingPtr pending, Result<NackOutcome> outcome);

  Context& context_;
  std::deque<PendingPtr> waiting_;
  size_t running_ = 0;
};

}  // namespace delayq
