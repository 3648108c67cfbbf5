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
#include "engine/journal/log.h"
#include "engine/journal/record_reader.h"
#include "engine/journal/store.h"

namespace delayq::journal {

/// When an answer leaves.
enum class Durability : uint8_t {
  kCommit,    ///< after the sync: survives power loss
  kInterval,  ///< after the write: survives kill -9; power loss may take the last interval
};

struct JournalOptions {
  uint64_t segment_bytes = 32u << 20;
  Durability durability = Durability::kCommit;
  Millis sync_interval{50};            ///< for Durability::kInterval
  uint64_t disk_reserve = 128u << 20;  ///< pushes are refused while the disk has less room than this
  uint64_t seed = 0;  ///< random bits of the caller's: the secret of the id hash, checksum seeds
  uint32_t work_per_tick = 20'000;  ///< jobs that one tick() (or verb) makes due at most
  Shelf* backups = nullptr;         ///< where backup() puts its copies; must outlive the engine
  bool compacts = true;  ///< false: for a look at the jobs, on a disk that forgets (scratch_disk.h)
};

/// The embedded engine: an append-only journal on disk, a table of jobs in RAM, a timing wheel.
///
/// A verb changes the table at once and appends a record to the open commit; poll() sends the commit to the
/// write lane as soon as the one before is done, so everything that queued meanwhile shares one write and one
/// sync. Bodies and ids are read back from disk when a job is handed out.
///
/// After a failed write or sync nothing can be promised any more: every verb that would change something is
/// answered with kUnavailable until the process is restarted. Reads go on.
class JournalEngine final : public Engine {
 public:
  /// Recovers the directory and takes its lock. `disk` and `io` must outlive the engine.
  static Result<std::unique_ptr<JournalEngine>> open(Disk& disk, Io& io, JournalOptions options, Moment now);

  /// Waits for what is under way. What was not answered by then is not promised.
  ~JournalEngine() override;

  void push(Moment now, std::span<const NewJob> jobs, Reply<std::vector<PushAnswer>> reply) override;
  void restore(Moment now, std::span<const RestoreRequest> jobs,
               Reply<std::vector<PushAnswer>> reply) override;
  void take(Moment now, const TakeRequest& request, Reply<TakeAnswer> reply) override;
  void ack(Moment now, std::span<const AckRequest> leases, Reply<std::vector<AckOutcome>> reply) override;
  void nack(Moment now, std::span<const NackRequest> leases, Reply<std::vector<NackOutcome>> reply) override;
  void extend(Moment now, std::span<const ExtendRequest> leases,
              Reply<std::vector<ExtendAnswer>> reply) override;
  void inspect(Moment now, std::span<const LeaseRef> leases, Reply<std::vector<LeaseInfo>> reply) override;

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

  Moment tick(Moment now) override;
  bool poll(EngineListener& listener) override;
  void set_wakeup(std::function<void()> wakeup) override;
  void flush(Reply<bool> reply) override;
  void backup(std::string_view name, Reply<BackupReport> reply) override;

  /// What recovery found, for the start-up line.
  uint64_t recovered_records() const { return recovered_records_; }
  uint64_t cut_bytes() const { return cut_bytes_; }

 private:
  /// A job's data that a read does not bring back, as it was when the read was asked for.
  struct Snapshot {
    StatePayload state;
    uint32_t priority = 0;
    TopicNumber topic = kNoTopic;
    bool has_outcome = false;
  };
  /// Stands for the text of an outcome that cannot be read any more; the job itself is as good as ever.
  static constexpr std::string_view kDamagedOutcome = "(the record of its last outcome is damaged)";
  struct Expired {
    Slot slot;
    uint64_t seq;
    uint64_t lease;
  };
  using Later = absl::AnyInvocable<void(const Status&)>;

  JournalEngine(Disk& disk, Io& io, JournalOptions options);

  // ---- before and after a verb
  /// Makes due what is due. False: the engine has failed, and `reply` got the error.
  template <class T>
  bool begin(Moment now, Reply<T>& reply);
  template <class T>
  void answer(Reply<T> reply, Result<T> result);
  /// Answers when everything appended so far is durable.
  template <class T>
  void answer_when_durable(Reply<T> reply, T value);
  void when_durable(Later later);
  /// The same, with a sync in any case.
  void when_synced(Later later);

  // ---- time
  bool make_due(Moment now);
  void on_wake(Slot slot);
  void announce(Slot slot);
  void probe_disk(Moment now);

  // ---- records
  /// Sets state.seq, unless the job has a number already: it is the LSN of its first record.
  Location write_job(const NewJob& job, StatePayload& state, Moment pushed);
  void write_state(Slot slot, std::string_view outcome = {});
  /// Removes the job and writes that it is gone.
  void forget(Slot slot);
  void write_gone(uint64_t seq, uint32_t segment);
  /// Gives the job a new changeable part, in RAM and on disk, in one record with the outcome that led to it.
  void move(Slot slot, const StatePayload& next, std::string_view outcome = {});
  /// Delayed, or ready when `due` has come. Starts from the job's present state, without lease.
  StatePayload waiting_until(Slot slot, Moment due, Moment now) const;
  void finish(Slot slot, JobState state, const Keep& keep, Moment now, std::string_view outcome = {});

  // ---- parts of verbs
  PushAnswer push_one(const NewJob& job, SlotKey key, Moment now);
  PushAnswer restore_one(const RestoreRequest& request, Moment now);
  /// The outcome of a job whose own record comes right behind it. Sets state.seq.
  Location write_first_outcome(StatePayload& state, std::string_view outcome);
  /// Takes out a job whose id another one gets; answer with what write_gone() will need.
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
  /// A live job of that id in another topic.
  Slot find_elsewhere(SlotKey key, TopicNumber topic) const;
  bool revive(Slot slot, Moment now);
  /// The kept job at which a call of trim() goes on; kNoSlot: it has met them all.
  Slot trimmed_up_to(TopicNumber topic, const TrimRequest& request);
  /// Lets a kept job be kept for no longer than `time` from its end on. True: that is over, and it is gone.
  bool end_sooner(Slot slot, Millis time, Moment now);
  std::optional<Error> refuse_push() const;
  /// The slot of a lease that is the job's latest; with `at`, also not past its deadline then.
  Slot find_lease(const LeaseRef& ref, std::optional<Moment> at) const;
  Snapshot snapshot(Slot slot) const;
  /// Where the page that is asked for begins; kNoSlot: there is nothing.
  Result<Slot> start_of_page(TopicNumber topic, const ListRequest& request) const;
  struct LookedAt;
  LookedAt look_at(Slot slot, const ListRequest& request);
  void end_page(JobPage& page, const LookedAt& looked_at, size_t stops);
  /// The job of a record that was read back, with its state as it was when the read was asked for.
  static bool fill_job(Job& job, const Snapshot& snapshot, const std::optional<RecordView>& record,
                       const std::optional<RecordView>& outcome);
  void add_locations(Slot slot, std::vector<Location>& wanted) const;
  TakeAnswer hand_out(std::span<const Snapshot> taken, RecordReader::Found found, Moment now);
  /// The job of a take, while nothing else has happened to it.
  Slot find_taken(const Snapshot& job) const;
  /// A job with nothing to hand out, but not to be hidden either.
  void bury(const Snapshot& job, std::string_view reason, Moment now);
  /// A job whose record could not be read now goes back as it was (or, acked in advance, is dead for a person
  /// to see).
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
  Manifest manifest_;  ///< the write lane's, between opening and closing
  Log log_;
  RecordReader reader_;
  Cleaner cleaner_;
  Backup backup_;

  std::vector<Io::Step> ready_;  ///< answers for the next poll
  std::deque<std::pair<Lsn, Later>>
      undurable_;  ///< answers that wait for the disk, in the order of their records
  std::deque<std::pair<Lsn, Later>> unsynced_;  ///< flushes: the same, but for the sync in any case
  std::vector<std::pair<TopicNumber, Outlet>> announced_;
  std::vector<Expired> expired_;
  std::vector<LeaseInfo> expired_infos_;
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
