#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "engine/journal/backup.h"
#include "engine/journal/cleaner.h"
#include "engine/journal/disk.h"
#include "engine/journal/job_table.h"
#include "engine/journal/log.h"
#include "engine/journal/store.h"

namespace delayq::journal {

/// When a change is replied to.
enum class Durability : uint8_t {
  kCommit,    ///< after the sync: survives power loss
  kInterval,  ///< after the write: survives kill -9; a power loss may lose the last interval
};

struct JournalOptions {
  uint64_t segment_bytes = 32u << 20;
  Durability durability = Durability::kCommit;
  Millis sync_interval{50};            ///< for Durability::kInterval
  uint64_t disk_reserve = 128u << 20;  ///< pushes are refused while the disk has less free space than this
  uint64_t seed = 0;                   ///< random bits from the caller: key of the id hash, checksum seeds
  uint32_t work_per_tick = 20'000;     ///< how many jobs one tick() (or verb) makes due at most
  Shelf* backups = nullptr;            ///< where backup() puts its copies; must outlive the engine
  bool compacts = true;  ///< false for read-only use on a disk that discards writes (scratch_disk.h)
};

/// The embedded engine: an append-only journal on disk, a table of jobs in RAM, a timing wheel.
///
/// A verb changes the table at once and appends a record to the open commit. poll() sends the commit to the
/// write lane as soon as the previous one is done, so all records that were appended meanwhile share one
/// write and one sync. Ids and bodies are read back from disk when a job is handed out.
///
/// After a failed write or sync the engine cannot promise anything: every verb that would change something
/// replies kUnavailable until the process is restarted. Reads still work.
class JournalEngine final : public Engine {
 public:
  /// Recovers the directory and takes its lock. `disk` and `io` must outlive the engine.
  static Result<std::unique_ptr<JournalEngine>> open(Disk& disk, Io& io, JournalOptions options, Moment now);

  /// Waits for pending work. Nothing is promised about changes without a reply.
  ~JournalEngine() override;

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
  CommitFigures commits() const override { return {log_.commit_micros(), log_.commit_records()}; }

  void store_settings(std::string_view topic, std::string_view settings, Reply<bool> reply) override;
  void load_settings(Reply<std::vector<TopicSettings>> reply) override;

  void turn(Moment now, std::span<const TurnRequest> requests, Reply<std::vector<TurnAnswer>> reply) override;
  void get_schedule(Moment now, std::string_view name, Reply<std::optional<StoredSchedule>> reply) override;
  void list_schedules(Moment now, const ScheduleListRequest& request, Reply<SchedulePage> reply) override;

  void held(Moment now, std::span<const LeaseRef> leases, bool with_bodies, Reply<HeldJobs> reply) override;

  Moment tick(Moment now) override;
  void watch_due(bool is_on) override { watches_due_ = is_on; }
  bool poll(EngineListener& listener) override;
  void set_wakeup(std::function<void()> wakeup) override;
  void flush(Reply<bool> reply) override;
  void backup(std::string_view name, Reply<BackupReport> reply) override;

  /// Figures of the recovery, for the log line at start-up.
  uint64_t recovered_records() const { return recovered_records_; }
  uint64_t cut_bytes() const { return cut_bytes_; }

 private:
  /// The data of a job that is not in its record, as of the moment when the read was requested.
  struct Snapshot {
    StatePayload state;
    uint32_t priority = 0;
    TopicNumber topic = kNoTopic;
    bool has_outcome = false;
    uint32_t handed_over_s = 0;  ///< see Extra
  };
  /// Replaces an outcome text whose record is damaged. The job itself is not affected.
  static constexpr std::string_view kDamagedOutcome = "(the record of its last outcome is damaged)";
  struct Expired {
    Slot slot;
    uint64_t seq;
    uint64_t lease;
  };
  using Later = absl::AnyInvocable<void(const Status&)>;

  JournalEngine(Disk& disk, Io& io, JournalOptions options);

  // ---- before and after a verb
  /// Makes due jobs ready first. Returns false if the engine has failed; `reply` then gets the error.
  template <class T>
  bool begin(Moment now, Reply<T>& reply);
  template <class T>
  void answer(Reply<T> reply, Result<T> result);
  /// Replies when everything appended so far is durable.
  template <class T>
  void answer_when_durable(Reply<T> reply, T value);
  void when_durable(Later later);
  /// The same, but always waits for a sync, even with Durability::kInterval.
  void when_synced(Later later);

  // ---- time
  bool make_due(Moment now);
  void on_wake(Slot slot);
  void announce(Slot slot);
  /// Reads the records of the jobs that became ready, for on_due().
  void read_due();
  void probe_disk(Moment now);

  // ---- records
  /// Sets state.seq to the LSN of this record, unless the job already has a number.
  Location write_job(const NewJob& job, StatePayload& state, Moment pushed);
  void write_state(Slot slot, std::string_view outcome = {});
  /// Removes the job and writes a kGone record.
  void forget(Slot slot);
  void write_gone(uint64_t seq, uint32_t segment);
  /// Changes the state of the job, in RAM and on disk. One record holds the state and the
  /// outcome that led to it.
  void move(Slot slot, const StatePayload& next, std::string_view outcome = {});
  /// Returns the job's current state without its lease, changed to delayed, or to ready if `due` has passed.
  StatePayload waiting_until(Slot slot, Moment due, Moment now) const;
  void finish(Slot slot, JobState state, const Keep& keep, Moment now, std::string_view outcome = {});

  // ---- parts of verbs
  PushAnswer push_one(const NewJob& job, SlotKey key, Moment now);
  PushAnswer restore_one(const RestoreRequest& request, Moment now);
  /// Writes the outcome of a job whose own record follows directly. Sets state.seq.
  Location write_first_outcome(StatePayload& state, std::string_view outcome);
  /// Removes a job that another one with the same id replaces. Returns the arguments for write_gone().
  std::pair<uint64_t, uint32_t> make_way(Slot slot);
  CancelOutcome cancel_one(Slot slot);
  TurnAnswer turn_one(const TurnRequest& request, Moment now);
  /// A new schedule, or one with a new definition.
  void write_schedule(const TurnRequest& request, TurnOutcome outcome);
  /// The same definition. `is_lost`: see Canary::kUnwrittenTurn.
  void write_turned(ScheduleBook::Entry& entry, const TurnRequest& request, TurnOutcome outcome,
                    bool is_lost);
  void remove_schedule(ScheduleBook::Entry& entry);
  NackOutcome nack_one(const NackRequest& request, Moment now);
  /// Returns a live job with this id in another topic, or kNoSlot.
  Slot find_elsewhere(SlotKey key, TopicNumber topic) const;
  bool revive(Slot slot, Moment now);
  /// Returns the kept job at which this call of trim() continues, or kNoSlot if all have been visited.
  Slot trimmed_up_to(TopicNumber topic, const TrimRequest& request);
  /// Shortens the retention of a kept job to `time` after its end. Returns true if that has passed and
  /// the job was removed.
  bool end_sooner(Slot slot, Millis time, Moment now);
  std::optional<Error> refuse_push() const;
  /// Returns the slot of the job if this is its latest lease and, with `at`, is not past its deadline then.
  Slot find_lease(const LeaseRef& ref, std::optional<Moment> at) const;
  Slot find_lease(const std::optional<LeaseNumber>& number, std::string_view topic,
                  std::optional<Moment> at) const;
  Snapshot snapshot(Slot slot) const;
  /// Returns the job at which the requested page begins, or kNoSlot if there is none.
  Result<Slot> start_of_page(TopicNumber topic, const ListRequest& request) const;
  struct LookedAt;
  LookedAt look_at(Slot slot, const ListRequest& request);
  void end_page(JobPage& page, const LookedAt& looked_at, size_t stops);
  /// Fills `job` from its record, with the state of the snapshot. Returns false if the record is damaged.
  static bool fill_job(Job& job, const Snapshot& snapshot, const std::optional<RecordView>& record,
                       const std::optional<RecordView>& outcome);
  void add_locations(Slot slot, std::vector<Location>& wanted) const;
  TakeAnswer hand_out(std::span<const Snapshot> taken, RecordReader::Found found, Moment now);
  /// Returns the job of a take, or kNoSlot if its state or lease has changed since.
  Slot find_taken(const Snapshot& job) const;
  /// The job's record is damaged: it becomes dead with this reason, so that it stays visible.
  void bury(const Snapshot& job, std::string_view reason, Moment now);
  /// The job's record could not be read now: returns the job as it was. A job that was acked by the take
  /// becomes dead instead, so that an operator sees it.
  void give_back(const Snapshot& job, Moment now);
  void tell_expired(EngineListener& listener);

  // ---- commits
  void begin_commit();
  void on_commit(const Status& status);
  void fail(const Status& status);
  void release(std::deque<std::pair<Lsn, Later>>& waiting, Lsn end);

  Disk& disk_;
  Io& io_;
  JournalOptions options_;
  std::unique_ptr<Disk::Lock> lock_;
  Store store_;
  Manifest manifest_;  ///< used by the write lane only, except while opening and closing
  Log log_;
  RecordReader reader_;
  Cleaner cleaner_;
  Backup backup_;

  std::vector<Io::Step> ready_;  ///< replies for the next poll
  /// Replies that wait until their records are durable, in the order of the records.
  std::deque<std::pair<Lsn, Later>> undurable_;
  /// flushes and backups: the same, but they always wait for a sync
  std::deque<std::pair<Lsn, Later>> unsynced_;
  std::vector<std::pair<TopicNumber, Outlet>> announced_;
  std::vector<Expired> expired_;
  std::vector<LeaseInfo> expired_infos_;
  bool watches_due_ = false;
  std::vector<Location> due_records_;  ///< of jobs that became ready, not read yet
  std::vector<DueJob> due_jobs_;
  uint64_t due_left_out_ = 0;
  std::vector<StoredSchedule> due_schedules_;
  std::optional<Error> failure_;
  Moment now_{};
  uint64_t next_lease_ = 0;
  uint64_t commits_ = 0;
  uint64_t recovered_records_ = 0;
  uint64_t cut_bytes_ = 0;
  Moment last_sync_{};
  bool sync_is_due_ = false;
  Moment next_probe_{};
};

template <class T>
bool JournalEngine::begin(Moment now, Reply<T>& reply) {
  if (failure_) {
    answer(std::move(reply), Result<T>(*failure_));
    return false;
  }
  now_ = now;
  log_.set_time(now);
  make_due(now);
  return true;
}

template <class T>
void JournalEngine::answer(Reply<T> reply, Result<T> result) {
  ready_.push_back(
      [reply = std::move(reply), result = std::move(result)]() mutable { reply(std::move(result)); });
}

template <class T>
void JournalEngine::answer_when_durable(Reply<T> reply, T value) {
  when_durable([reply = std::move(reply), value = std::move(value)](const Status& status) mutable {
    if (status.ok()) {
      reply(std::move(value));
    } else {
      reply(status.error());
    }
  });
}

}  // namespace delayq::journal
