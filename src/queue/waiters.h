#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include <absl/container/btree_set.h>
#include <absl/container/flat_hash_map.h>
#include <absl/container/inlined_vector.h>

#include "engine/engine.h"
#include "queue/topics.h"
#include "queue/verbs.h"

namespace delayq {

/// A consumer between its pop and its answer. It is `idle` while it waits in the lines of its topics.
/// Otherwise it is busy: a call to the engine is pending and has a reference to it, so only the answer to
/// that call may remove it.
struct Waiter {
  WaiterId id = 0;
  absl::InlinedVector<TopicPtr, 1> topics;
  uint32_t count = 1;
  std::optional<Millis> lease;
  bool auto_ack = false;
  bool delivers = false;  ///< takes jobs for delivery instead of a pop; never waits
  Outlet outlet = Outlet::kTopic;
  bool may_wait = false;  ///< false: answered at once with what is ready, even if the clock goes back
  Moment give_up{};       ///< when it gets an empty answer
  Reply<PopAnswer> reply;
  Steps steps;  ///< held while it walks along several topics

  bool idle = false;
  bool leaving = false;     ///< its answer is complete, and is sent by the next poll()
  bool gone = false;        ///< dropped while it was busy: jobs taken for it are given back
  bool walking = false;     ///< is trying all its topics, one after another
  size_t at = 0;            ///< the topic of the latest take
  uint32_t asked = 0;       ///< how many jobs that take asked for
  bool limited = false;     ///< that take is limited by a rate: unused tokens return to the bucket
  uint64_t took_after = 0;  ///< the number of wakes, of all topics, before that take
  uint64_t seen = 0;        ///< the number of wakes before its latest try; see HandOver
  PopAnswer found;
  uint64_t found_bytes = 0;  ///< bytes of the bodies in `found`
};

/// All waiters: their order and their deadlines. Each topic has a FIFO line; a waiter that was busy returns
/// to its old place in the line.
class Waiters {
 public:
  Waiter& add();
  /// Returns null when the waiter was answered or dropped.
  Waiter* find(WaiterId id);
  /// REQUIRES: not idle.
  void remove(Waiter& waiter);

  /// Puts the waiter into the lines of its topics.
  void park(Waiter& waiter);
  void unpark(Waiter& waiter);

  /// The idle waiter with the first deadline, or null.
  Waiter* first_to_give_up();
  /// That deadline; kNever when no waiter is idle.
  Moment next_give_up() const { return give_ups_.empty() ? kNever : give_ups_.begin()->first; }
  /// The clock went back by `by`: makes every deadline earlier by as much.
  void clock_went_back(Millis by);

  size_t size() const { return all_.size(); }

 private:
  WaiterId last_id_ = 0;
  absl::flat_hash_map<WaiterId, std::unique_ptr<Waiter>> all_;
  absl::btree_set<std::pair<Moment, WaiterId>> give_ups_;  // of the idle ones
};

}  // namespace delayq
