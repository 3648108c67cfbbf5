#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <absl/functional/any_invocable.h>

#include "engine/engine.h"
#include "engine/memory/job_table.h"
#include "engine/schedule_table.h"

namespace delayq {

/// The reference model: implements engine.h in the simplest way that is obviously correct. Nothing is durable
/// and everything is exact; the other engines are tested against it. Servers can also use it where all jobs
/// may be lost at shutdown (`--engine memory`).
///
/// Where engine.h leaves a choice, this engine:
///  - replies in the order of the calls;
///  - does everything that is due in every verb, not only in tick();
///  - reports an expired lease again in every tick until it is resolved;
///  - purges jobs in the order in which they entered the state;
///  - cancels a group in push order.
class MemoryEngine final : public Engine {
 public:
  using Settings = std::map<std::string, std::string, std::less<>>;  ///< by topic
  struct NoMark {};
  using Schedules = ScheduleTable<NoMark>;

  MemoryEngine() = default;
  /// Starts with existing jobs: the simulator continues with those that survived a crash. New leases get
  /// numbers above `last_lease`.
  MemoryEngine(memory::JobTable jobs, Settings settings, uint64_t last_lease, Schedules schedules = {})
      : jobs_(std::move(jobs)),
        last_lease_(last_lease),
        settings_(std::move(settings)),
        schedules_(std::move(schedules)) {}

  const memory::JobTable& jobs() const { return jobs_; }
  const Settings& settings() const { return settings_; }
  const Schedules& schedules() const { return schedules_; }
  uint64_t last_lease() const { return last_lease_; }

  void push(Moment now, std::span<const NewJob> jobs, Reply<std::vector<PushAnswer>> reply) override;
  void restore(Moment now, std::span<const RestoreRequest> jobs,
               Reply<std::vector<PushAnswer>> reply) override;
  void take(Moment now, const TakeRequest& request, Reply<TakeAnswer> reply) override;
  void ack(Moment now, std::span<const AckRequest> leases, Reply<std::vector<AckOutcome>> reply) override;
  void nack(Moment now, std::span<const NackRequest> leases, Reply<std::vector<NackOutcome>> reply) override;
  void extend(Moment now, std::span<const ExtendRequest> leases,
              Reply<std::vector<ExtendAnswer>> reply) override;

  void cancel(Moment now, std::span<const JobRef> jobs, Reply<std::vector<CancelOutcome>> reply) override;
  void cancel_group(Moment now, const GroupCancelRequest& request, Reply<GroupCancelAnswer> reply) override;
  void reschedule(Moment now, std::span<const RescheduleRequest> jobs,
                  Reply<std::vector<RescheduleOutcome>> reply) override;
  void redrive(Moment now, std::string_view topic, std::span<const std::string_view> ids,
               Reply<uint64_t> reply) override;
  void redrive_oldest(Moment now, std::string_view topic, uint32_t max, Reply<uint64_t> reply) override;
  void purge(Moment now, std::string_view topic, JobState state, uint32_t max,
             Reply<uint64_t> reply) override;
  void trim(Moment now, const TrimRequest& request, Reply<TrimAnswer> reply) override;

  void get(Moment now, const JobRef& job, Reply<std::optional<FoundJob>> reply) override;
  void locate(Moment now, std::string_view id, Among among, Reply<std::vector<std::string>> reply) override;
  void list(Moment now, const ListRequest& request, Reply<JobPage> reply) override;
  void counts(Moment now, std::string_view topic, Reply<TopicCounts> reply) override;
  void topics(Moment now, std::string_view cursor, uint32_t limit, Reply<TopicPage> reply) override;
  void forecast(Moment now, const ForecastRequest& request, Reply<Forecast> reply) override;
  EngineUsage usage() const override;
  CommitFigures commits() const override { return {}; }

  void store_settings(std::string_view topic, std::string_view settings, Reply<bool> reply) override;
  void load_settings(Reply<std::vector<TopicSettings>> reply) override;

  void turn(Moment now, std::span<const TurnRequest> requests, Reply<std::vector<TurnAnswer>> reply) override;
  void get_schedule(Moment now, std::string_view name, Reply<std::optional<StoredSchedule>> reply) override;
  void list_schedules(Moment now, const ScheduleListRequest& request, Reply<SchedulePage> reply) override;

  void held(Moment now, std::span<const LeaseRef> leases, bool with_bodies, Reply<HeldJobs> reply) override;

  Moment tick(Moment now) override;
  void watch_due(bool is_on) override { watches_due_ = is_on; }
  bool poll(EngineListener& listener) override;
  /// `wakeup` is never called: every event here is caused by a verb or a tick.
  void set_wakeup(std::function<void()> wakeup) override;
  void flush(Reply<bool> reply) override;
  /// Replies kUnavailable: there are no files to copy.
  void backup(std::string_view name, Reply<BackupReport> reply) override;

 private:
  using StoredJob = memory::StoredJob;

  /// Every verb calls this first: does everything that a tick would do.
  void catch_up(Moment now);
  /// Makes the first due delayed job ready, or removes the first kept job whose retention has ended. Returns
  /// false if there is none.
  bool wake_next(Moment now);
  /// Records expired leases for the next poll(). With `again`, also those that were reported before.
  void note_expired(Moment now, bool again);
  PushAnswer push_one(Moment now, const NewJob& job);
  PushAnswer restore_one(Moment now, const RestoreRequest& request);
  /// The job waits for `due`; it is ready at once if `due` has passed.
  void wait_until(StoredJob& job, Moment now, Moment due);
  /// Ends the job. It is kept in `state` if `keep` says so, and removed otherwise.
  void finish(StoredJob& job, JobState state, const Keep& keep, Moment now, std::string_view outcome);
  void revive(StoredJob& job, Moment now);
  TurnAnswer turn_one(Moment now, const TurnRequest& request);
  StoredJob* current(Moment now, const LeaseRef& lease);
  void tell_expired(EngineListener& listener);

  template <class T>
  void answer(Reply<T>& reply, Result<T> result) {
    answers_.push_back(
        [reply = std::move(reply), result = std::move(result)]() mutable { reply(std::move(result)); });
  }

  memory::JobTable jobs_;
  uint64_t last_lease_ = 0;
  Settings settings_;
  Schedules schedules_;

  // Delivered by the next poll().
  std::vector<absl::AnyInvocable<void()>> answers_;
  std::set<std::pair<std::string, Outlet>> ready_topics_;
  std::vector<StoredSchedule> due_schedules_;
  std::vector<DueJob> due_jobs_;
  bool watches_due_ = false;
  std::map<uint64_t, Moment> expired_;  ///< lease; time of the tick or verb that found it expired
};

}  // namespace delayq
