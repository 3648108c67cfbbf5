#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include <absl/container/btree_map.h>
#include <absl/container/btree_set.h>
#include <absl/container/flat_hash_map.h>
#include <absl/container/inlined_vector.h>

#include "core/random.h"
#include "engine/engine.h"
#include "queue/admission.h"
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

/// Hands ready jobs over to consumers, and to the delivery loop (rules 6, 7 and 11). Both are waiters here,
/// but the delivery loop never waits.
///
/// Walk. A pop first tries its topics in the order given and takes what is ready. If it finds nothing, it may
/// wait in the lines of all its topics until a wake.
///
/// Wake. A wake means that a topic may have jobs to take: the engine reported ready jobs, a limit was lifted,
/// or a lease ended. The first waiter in line tries. If it gets as many jobs as it asked for, two more try.
/// If it gets fewer, the topic is empty and the wake ends. So one job wakes one consumer, a thousand jobs
/// wake all consumers within a few rounds, and no consumer polls.
///
/// Size. An answer has at least one job, and stops growing at about Limits::kPopBytes. A waiter that got
/// fewer jobs because of that bound also lets two more try, since the topic is not empty. If it was the
/// delivery loop, the listener is notified of the topic again.
///
/// Rate. Tokens are taken before the engine is asked, and the unused ones return with the engine's answer.
/// Until then they are lent. A walking waiter that finds no token while some are lent is held until the
/// answer. A waiter that got fewer tokens than it wanted is woken when some return.
///
/// No wake is lost: before a busy waiter returns to its lines, it compares `last_wake` of its topics with its
/// own `seen`. If a topic was woken in the meantime, it walks again.
class HandOver {
 public:
  HandOver(Context& context, Admission& admission, Random random)
      : context_(context), admission_(admission), random_(random) {}

  /// Returns 0 when the request is refused; the reply then has the reason.
  WaiterId pop(const PopRequest& request, Reply<PopAnswer> reply);
  /// The consumer has disconnected: it is not answered, and its jobs are given back (but see
  /// PopRequest::auto_ack).
  bool drop(WaiterId id);

  /// A pop for the delivery loop, of the jobs of one outlet.
  void take_for_delivery(const DeliveryRequest& request, Reply<PopAnswer> reply);
  void set_listener(DeliveryListener* listener) { listener_ = listener; }

  /// The topic may have ready jobs for that outlet.
  void wake(const TopicPtr& topic, Outlet outlet);
  /// Limits of the topic may have been lifted, or its delivery may have changed. If its jobs cannot be popped
  /// any more, waiting consumers get an error.
  void settings_changed(const TopicPtr& topic);
  void all_settings_changed();
  /// Leases of the topic ended, so its concurrency limit may have room. Null: the topic is unknown.
  void lease_ended(const TopicPtr& topic);

  /// Sends the answers that are complete, and lets others try at topics that had more jobs than fit into one
  /// answer. Call it after the engine's poll(). Returns whether there was anything to do.
  bool poll();
  /// Answers the waiters whose deadline has passed, and wakes topics whose rate has a token again. Returns
  /// when to call it next.
  Moment tick();
  /// Sends an empty answer to every idle waiter.
  void dismiss();
  void clock_went_back(Millis by);

  size_t waiters() const { return waiters_.size(); }

 private:
  Status check(const PopRequest& request) const;
  /// A limit of the topic may have room: wakes consumers, and notifies the listener if a take for delivery
  /// did not get all jobs.
  void limit_lifted(const TopicPtr& topic);
  void wake_consumers(const TopicPtr& topic);
  /// Notifies the listener, if jobs of that topic and outlet are delivered.
  void notify_listener(TopicState& topic, Outlet outlet);
  /// A limit may have left ready jobs for this delivery: the listener is notified when it is lifted.
  void note_unserved(Waiter& waiter, const TopicPtr& topic);
  void begin_walk(Waiter& waiter);
  void start_walk(Waiter& waiter);
  void end_walk(Waiter& waiter);
  void walk(Waiter& waiter);
  /// Lets up to `consumers` waiters of the topic's line try.
  void serve(const TopicPtr& topic, int consumers);
  void take(Waiter& waiter, TopicState& topic, uint32_t count);
  void taken(Waiter& waiter, Result<TakeAnswer> result);
  /// The topic has more than fits into one answer.
  void cut(Waiter& waiter, const TopicPtr& topic);
  /// The engine cut the answer before its first job (see TakeAnswer::is_cut): takes again.
  void ask_again(Waiter& waiter, const TopicPtr& topic);
  void found_nothing(Waiter& waiter);
  void deliver(Waiter& waiter);
  void fail(Waiter& waiter, const Error& error);
  void give_back(Waiter& waiter);
  /// Returns how many jobs may be taken now, and lends the tokens for them.
  uint32_t allowed(TopicState& topic, Outlet outlet, size_t wanted);
  /// The engine has answered: `unused` of the `lent` tokens return. `is_dry`: there was no further job for
  /// `outlet`, and none was reported since.
  void end_loan(const TopicPtr& topic, uint32_t lent, uint32_t unused, bool is_dry, Outlet outlet);
  bool is_limited(TopicState& topic);
  void plan_refill(const TopicPtr& topic);
  void wake_first_refill();
  /// Continues with the waiters that need the tokens that returned. Returns whether there were any.
  bool poll_loans();

  Context& context_;
  Admission& admission_;
  Random random_;  ///< decides the jitter of jobs' own backoffs
  DeliveryListener* listener_ = nullptr;
  Waiters waiters_;
  std::vector<WaiterId> leaving_;
  std::vector<TopicPtr> not_dry_;  ///< a waiter of their line got fewer jobs because of the bound of bytes
  std::vector<WaiterId> held_;     ///< walking waiters that need tokens that are lent
  std::vector<TopicPtr> repaid_;   ///< tokens returned that other waiters had wanted
  bool has_loan_ended_ = false;    ///< since `held_` was last processed
  size_t walkers_ = 0;             ///< waiters that are walking
  uint64_t wakes_ = 0;             ///< number of wakes so far, of all topics
  absl::btree_map<std::pair<Moment, uint64_t>, TopicPtr> refills_;  // by moment and the topic's serial
};

}  // namespace delayq
