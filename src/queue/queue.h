#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "queue/news.h"
#include "queue/settings.h"
#include "queue/verbs.h"

namespace delayq {

/// The service that every API calls. All rules are here, and only here: which requests are valid, which
/// consumer gets which job and when, what happens after a failure, how long finished jobs are kept, and which
/// bounds apply. The engine only stores the jobs.
///
/// Answers. Every verb takes a Reply. It is called exactly once, by poll(), never from inside the verb
/// itself. (The Reply of a dropped waiter is never called.) A batch has a result for each item: an invalid
/// item is not stored, and does not stop the others. The whole batch fails only when it is too large or the
/// queue is stopping. An answer to a verb that changes something means that the change is durable, as far as
/// the engine promises. A Reply may call verbs, but not poll() or tick().
///
/// Time. `now` is the server's wall clock. It may jump forward or back between calls. The loop is
///
///   for (;;) {
///     read what has arrived, and call verbs;
///     do { next = queue.tick(now); } while (queue.poll(now));
///     wait until `next`, until something arrives, or until the engine's wakeup;
///   }
///
/// Order. A verb takes effect when it is called: the next verb sees its effect, even before the answer. Verbs
/// of several steps (nack, purge, redrive, cancel_group, verbs by id alone, pop of several topics, export,
/// changes of schedules) take effect between their call and their answer. A client whose verbs must take
/// effect in order makes them part of one Sequence (see in_order()), and calls none while the sequence is
/// busy.
///
/// The same calls with the same seed over the same engine give the same answers in the same order.
///
/// Threads. The queue starts none and has no locks: call all methods from one thread.
///
/// Bounds. Batches, waiters, topics, unanswered bytes, memory and disk have bounds (core/limits.h,
/// QueueConfig). Above them, pushes and pops fail with kOverloaded or kDiskFull and a `retry_after`. Verbs
/// that free room still work.
class Queue final {
 public:
  /// `engine` must outlive the queue, and only the queue may poll it. Do not poll it after the queue is
  /// destroyed: its pending answers refer to the queue. For the same reason a new queue needs a new engine,
  /// unless no answer is pending. `seed` determines ids and jitter: each server needs a different one.
  Queue(Engine& engine, QueueConfig config, uint64_t seed);
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  /// Reads settings and topics from the engine. REQUIRES: no other verb is called before the answer. kCorrupt
  /// when some settings cannot be read; the queue then works with the others.
  void start(Moment now, Reply<void> reply);

  /// Verbs that are called while this guard exists belong to `sequence`. REQUIRES: only one guard at a time,
  /// and no poll() or tick() while it exists.
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
  /// For a client's request that needs several verbs: its sequence is busy until the returned Steps ends.
  Steps begin_steps() const;

  // ---- producers
  void push(Moment now, std::span<const PushRequest> jobs, Reply<PushReport> reply);
  void cancel(Moment now, std::span<const JobRef> jobs, Reply<std::vector<Result<CancelOutcome>>> reply);
  /// By id alone. kConflict when the id is live in several topics.
  void cancel_by_id(Moment now, std::string_view id, Reply<CancelOutcome> reply);
  /// Cancels all waiting jobs of the group in those topics. Its running jobs will not be retried. A large
  /// group is cancelled in steps, and other clients may push to it in between.
  void cancel_group(Moment now, std::string_view group, TopicPatterns topics, Reply<GroupCancelAnswer> reply);
  /// Moves delayed, ready and dead jobs to a new time.
  void reschedule(Moment now, std::span<const RescheduleItem> items,
                  Reply<std::vector<Result<RescheduleOutcome>>> reply);

  // ---- consumers
  /// Replies with ready jobs, topic by topic in the order given. If there are none, waits up to
  /// `request.wait` for the first job, and then replies with an empty list. Consumers that wait for the same
  /// topic are served in the order of their pops. Returns 0 when the request is refused.
  ///
  /// kInvalid for a topic whose jobs are delivered otherwise (Settings::delivery), also for a pop that
  /// already waits when the setting changes. Jobs with a callback of their own are never popped.
  WaiterId pop(Moment now, const PopRequest& request, Reply<PopAnswer> reply);
  /// Whether the engine is divided into parts. Then a pop of a single topic and the verbs on whole topics
  /// are verbs of several steps, too.
  bool has_parts() const;
  /// The maximum number of bytes of bodies in the answer to this pop, for callers with limited room.
  uint64_t most_bytes(const PopRequest& request) const;
  /// The consumer has disconnected. Its Reply will not be called. A job that was being handed over to it
  /// returns to its place in line, and the attempt is not counted. Returns false when the pop was already
  /// answered.
  bool drop_waiter(Moment now, WaiterId waiter);
  /// Takes ready jobs for one outlet, under the same rules (pause, rate, concurrency) as a pop. Never waits:
  /// an empty answer means that there are no jobs now, and the listener will be notified when there may be.
  void take_for_delivery(Moment now, const DeliveryRequest& request, Reply<PopAnswer> reply);
  /// `listener` is notified from now on, and must outlive the queue. Set it before start(), which notifies it
  /// of all topics with ready jobs.
  void set_delivery_listener(DeliveryListener* listener);
  /// Replies how many of the leases were current. The jobs of the others are unchanged.
  void give_back(Moment now, std::span<const GiveBackItem> items, Reply<uint64_t> reply);
  /// kStaleLease for an item whose lease is not the current one, or has expired.
  void ack(Moment now, std::span<const AckItem> items, Reply<std::vector<Status>> reply);
  /// For a consumer that knows the job but not its lease: acks the current lease. kNotFound when there is no
  /// such job, kConflict when it is not reserved. Unlike ack(), this cannot detect that the consumer is late
  /// and another one has the job now.
  void ack_job(Moment now, const JobRef& job, Reply<void> reply);
  void nack(Moment now, std::span<const NackItem> items, Reply<std::vector<Result<NackReceipt>>> reply);
  /// Replies with the new deadlines.
  void extend(Moment now, std::span<const ExtendItem> items, Reply<std::vector<Result<Moment>>> reply);

  // ---- dead letters and cleaning up. Each replies with the number of jobs.
  void redrive_all(Moment now, std::string_view topic, Reply<uint64_t> reply);
  void redrive(Moment now, std::string_view topic, std::span<const std::string_view> ids,
               Reply<uint64_t> reply);
  /// Redrives the jobs whose last error contains `error`.
  void redrive_by_error(Moment now, std::string_view topic, std::string_view error, Reply<uint64_t> reply);
  /// Without a state, all jobs are removed, including the running ones, whose leases become stale.
  void purge(Moment now, std::string_view topic, std::optional<JobState> state, Reply<uint64_t> reply);

  // ---- looking around
  void get(Moment now, const JobRef& job, Reply<std::optional<FoundJob>> reply);
  /// By id alone, among the live jobs of those topics. kConflict when the id is live in several of them.
  void find(Moment now, std::string_view id, TopicPatterns topics, Reply<std::optional<FoundJob>> reply);
  /// By id alone, also among done and dead jobs. When several topics have the id, replies with the live job,
  /// or with the one that was pushed last if none is live. kConflict when the id is live in several topics.
  void find_kept_too(Moment now, std::string_view id, TopicPatterns topics,
                     Reply<std::optional<FoundJob>> reply);
  void list(Moment now, const ListRequest& request, Reply<JobPage> reply);
  void topics(Moment now, std::string_view cursor, uint32_t limit, Reply<TopicSummaries> reply);
  /// The cost of stats() and totals() does not depend on the number of jobs and topics.
  void stats(Moment now, std::string_view topic, Reply<TopicStats> reply);
  void totals(Moment now, Reply<TotalStats> reply);
  /// Stored jobs, and the occurrences of the schedules of `topics`. Counting these takes time, so it is done
  /// in bounded steps.
  void forecast(Moment now, const ForecastRequest& request, TopicPatterns topics,
                Reply<ForecastReport> reply);

  // ---- schedules: rules that make jobs again and again (rule 16). A schedule whose topic is not among
  // `topics` is as if it were not there; setting one of its name is kConflict. The caller checks that the
  // topic of a new definition is allowed.
  /// Creates the schedule, or replaces its definition. The phase, the counts and a pause stay. Occurrences of
  /// another rule begin now; an occurrence of the old rule that is due is made first. If there are many, or
  /// the schedule is paused, those that are left are counted as missed.
  void set_schedule(Moment now, const ScheduleSpec& spec, TopicPatterns topics, Reply<ScheduleReceipt> reply);
  void get_schedule(Moment now, std::string_view name, TopicPatterns topics,
                    Reply<std::optional<ScheduleView>> reply);
  void list_schedules(Moment now, const ScheduleListing& request, TopicPatterns topics,
                      Reply<ScheduleViews> reply);
  /// kNotFound, here and below, when there is none. Jobs that it has made stay.
  void remove_schedule(Moment now, std::string_view name, TopicPatterns topics, Reply<void> reply);
  /// No occurrences until it is resumed. Those that are missed meanwhile are treated as `missed` says.
  void pause_schedule(Moment now, std::string_view name, TopicPatterns topics, Reply<ScheduleView> reply);
  void resume_schedule(Moment now, std::string_view name, TopicPatterns topics, Reply<ScheduleView> reply);
  /// Makes a job now, in addition to the occurrences. It counts neither for `runs` nor for `overlap`.
  void run_schedule(Moment now, std::string_view name, TopicPatterns topics, Reply<ScheduleRun> reply);
  /// Stores a schedule as it was elsewhere, with its progress. With kKeep, the same schedule that has not
  /// come as far gets the progress, but stays paused or not (kReplaced).
  void restore_schedule(Moment now, const ScheduleSpec& spec, const ScheduleProgress& progress,
                        OnConflict on_conflict, Reply<RestoreOutcome> reply);
  /// Marks a schedule that is being moved to another place, or removes the mark. With it the schedule makes
  /// no jobs, so that it can be restored elsewhere as it is and then removed. Resume and restore remove the
  /// mark, too. kReplaced, or kKept when it was so before.
  void mark_moving(Moment now, std::string_view name, bool moving, Reply<RestoreOutcome> reply);

  /// News of single jobs from now on, or from the cursor of a listener with the same filter that has left
  /// (queue/news.h). Destroy the listener to end them.
  Result<std::shared_ptr<NewsListener>> listen(Moment now, NewsFilter filter, std::string_view cursor);

  // ---- export, restore and backup
  /// Stores jobs in the state that they had elsewhere, under the same rules and bounds as a push. A reserved
  /// job loses its lease: it is ready at its due time, and its attempts are kept. When a topic would keep
  /// more done or dead jobs than its settings allow, the oldest are removed.
  void restore(Moment now, std::span<const RestoreItem> items,
               Reply<std::vector<Result<RestoreReceipt>>> reply);
  /// Stores the settings of a topic, or of "*". `on_conflict` applies when it already has settings.
  void restore_settings(Moment now, std::string_view name, Settings settings, OnConflict on_conflict,
                        Reply<RestoreOutcome> reply);
  /// One page of all jobs, settings and schedules: the defaults, then the schedules, then the topics in the
  /// order of their names, each with its settings and its delayed, ready, reserved, done and dead jobs. A
  /// page may be short or even empty and still have a cursor.
  ///
  /// Schedules come before jobs, so that no occurrence is lost: one that becomes a job during the export is
  /// either among the jobs, or still to be made as the exported schedule says.
  ///
  /// This is not a snapshot, because other verbs run between pages (backup() makes a snapshot). A job that
  /// stays in its state is exported exactly once. A job that moves forward (falls due, is taken, is done) may
  /// be exported twice, the earlier state first. A job that moves back (is retried, rescheduled or redriven)
  /// may be missed.
  void export_page(Moment now, const ExportRequest& request, Reply<ExportPage> reply);
  /// See Engine::backup. A name has 1 to 100 letters, digits and _ . -, and does not start with a dot.
  void backup(Moment now, std::string_view name, Reply<BackupReport> reply);

  // ---- settings. They apply when the call returns and are durable when it is answered. `name` is a topic,
  // or "*" for the defaults.
  void set_settings(Moment now, std::string_view name, Settings settings, Reply<void> reply);
  /// Replaces QueueConfig::defaults. They are not stored.
  void set_configured_defaults(Moment now, Settings defaults);
  /// Stops the hand-over of a topic. Pushes are still accepted.
  void pause(Moment now, std::string_view topic, Reply<void> reply);
  void resume(Moment now, std::string_view topic, Reply<void> reply);
  /// Removes the settings and the figures of a topic without jobs, as if it had never been used. kConflict
  /// when it has jobs, including done and dead ones. Settings that come from the server's configuration
  /// return when the configuration is read again. Replies whether this server knew the topic.
  void forget(Moment now, std::string_view topic, Reply<bool> reply);
  /// Replaces QueueConfig::redis. The listener is notified of all topics again.
  void set_redis_outlet(Moment now, RedisOutlet redis);
  /// kInvalid when ready jobs of the topic cannot be delivered as its settings say; the error says how to
  /// repair it. set_settings() refuses such settings, but a server may start without the Redis that stored
  /// settings need.
  Status check_delivery(std::string_view topic) const;
  /// Asked why the host of a callback is not called now, when a topic or a job is looked at.
  void set_callback_problem(std::function<std::string(Moment now, std::string_view url)> problem);
  /// Why a job that waits cannot be delivered now: its topic cannot deliver (check_delivery()), or the host
  /// of its callback is not called. Empty: nothing is known against it.
  std::string delivery_problem(Moment now, const Job& job);
  /// The topics with settings of their own for which check_delivery() fails.
  std::vector<std::pair<std::string, Error>> undeliverable() const;
  /// A topic's own settings, and those in force for it. The references are valid until settings change.
  const Settings& settings(std::string_view name) const;
  const EffectiveSettings& effective_settings(std::string_view topic) const;

  // ---- running
  /// Checks whether a small push would be accepted now, without pushing. The error is the one that the push
  /// would get (kStopping, kDiskFull, kOverloaded), or the failure of the engine. Replies when all earlier
  /// changes are durable.
  void ready(Moment now, Reply<void> reply);
  /// From now on pushes and pops are refused with kStopping, and waiting pops get an empty answer. Replies
  /// when no job is reserved or the grace period has ended, and everything is flushed. Continue to call
  /// tick() and poll() until then.
  void stop(Moment now, Millis grace, Reply<StopReport> reply);
  /// Does what is due and returns when to call it next. A verb or a poll() may make that time earlier. The
  /// work per call is bounded.
  Moment tick(Moment now);
  /// Calls the Replies whose answers are ready. Returns whether there were any: there may be more to do then.
  bool poll(Moment now);

 private:
  struct Parts;
  class Entry;
  [[nodiscard]] Entry enter(Moment now);

  std::unique_ptr<Parts> parts_;
};

}  // namespace delayq
