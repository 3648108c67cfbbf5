#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include <absl/functional/any_invocable.h>

#include "core/result.h"
#include "engine/requests.h"
#include "engine/schedules.h"

namespace delayq {

/// Receives the result of a verb. Called exactly once, from Engine::poll(), never from inside the verb.
template <class T>
using Reply = absl::AnyInvocable<void(Result<T>)>;

/// Receives events that are not the reply to a verb. Called only from Engine::poll().
class EngineListener {
 public:
  virtual ~EngineListener() = default;

  /// The topic has new ready jobs for that outlet. One call may stand for many jobs or for none.
  virtual void on_ready(std::string_view topic, Outlet outlet) = 0;

  /// Expired leases. The queue resolves each with a nack (`expired` set). Each one is reported at least once.
  virtual void on_expired(std::vector<LeaseInfo> leases) = 0;

  /// Another server may have changed the settings of topics: load_settings() returns the current ones. Only
  /// engines that several servers share call this.
  virtual void on_settings_changed() {}

  /// After Engine::watch_due(true): delayed jobs that became ready. `left_out` more were too many to be
  /// named.
  virtual void on_due(std::vector<DueJob> jobs, uint64_t left_out) { (void)jobs, (void)left_out; }

  /// Another server that shares the jobs has called tell_others().
  virtual void on_told(std::string_view message) { (void)message; }

  /// Schedules whose `next` has come, at most kDueSchedules and about kDueScheduleBytes in one call. The
  /// queue resolves each with a turn. Each one is reported at least once, and again every
  /// kDueScheduleReminder until a turn gives it a later `next`.
  virtual void on_schedules_due(std::vector<StoredSchedule> due) = 0;
};

/// Stores jobs.
///
/// An engine carries out the transitions of core/job_state.h; each is atomic and durable by itself. The
/// layer above, `queue`, decides what to do and passes the decision as plain values. An engine has only
/// these rules of its own:
///
///  - Identity. A job is (topic, id). Only a live job occupies its id: a push of the same id silently
///    replaces a kept (done or dead) job.
///  - Order. Ready jobs of a topic and outlet are taken by priority (lowest first), due time, push order.
///  - Never early. A job becomes ready at the first tick() or verb whose `now` is not before its due time. (A
///    verb may also do anything else that a tick would do.)
///  - Fencing. ack, nack and extend work only with the lease of the latest take and before its deadline;
///    otherwise the outcome is kStale.
///
/// Replies. Verbs take batches and apply them in call order. The next verb sees the effect at once (but see
/// has_parts()). The reply comes later, from poll():
///  - push, restore, ack, nack, cancel, reschedule, redrive, purge, trim, extend, store_settings, turn, and
///    take with auto_ack reply when the change is durable;
///  - reads, and take without auto_ack, reply as soon as the data is available. (If the record of a lease is
///    lost, the job only becomes ready again.)
///
/// Replies of different verbs come in any order. An Error as reply promises nothing about the batch: each
/// part of it may or may not have taken effect. A Reply or a listener may call verbs, but not poll(). An
/// engine may be destroyed while replies are outstanding; these are never called. The objects that a Reply
/// refers to may be destroyed before the engine, if poll() is not called after that.
///
/// Time. `now` is an argument everywhere and may jump in either direction between calls.
///
/// Threads. All methods are called from one thread. Only the function passed to set_wakeup() is called from
/// other threads.
///
/// Batches are bounded (core/limits.h): the queue enforces the bounds, and an engine may rely on them.
class Engine {
 public:
  virtual ~Engine() = default;

  // ---- a job's life
  /// An empty batch stores nothing. It replies with the error that a push would get now; this is up to date
  /// after a flush().
  virtual void push(Moment now, std::span<const NewJob> jobs, Reply<std::vector<PushAnswer>> reply) = 0;
  /// Stores jobs in the state that they had, each atomically. They come last in push order and in the
  /// order of their state. The outcome is PushOutcome::kReplaced where the job replaced one with the same
  /// id, in any state.
  virtual void restore(Moment now, std::span<const RestoreRequest> jobs,
                       Reply<std::vector<PushAnswer>> reply) = 0;
  virtual void take(Moment now, const TakeRequest& request, Reply<TakeAnswer> reply) = 0;
  virtual void ack(Moment now, std::span<const AckRequest> leases, Reply<std::vector<AckOutcome>> reply) = 0;
  virtual void nack(Moment now, std::span<const NackRequest> leases,
                    Reply<std::vector<NackOutcome>> reply) = 0;
  /// The new deadline may be earlier than the old one.
  virtual void extend(Moment now, std::span<const ExtendRequest> leases,
                      Reply<std::vector<ExtendAnswer>> reply) = 0;

  /// The jobs of these leases, whether or not their deadlines have passed. Changes nothing. Without bodies,
  /// the work per call is bounded: jobs with very many bytes together may be missing.
  virtual void held(Moment now, std::span<const LeaseRef> leases, bool with_bodies,
                    Reply<HeldJobs> reply) = 0;

  // ---- by id, by group, by topic
  virtual void cancel(Moment now, std::span<const JobRef> jobs, Reply<std::vector<CancelOutcome>> reply) = 0;
  /// Cancels up to `max` jobs of the group in these topics. A running job whose cancel was requested before
  /// is skipped and not counted. The work per call is bounded, so it may end before `max` because of jobs
  /// that are skipped. A walk of several calls visits every job that is in the group during the whole walk,
  /// and goes on where it was: jobs that are skipped are not visited again by each call.
  virtual void cancel_group(Moment now, const GroupCancelRequest& request,
                            Reply<GroupCancelAnswer> reply) = 0;
  virtual void reschedule(Moment now, std::span<const RescheduleRequest> jobs,
                          Reply<std::vector<RescheduleOutcome>> reply) = 0;
  /// Makes dead jobs ready, due now, with zero attempts. Replies how many of `ids` were dead.
  virtual void redrive(Moment now, std::string_view topic, std::span<const std::string_view> ids,
                       Reply<uint64_t> reply) = 0;
  /// The same for the `max` jobs that died first.
  virtual void redrive_oldest(Moment now, std::string_view topic, uint32_t max, Reply<uint64_t> reply) = 0;
  /// Removes up to `max` jobs of the topic in that state. Leases of removed jobs become stale.
  virtual void purge(Moment now, std::string_view topic, JobState state, uint32_t max,
                     Reply<uint64_t> reply) = 0;

  /// Applies new bounds to jobs that are already kept. Removes the oldest while there are more than `count`
  /// (an engine that spreads a topic over several places may leave a few more), and shortens the retention of
  /// the others to `time` after their end. Where the end is not known (an imported job, or a record of an
  /// earlier version), `time` counts from `now`. No retention becomes longer. A walk of several calls visits
  /// every job that is kept when the walk begins.
  virtual void trim(Moment now, const TrimRequest& request, Reply<TrimAnswer> reply) = 0;

  // ---- looking around
  virtual void get(Moment now, const JobRef& job, Reply<std::optional<FoundJob>> reply) = 0;
  /// Replies with the topics that have a job with this id in the states of `among`, in no particular order.
  virtual void locate(Moment now, std::string_view id, Among among,
                      Reply<std::vector<std::string>> reply) = 0;
  virtual void list(Moment now, const ListRequest& request, Reply<JobPage> reply) = 0;
  /// With an empty topic: the sum over all topics, without `oldest_ready` and `oldest_lease`.
  virtual void counts(Moment now, std::string_view topic, Reply<TopicCounts> reply) = 0;
  virtual void topics(Moment now, std::string_view cursor, uint32_t limit, Reply<TopicPage> reply) = 0;
  virtual void forecast(Moment now, const ForecastRequest& request, Reply<Forecast> reply) = 0;
  virtual EngineUsage usage() const = 0;
  virtual CommitFigures commits() const = 0;

  // ---- settings of topics: the queue's own data (pause, limits, policies), which an engine stores unread
  /// Empty `settings` removes the entry of the topic.
  virtual void store_settings(std::string_view topic, std::string_view settings, Reply<bool> reply) = 0;
  virtual void load_settings(Reply<std::vector<TopicSettings>> reply) = 0;

  // ---- schedules: rules that make jobs again and again. The queue has the rules; an engine stores them
  /// Each request is one atomic step: see TurnRequest. A job that is pushed is like any other job. An engine
  /// that cannot keep a schedule and its jobs in one place replies with kUnavailable.
  virtual void turn(Moment now, std::span<const TurnRequest> requests,
                    Reply<std::vector<TurnAnswer>> reply) = 0;
  virtual void get_schedule(Moment now, std::string_view name,
                            Reply<std::optional<StoredSchedule>> reply) = 0;
  virtual void list_schedules(Moment now, const ScheduleListRequest& request, Reply<SchedulePage> reply) = 0;

  // ---- running
  /// Whether verbs that look at a whole topic (take, list, counts, topics, forecast) consist of several
  /// requests, sent one after the other. If so, they take effect between the call and the reply, not
  /// during the call.
  virtual bool has_parts() const { return false; }
  /// Does what is due at `now` (delayed jobs become ready, leases expire, retention ends) and returns when it
  /// wants to be called next. The work per call is bounded: if more is left, it returns `now`.
  virtual Moment tick(Moment now) = 0;
  /// Calls the replies and listener events that are pending. Returns whether there were any.
  virtual bool poll(EngineListener& listener) = 0;
  /// `wakeup` is called, from any thread, when poll() has work that was not
  /// caused by a verb or a tick just before.
  virtual void set_wakeup(std::function<void()> wakeup) = 0;
  /// Whether on_due() is called from now on. Jobs that are pushed with a due time that has passed are not
  /// reported. Where several servers share the jobs, each that watches hears of the jobs of all.
  virtual void watch_due(bool is_on) = 0;
  /// Sends a short message to the other servers that share the jobs, without a promise that it arrives.
  virtual void tell_others(std::string_view message) { (void)message; }
  /// Replies when all verbs before it are durable and included in usage().
  virtual void flush(Reply<bool> reply) = 0;
  /// Copies all jobs and settings, as of one moment, to a new place with that name, while the engine keeps
  /// working. The copy contains every change that was replied to before the call, and each other change
  /// either completely or not at all. On success the copy is durable and complete under its name; after an
  /// error there is no copy. kConflict: the name is in use. kUnavailable: the engine has nothing to copy or
  /// no place to copy to, or is making another copy.
  virtual void backup(std::string_view name, Reply<BackupReport> reply) = 0;
};

}  // namespace delayq
