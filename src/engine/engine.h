#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include <absl/functional/any_invocable.h>

#include "core/result.h"
#include "engine/requests.h"

namespace delayq {

/// Takes an answer. Called exactly once, from Engine::poll(), never from inside the call that asked.
template <class T>
using Reply = absl::AnyInvocable<void(Result<T>)>;

/// What an engine tells without being asked. Called only from Engine::poll().
class EngineListener {
 public:
  virtual ~EngineListener() = default;

  /// The topic has ready jobs for that outlet that were not there before. May come once for many jobs, or
  /// without cause.
  virtual void on_ready(std::string_view topic, Outlet outlet) = 0;

  /// Leases that ran out. The queue answers each with a nack (`expired` set). Told at least once each.
  virtual void on_expired(std::vector<LeaseInfo> leases) = 0;

  /// Another server may have changed the notes on topics: load_settings() answers what holds now. Only from
  /// engines that servers share.
  virtual void on_settings_changed() {}
};

/// Where jobs wait.
///
/// An engine keeps jobs and carries out the transitions of core/job_state.h, each atomic and durable by
/// itself. What to do is decided above it, in `queue`, and reaches it as plain values; an engine has no rules
/// of its own but these:
///
///  - Identity. A job is (topic, id). A push finds the id free unless a live job has it; a kept (done, dead)
///  job gives
///    way without a trace.
///  - Order. Ready jobs of a topic and outlet are taken by priority (lowest first), then due time, then push
///  order.
///  - Never early. A job becomes ready at the first tick() or verb whose `now` is not before its due time.
///  (What
///    else a tick would do, a verb may do as well.)
///  - Fencing. ack, nack and extend work only with the lease of the latest take, before its deadline, else
///  kStale.
///
/// Answers. Verbs take batches and apply them in call order; the effect is visible to the next verb at once
/// (but see has_parts()).
/// The answer comes later, through the Reply, from poll(): for push, restore, ack, nack, cancel, reschedule,
/// redrive, purge, trim, extend, settings and take with auto_ack when the change is durable; for reads and
/// take as soon as the data is at hand. (Losing the record of a lease only makes the job ready again.)
/// Answers come in any order between verbs. An Error as answer means that nothing of the batch is promised:
/// it may or may not have happened. A Reply (and a listener) may call verbs; it never calls poll(). An engine
/// may be destroyed with answers outstanding: they never come. Who asked may go before that, if nobody polls
/// then.
///
/// Time. `now` is an argument everywhere and may jump either way between calls.
///
/// Threads. All methods are called from one thread. Only the function given to set_wakeup() is called from
/// others.
///
/// Batches have bounds (core/limits.h); the queue keeps them, an engine may rely on them.
class Engine {
 public:
  virtual ~Engine() = default;

  // ---- a job's life
  /// Of no jobs: answers, after a flush(), the error that a push would get now.
  virtual void push(Moment now, std::span<const NewJob> jobs, Reply<std::vector<PushAnswer>> reply) = 0;
  /// Stores jobs as they were, in any state, each in one step; they are the latest in the order of pushes and
  /// of their state. PushAnswer::kReplaced where a job of that id, in whatever state, gave way.
  virtual void restore(Moment now, std::span<const RestoreRequest> jobs,
                       Reply<std::vector<PushAnswer>> reply) = 0;
  virtual void take(Moment now, const TakeRequest& request, Reply<TakeAnswer> reply) = 0;
  virtual void ack(Moment now, std::span<const AckRequest> leases, Reply<std::vector<AckOutcome>> reply) = 0;
  virtual void nack(Moment now, std::span<const NackRequest> leases,
                    Reply<std::vector<NackOutcome>> reply) = 0;
  /// A new deadline may be nearer than the old one.
  virtual void extend(Moment now, std::span<const ExtendRequest> leases,
                      Reply<std::vector<ExtendAnswer>> reply) = 0;
  /// The info of each lease that is current, in the order asked; those that are stale are left out.
  virtual void inspect(Moment now, std::span<const LeaseRef> leases, Reply<std::vector<LeaseInfo>> reply) = 0;

  // ---- by id, by group, by topic
  virtual void cancel(Moment now, std::span<const JobRef> jobs, Reply<std::vector<CancelOutcome>> reply) = 0;
  /// Cancels up to `max` jobs of the group in those topics; fewer than `max` in all means that none is left.
  /// A running job whose cancel was asked for before is not met again.
  virtual void cancel_group(Moment now, const GroupCancelRequest& request,
                            Reply<GroupCancelAnswer> reply) = 0;
  virtual void reschedule(Moment now, std::span<const RescheduleRequest> jobs,
                          Reply<std::vector<RescheduleOutcome>> reply) = 0;
  /// Dead jobs become ready, due now, with their attempts back at zero. Answers how many of `ids` were dead.
  virtual void redrive(Moment now, std::string_view topic, std::span<const std::string_view> ids,
                       Reply<uint64_t> reply) = 0;
  /// The same for the `max` that died first.
  virtual void redrive_oldest(Moment now, std::string_view topic, uint32_t max, Reply<uint64_t> reply) = 0;
  /// Forgets up to `max` jobs of the topic in that state. Leases of forgotten jobs are stale.
  virtual void purge(Moment now, std::string_view topic, JobState state, uint32_t max,
                     Reply<uint64_t> reply) = 0;

  /// Applies bounds to jobs that are kept already. Forgets those that came first for as long as there are
  /// more than `count` (an engine whose jobs are in several places may leave a few more), and lets the others
  /// be kept for no longer than `time` from their ends on. Where the end is not known (an imported job, or a
  /// record of an earlier version), from `now` on. None is kept for longer than before. A walk of several
  /// calls meets every job that is kept when it begins.
  virtual void trim(Moment now, const TrimRequest& request, Reply<TrimAnswer> reply) = 0;

  // ---- looking around
  virtual void get(Moment now, const JobRef& job, Reply<std::optional<FoundJob>> reply) = 0;
  /// The topics that have a job with `id` among those, in no particular order.
  virtual void locate(Moment now, std::string_view id, Among among,
                      Reply<std::vector<std::string>> reply) = 0;
  virtual void list(Moment now, const ListRequest& request, Reply<JobPage> reply) = 0;
  /// An empty topic: all of them together (without `oldest_ready`).
  virtual void counts(Moment now, std::string_view topic, Reply<TopicCounts> reply) = 0;
  virtual void topics(Moment now, std::string_view cursor, uint32_t limit, Reply<TopicPage> reply) = 0;
  virtual void forecast(Moment now, const ForecastRequest& request, Reply<Forecast> reply) = 0;
  virtual EngineUsage usage() const = 0;
  virtual CommitFigures commits() const = 0;

  // ---- the queue's own notes on topics (pause, limits, policies): kept and given back, never read
  /// Empty `settings` removes the note.
  virtual void store_settings(std::string_view topic, std::string_view settings, Reply<bool> reply) = 0;
  virtual void load_settings(Reply<std::vector<TopicSettings>> reply) = 0;

  // ---- running
  /// Whether verbs that look at a whole topic (take, list, counts, topics, forecast) are several requests,
  /// one after the other: they then take effect between their call and their answer, and not in the call.
  virtual bool has_parts() const { return false; }
  /// Does what is due at `now` (delayed jobs become ready, leases run out, retention ends) and answers when
  /// it wants to be called next. Work per call is bounded: with more to do the answer is `now`.
  virtual Moment tick(Moment now) = 0;
  /// Hands out the answers and the news that are ready. Answers whether there were any.
  virtual bool poll(EngineListener& listener) = 0;
  /// `wakeup` is called, from any thread, when poll() has something to do that no verb or tick caused just
  /// now.
  virtual void set_wakeup(std::function<void()> wakeup) = 0;
  /// Answers when everything before it is durable and usage() knows of it.
  virtual void flush(Reply<bool> reply) = 0;
  /// Copies all that is kept, as of one moment, to a place of that name, while everything goes on. The copy
  /// has every change that was answered before the call, and each that was not yet answered wholly or not at
  /// all; it is durable and complete under its name when answered, and after an error there is none.
  /// kConflict when the name is in use; kUnavailable from an engine that has nothing to copy, or nowhere to
  /// copy it to, or is making another copy.
  virtual void backup(std::string_view name, Reply<BackupReport> reply) = 0;
};

}  // namespace delayq
