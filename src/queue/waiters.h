#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include <absl/container/btree_set.h>
#include <absl/container/flat_hash_map.h>
#include <absl/container/inlined_vector.h>

#include "engine/engine.h"
#include "queue/known_topics.h"
#include "queue/sequence.h"

namespace delayq {

/// A consumer between its pop and its answer. It is `idle` while it waits in the lines of its topics, and
/// otherwise busy: a call to the engine is under way for it, whose answer will find it by reference, so a
/// busy waiter is never removed by anybody else.
struct Waiter {
  WaiterId id = 0;
  absl::InlinedVector<TopicPtr, 1> topics;
  uint32_t count = 1;
  std::optional<Millis> lease;
  bool auto_ack = false;
  bool delivers = false;  ///< does not pop, but delivers by itself; never waits
  Outlet outlet = Outlet::kTopic;
  bool may_wait = false;  ///< false: answered at once with what there is, whatever the clock does meanwhile
  Moment give_up{};       ///< when it is answered with nothing
  Reply<PopAnswer> reply;
  Steps steps;  ///< while it walks along several topics

  bool idle = false;
  bool leaving = false;
  bool gone = false;        ///< dropped while it was busy: what comes for it goes back
  bool walking = false;     ///< on its way along all its topics
  size_t at = 0;            ///< the topic that is being asked
  uint32_t asked = 0;       ///< how many jobs it is being asked for
  bool limited = false;     ///< by a rate: what it does not get of them goes back to the bucket
  Moment took_at{};         ///< when it asked
  uint64_t took_after = 0;  ///< the last wake of any topic before the engine was asked
  uint64_t seen = 0;        ///< the wakes that came before its latest try; see HandOver
  PopAnswer found;
  uint64_t found_bytes = 0;  ///< of the bodies in it
};

/// Who waits, in which order, and until when. FIFO for each topic; a waiter that was busy gets its old place
/// back.
class Waiters {
 public:
  Waiter& add();
  /// Null when it was answered or dropped.
  Waiter* find(WaiterId id);
  /// REQUIRES: not idle.
  void remove(Waiter& waiter);

  /// Puts it into the lines of its topics.
  void park(Waiter& waiter);
  void unpark(Waiter& waiter);

  /// The idle waiter that gives up first, or null.
  Waiter* first_to_give_up();
  /// When that is; kNever when nobody waits.
  Moment next_give_up() const { return give_ups_.empty() ? kNever : give_ups_.begin()->first; }
  /// Brings every give-up nearer by `by`: the clock went back that far.
  void clock_went_back(Millis by);

  size_t size() const { return all_.size(); }

 private:
  WaiterId last_id_ = 0;
  absl::flat_hash_map<WaiterId, std::unique_ptr<Waiter>> all_;
  absl::btree_set<std::pair<Moment, WaiterId>> give_ups_;  // of the idle ones
};

}  // namespace delayq
