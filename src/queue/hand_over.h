#pragma once

#include <utility>

#include <absl/container/btree_map.h>

#include "queue/admission.h"
#include "queue/verbs.h"
#include "queue/waiters.h"

namespace delayq {

/// Brings ready jobs and consumers together (rules 6, 7 and 11).
///
/// A pop first walks along its topics in the order given and takes what is ready. When it finds nothing it
/// may wait: it stands in the lines of all its topics until a wake.
///
/// A wake says that a topic may have something to take: the engine said so, a limit was lifted, a lease
/// ended. It lets the first in line try; whoever gets all he asked for lets two more try, and whoever gets
/// less ends it, since then the topic is dry. So one job wakes one consumer, a thousand jobs wake all in a
/// few rounds, and nobody polls.
///
/// An answer has at most about Limits::kPopBytes, and at least one job. Whoever gets less than he asked for
/// because of that lets others try like one who got all, since the topic is not dry; one who delivers is told
/// of the topic anew.
///
/// A rate's tokens are taken before the engine is asked, and those that were not needed come back with its
/// answer. They are lent meanwhile: who finds no others is held until the answer has come, and who got fewer
/// than he wanted is woken when some come back.
///
/// No wake is lost: before a waiter that was busy stands in line again, `last_wake` of its topics and its own
/// `seen` tell whether one of them was woken while it was not there; then it walks once more.
class HandOver {
 public:
  HandOver(Context& context, Admission& admission) : context_(context), admission_(admission) {}

  /// Answers 0 when the request is refused; the reply then has the reason.
  WaiterId pop(const PopRequest& request, Reply<PopAnswer> reply);
  /// The consumer is gone: it will not be answered, and no job is lost on it (but see PopRequest::auto_ack).
  bool drop(WaiterId id);

  /// The same for somebody who delivers jobs by himself: from the outlet that he is for.
  void take_for_delivery(const DeliveryRequest& request, Reply<PopAnswer> reply);
  void set_listener(DeliveryListener* listener) { listener_ = listener; }

  /// The topic may have something to take for that outlet.
  void wake(const TopicPtr& topic, Outlet outlet);
  /// Limits of the topic may have been lifted, and who gets its jobs may be another now: consumers who wait
  /// for what is not popped any more are told so.
  void settings_changed(const TopicPtr& topic);
  void all_settings_changed();
  /// Leases of the topic (null: one that the queue does not know) ended, so its concurrency limit may have
  /// room.
  void lease_ended(const TopicPtr& topic);

  /// Answers those who are leaving, and lets others try where there was more than one answer could have. To
  /// be called after the engine's poll. Answers whether there was anything.
  bool poll();
  /// Lets waiters give up and limited topics go on. Answers when it wants to be called next.
  Moment tick();
  /// Answers everybody who waits, with nothing.
  void dismiss();
  void clock_went_back(Millis by);

  size_t waiters() const { return waiters_.size(); }

 private:
  Status check(const PopRequest& request) const;
  /// A limit of the topic may have room: for consumers, and for those who deliver and did not get all.
  void limit_lifted(const TopicPtr& topic);
  void wake_consumers(const TopicPtr& topic);
  /// Tells those who deliver of (topic, outlet), if that is theirs.
  void tell(TopicState& topic, Outlet outlet);
  void note_unserved(Waiter& waiter, const TopicPtr& topic);
  void begin_walk(Waiter& waiter);
  void start_walk(Waiter& waiter);
  void end_walk(Waiter& waiter);
  void walk(Waiter& waiter);
  void serve(const TopicPtr& topic, int consumers);
  void take(Waiter& waiter, TopicState& topic, uint32_t count);
  void taken(Waiter& waiter, Result<TakeAnswer> result);
  /// The topic has more than fits into one answer.
  void cut(Waiter& waiter, const TopicPtr& topic);
  /// Others got all that fits: once more, for the waiter's own answer.
  void ask_again(Waiter& waiter, const TopicPtr& topic);
  void found_nothing(Waiter& waiter);
  void give_own_leases(Waiter& waiter);
  void deliver(Waiter& waiter);
  void fail(Waiter& waiter, const Error& error);
  void give_back(Waiter& waiter);
  /// How many jobs may be taken now. Lends the tokens for them.
  uint32_t allowed(TopicState& topic, Outlet outlet, size_t wanted);
  /// The engine's answer came: `unused` of the tokens that were lent for it come back. `is_dry`: there was no
  /// further job for `outlet`, and none was announced since.
  void end_loan(const TopicPtr& topic, uint32_t lent, uint32_t unused, bool is_dry, Outlet outlet);
  bool is_limited(TopicState& topic);
  void plan_refill(const TopicPtr& topic);
  void wake_first_refill();
  /// Goes on with those who wait for tokens that were lent. Answers whether there was anybody.
  bool poll_loans();

  Context& context_;
  Admission& admission_;
  DeliveryListener* listener_ = nullptr;
  Waiters waiters_;
  std::vector<WaiterId> leaving_;
  std::vector<TopicPtr> not_dry_;  ///< a waiter from their line got less than it asked for, because of bytes
  std::vector<WaiterId> held_;     ///< walkers that wait for tokens that are lent
  std::vector<TopicPtr> repaid_;   ///< got tokens back that others had wanted
  bool has_loan_ended_ = false;    ///< since those who are held were looked at
  size_t walkers_ = 0;             ///< waiters that are walking
  uint64_t wakes_ = 0;
  absl::btree_map<std::pair<Moment, uint64_t>, TopicPtr> refills_;  // by moment and the topic's serial
};

}  // namespace delayq
