#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "queue/config.h"
#include "queue/sequence.h"
#include "queue/verbs.h"

namespace delayq {

/// The one service that every API calls. All rules live here, once: what is valid, who gets what and when,
/// what a failure leads to, what is kept, what is too much. Where jobs wait is the engine's business.
///
/// Answers. Every verb takes a Reply, which is called exactly once, from poll(), never from inside the call
/// that asked (a Reply whose waiter was dropped is never called). Batches answer for each item: an invalid
/// one does not stop the others, and nothing of it is stored. The batch itself fails only when it is too
/// large or the queue is stopping. An answer to a verb that changes something means that the change is
/// durable, as far as the engine promises. A Reply may call verbs, not poll() or tick().
///
/// Time. `now` is an argument everywhere, the server's wall clock, and may jump either way between calls. The
/// loop is
///
///   for (;;) {
///     take what came in, and call verbs;
///     do { next = queue.tick(now); } while (queue.poll(now));
///     wait until `next`, or until something comes in, or until the engine's wakeup;
///   }
///
/// Order. A verb takes effect when it is called, so the next one sees it, with or without an answer. Verbs of
/// several steps (nack, purge, redrive, cancel_group, by id alone, pop of several topics, export) take effect
/// between their call and their answer: a client whose verbs shall not overtake each other gives them as one
/// Sequence (see in_order()), and calls nothing while that is busy.
///
/// The same calls with the same seed over the same engine give the same answers in the same order.
///
/// Threads. None, and no locks: all methods are called from one thread.
///
/// Bounds. Batches, waiters, topics, unanswered bytes, memory and disk have bounds (core/limits.h,
/// QueueConfig); above them a push or a pop is answered with kOverloaded or kDiskFull and a `retry_after`.
/// Verbs that free room go on.
class Queue final {
 public:
  /// `engine` must outlive the queue and be polled through it alone, so not any more when the queue is gone:
  /// what it was asked and has not answered would be answered to nobody. The next queue has an engine of its
  /// own, unless nothing was left to answer. `seed` makes ids and jitter: give each server its own.
  Queue(Engine& engine, QueueConfig config, uint64_t seed);
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  /// Reads settings and topics from the engine. REQUIRES: answered before any other verb is called. kCorrupt
  /// when settings cannot be read; the queue then works with those that can.
  void start(Moment now, Reply<void> reply);

  /// Verbs that are called while the guard lives belong to `sequence`. REQUIRES: guards do not overlap; no
  /// poll() or tick() meanwhile.
  class [[nodiscard]] InOrder {
   public:
    ~InOrder() { current_.reset(); }
    InOrder(const InOrder&) = delete;
    InOrder& operator=(const InOrder&) = delete;

   private:
    friend class Queue;
    InOrder(std::shared_ptr<Sequence>& current, std::shared_ptr<Sequence> sequence) : current_(current) {
      current_ = std::move(sequence);
    }
    std::shared_ptr<Sequence>& current_;
  };
  InOrder in_order(std::shared_ptr<Sequence> sequence);
  /// For a client's request that needs several verbs: its sequence is busy until the result has ended.
  Steps begin_steps() const;

  // ---- producers
  void push(Moment now, std::span<const PushRequest> jobs, Reply<PushReport> reply);
  void cancel(Moment now, std::span<const JobRef> jobs, Reply<std::vector<Result<CancelOutcome>>> reply);
  /// By id alone. kConflict when the id is live in several topics.
  void cancel_by_id(Moment now, std::string_view id, Reply<CancelOutcome> reply);
  /// All waiting jobs of the group in those topics; those that are running will not be retried. A large group
  /// is cancelled in steps, between which others may push to it.
  void cancel_group(Moment now, std::string_view group, TopicPatterns topics, Reply<GroupCancelAnswer> reply);
  /// Moves delayed, ready and dead jobs to a new time.
  void reschedule(Moment now, std::span<const RescheduleItem> items,
                  Reply<std::vector<Result<RescheduleOutcome>>> reply);

  // ---- consumers
  /// Answers with what is ready, topic by topic in the order given; when nothing is, waits for the first job
  /// up to `request.wait`, and then answers with an empty list. Those who wait for the same topic are served
  /// in the order in which they came. Answers 0 when the request is refused.
  WaiterId pop(Moment now, const PopRequest& request, Reply<PopAnswer> reply);
  /// Whether a pop of one topic takes several steps, too, as do the verbs that look around in whole topics.
  bool has_parts() const;
  /// How many bytes of bodies may come with the answer to it: for whoever has room for so much only.
  uint64_t most_bytes(const PopRequest& request) const;
  /// kInvalid for a topic whose jobs are delivered otherwise (Settings::delivery); a consumer that waits when
  /// that is decided is told then. Jobs with a callback of their own are never popped.
  /// The consumer is gone. Its Reply will not be called, and a job that is on the way to it goes back to its
  /// place in line, uncounted. False when it was answered before.
  bool drop_waiter(Moment now, WaiterId waiter);
  /// What is ready, under the same rules (pause, rate, concurrency) as a pop; nothing when the topic has
  /// nothing for that outlet, or not now: the listener will be told again.
  void take_for_delivery(Moment now, const DeliveryRequest& request, Reply<PopAnswer> reply);
  /// `listener` is told from now on, and must outlive the queue. Set before start(), which tells it of all
  /// that is ready.
  void set_delivery_listener(DeliveryListener* listener);
  /// How many of the leases were current; the other jobs have moved on.
  void give_back(Moment now, std::span<const GiveBackItem> items, Reply<uint64_t> reply);
  /// kStaleLease where the lease is not the current one, or its deadline has passed.
  void ack(Moment now, std::span<const AckItem> items, Reply<std::vector<Status>> reply);
  /// For a consumer that knows only the job, not its lease: acks whoever has it now. kNotFound, or kConflict
  /// when it is with nobody. Unlike a lease, it cannot tell a late consumer from the one after it.
  void ack_job(Moment now, const JobRef& job, Reply<void> reply);
  void nack(Moment now, std::span<const NackItem> items, Reply<std::vector<Result<NackReceipt>>> reply);
  /// Answers the new deadlines.
  void extend(Moment now, std::span<const ExtendItem> items, Reply<std::vector<Result<Moment>>> reply);

  // ---- dead letters and cleaning up: how many jobs it was
  void redrive_all(Moment now, std::string_view topic, Reply<uint64_t> reply);
  void redrive(Moment now, std::string_view topic, std::span<const std::string_view> ids,
               Reply<uint64_t> reply);
  /// Those whose last error contains `error`.
  void redrive_by_error(Moment now, std::string_view topic, std::string_view error, Reply<uint64_t> reply);
  /// Without a state: all of them, the running ones included; their leases go stale.
  void purge(Moment now, std::string_view topic, std::optional<JobState> state, Reply<uint64_t> reply);

  // ---- looking around
  void get(Moment now, const JobRef& job, Reply<std::optional<FoundJob>> reply);
  /// By id alone, among live jobs of those topics. kConflict when the id is live in several of them.
  void find(Moment now, std::string_view id, TopicPatterns topics, Reply<std::optional<FoundJob>> reply);
  /// By id alone, also among the jobs that are kept as done or dead. Where several topics have the id: the
  /// live job, else the one that was pushed last. kConflict when it is live in several.
  void find_kept_too(Moment now, std::string_view id, TopicPatterns topics,
                     Reply<std::optional<FoundJob>> reply);
  void list(Moment now, const ListRequest& request, Reply<JobPage> reply);
  void topics(Moment now, std::string_view cursor, uint32_t limit, Reply<TopicSummaries> reply);
  /// These two cost the same however many jobs and topics there are.
  void stats(Moment now, std::string_view topic, Reply<TopicStats> reply);
  void totals(Moment now, Reply<TotalStats> reply);
  void forecast(Moment now, const ForecastRequest& request, Reply<Forecast> reply);

  // ---- moving elsewhere and back
  /// Stores jobs as they were, in whatever state, under the same rules and bounds as a push. A reserved one
  /// has lost its lease: it is ready again at its due time, with its attempts as they are. The oldest done
  /// and dead jobs of a topic go when it would keep more than it says.
  void restore(Moment now, std::span<const RestoreItem> items,
               Reply<std::vector<Result<RestoreReceipt>>> reply);
  /// The settings of a topic, or of "*", unless there are some.
  void restore_settings(Moment now, std::string_view name, Settings settings, OnConflict on_conflict,
                        Reply<RestoreOutcome> reply);
  /// A page of everything: the defaults, then topics in the order of their names, each with its settings and
  /// its delayed, ready, reserved, done and dead jobs. Others go on meanwhile, so it is not of one moment: a
  /// job that stays in its state is there exactly once; one that moves on (falls due, is taken, is done) may
  /// be there twice, the earlier state first; one that goes back (is retried, moved or redriven) may be
  /// missed. A page may be short, or empty, and still have a cursor. backup() copies one moment.
  void export_page(Moment now, const ExportRequest& request, Reply<ExportPage> reply);
  /// See Engine::backup. A name has 1 to 100 letters, digits and _ . -, and does not start with a dot.
  void backup(Moment now, std::string_view name, Reply<BackupReport> reply);

  // ---- settings: in force when the call returns, stored when it is answered. `name` is a topic's, or "*"
  // for all.
  void set_settings(Moment now, std::string_view name, Settings settings, Reply<void> reply);
  /// Instead of QueueConfig::defaults; like them it is not stored.
  void set_configured_defaults(Moment now, Settings defaults);
  /// Stops the hand-over of a topic, not pushing.
  void pause(Moment now, std::string_view topic, Reply<void> reply);
  void resume(Moment now, std::string_view topic, Reply<void> reply);
  /// Removes the settings and the figures of a topic without jobs, as if it had never been used. kConflict
  /// when it has jobs, done and dead ones included. Settings from the server's configuration are back when
  /// that is read again.
  void forget(Moment now, std::string_view topic, Reply<void> reply);
  /// Instead of QueueConfig::redis. The listener is told of all topics once more.
  void set_redis_outlet(Moment now, RedisOutlet redis);
  /// kInvalid, with what to do about it, when ready jobs of the topic cannot leave as its settings say. That
  /// is refused where settings are made, but a server may start without what its topics were told to use.
  Status check_delivery(std::string_view topic) const;
  /// All topics with settings of their own for which it is so.
  std::vector<std::pair<std::string, Error>> undeliverable() const;
  /// What it says itself, and what holds for it. The references live until settings change.
  const Settings& settings(std::string_view name) const;
  const EffectiveSettings& effective_settings(std::string_view topic) const;

  // ---- running
  /// Whether a small push would be taken now, without pushing one: the error is what it would be told
  /// (kStopping, kDiskFull, kOverloaded), or that the engine has failed. Answers when what came before is
  /// durable.
  void ready(Moment now, Reply<void> reply);
  /// From now on pushes and pops are refused with kStopping and waiters are sent home. Answers when no lease
  /// is out or the grace period has ended, and everything is flushed. Needs tick() and poll() to go on until
  /// then.
  void stop(Moment now, Millis grace, Reply<StopReport> reply);
  /// Does what is due and answers when it wants to be called next, as far as that was known before the next
  /// verb or poll(). Work per call is bounded.
  Moment tick(Moment now);
  /// Hands out the answers that are ready. Answers whether there were any; if so, there may be more to do.
  bool poll(Moment now);

 private:
  struct Parts;
  class Entry;
  [[nodiscard]] Entry enter(Moment now);

  std::unique_ptr<Parts> parts_;
};

}  // namespace delayq
