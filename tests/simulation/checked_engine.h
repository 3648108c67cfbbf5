#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "tests/simulation/model.h"
#include "tests/simulation/witness.h"

namespace delayq::simulation {

/// An engine that stands between a queue and the engine under test, tells the model everything that passes,
/// and compares every answer with the model's.
///
/// When the engine answers an error, its state is in doubt. A journal that failed answers errors to
/// everything that follows: then the model stops, and only that is checked. Other errors (a full disk, an
/// unreadable sector) leave it working; they are expected only while `careful`: then each call waits for its
/// answer, and after an error the model goes on from what the engine says it holds.
class CheckedEngine final : public Engine, private EngineListener {
 public:
  struct World {
    Engine& real;
    Model& model;
    Witness& witness;
    std::function<bool()> pump;  ///< lets the disk work go on; false: the machine is off
    /// No fault has happened in this life: nothing can excuse the engine.
    std::function<bool()> is_sound;
    /// What is wrong with taking now, by the rules above the engine; empty when nothing is.
    std::function<std::string(const TakeRequest&)> may_take;
    std::function<void()> make_room;  ///< on a disk that is full
  };

  explicit CheckedEngine(World world) : world_(std::move(world)) {}

  /// REQUIRES: nothing unanswered.
  void set_careful(bool careful) { careful_ = careful; }
  size_t unanswered() const { return unanswered_; }
  /// A change was refused because the journal cannot be written.
  bool has_failed() const { return failed_; }
  /// Looks at everything the engine holds and compares.
  void audit(Moment now);
  /// After a restart: goes on from what survived, when that is allowed.
  void recover(Moment now, bool certain);

  /// Whether the engine has answered the push of this body, or the end of this lease, with success: what
  /// nobody above may promise before.
  bool has_promised(const std::string& what) const { return promised_.contains(what); }

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
  EngineUsage usage() const override { return world_.real.usage(); }
  CommitFigures commits() const override { return world_.real.commits(); }

  void store_settings(std::string_view topic, std::string_view settings, Reply<bool> reply) override;
  void load_settings(Reply<std::vector<TopicSettings>> reply) override;

  void turn(Moment now, std::span<const TurnRequest> requests, Reply<std::vector<TurnAnswer>> reply) override;
  void get_schedule(Moment now, std::string_view name, Reply<std::optional<StoredSchedule>> reply) override;
  void list_schedules(Moment now, const ScheduleListRequest& request, Reply<SchedulePage> reply) override;

  /// Only read, and not compared.
  void held(Moment now, std::span<const LeaseRef> leases, bool with_bodies, Reply<HeldJobs> reply) override {
    world_.real.held(now, leases, with_bodies, std::move(reply));
  }
  void watch_due(bool is_on) override { world_.real.watch_due(is_on); }

  Moment tick(Moment now) override;
  bool poll(EngineListener& listener) override;
  void set_wakeup(std::function<void()> wakeup) override { world_.real.set_wakeup(std::move(wakeup)); }
  void flush(Reply<bool> reply) override;
  void backup(std::string_view name, Reply<BackupReport> reply) override {
    world_.real.backup(name, std::move(reply));
  }

 private:
  using Operation = Model::Operation;

  /// What a call is about, and what is wrong with its answer (empty when nothing is; asked only of values,
  /// not of errors).
  template <class T>
  struct Terms {
    std::string_view verb;
    Moment now;
    Promise promise = Promise::kNothing;
    std::function<std::string(const T& real, const T& expected)> judge = {};
  };

  /// `real(reply)` asks the engine, `model(operation)` answers what it should say.
  template <class T, class Real, class Expect>
  void run(Terms<T> terms, Reply<T> reply, Real real, Expect expect);
  template <class T, class Real, class Expect>
  void run_carefully(Terms<T> terms, Operation operation, Reply<T> reply, Real real, Expect expect);
  /// Asks the engine and lets the world go on until it has answered; nullopt when the machine is off.
  template <class T, class Real>
  std::optional<Result<T>> wait_for(std::string_view verb, Real real);
  template <class T, class Real>
  void run_failed(Terms<T> terms, Reply<T> reply, Real real);
  /// For calls that are the same to both: `ask(engine, reply)`.
  template <class T, class Ask>
  void run_same(std::string_view verb, Moment now, Promise promise, Reply<T> reply, Ask ask);

  template <class T>
  void deliver(Reply<T> reply, Result<T> answer);
  /// Checks an answer. False: it was an error that leaves the engine's state in doubt.
  template <class T>
  bool judge(const Terms<T>& terms, Operation operation, const Result<T>& answer, const T& expected);
  template <class T, class Ask>
  T ask_model(Operation operation, Promise promise, Ask ask);

  /// A nack of leases that nobody was told of: their hand-over was lost in a crash (see strangers.cc).
  void nack_strangers(Moment now, std::span<const NackRequest> leases, Reply<std::vector<NackOutcome>> reply);
  std::vector<const memory::StoredJob*> find_strangers(std::string_view topic) const;
  void pair_stranger(Moment now, const NackRequest& request, NackOutcome outcome);
  /// All that nacks of which nobody knows the jobs may have done.
  std::vector<History::Change> imagine(Moment now, std::span<const NackRequest> requests) const;
  /// Lets the world go on until every call that can be answered now is; false when the machine is off.
  bool hear_answers();
  NackOutcome nack_in_model(Operation operation, Moment now, NackRequest request, const std::string& name);

  std::string judge_take(const TakeAnswer& real, const TakeAnswer& expected);
  std::vector<Moment> dues_of(std::string_view topic) const;
  void fail(std::string_view verb, const std::string& what);
  Result<Survey> look_around(Moment now);
  void keep_news(const Survey& survey);
  /// Checks schedules that the engine reports as due, and keeps them back for the next poll().
  void keep_due(const std::vector<StoredSchedule>& due);
  /// An error that leaves the engine working, and its state in doubt.
  void recover_from(const Error& error, Moment now);

  void on_ready(std::string_view topic, Outlet outlet) override;
  void on_expired(std::vector<LeaseInfo> leases) override;
  void on_schedules_due(std::vector<StoredSchedule> due) override;

  World world_;
  bool careful_ = false;
  bool failed_ = false;
  size_t unanswered_ = 0;
  /// A wrong answer that only a failed journal may give; wrong after all when a later change succeeds.
  struct Doubt {
    Operation since;
    std::string what;
  };
  std::optional<Doubt> doubt_;
  Moment now_{};                   // of the latest tick
  Moment latest_ = Moment::min();  // of all ticks and verbs: the clock may have gone back since
  std::set<std::string> promised_;
  std::string trim_cursor_;  // the model's

  EngineListener* listener_ = nullptr;  // whom to tell at once, while the engine is polled for it
  // Kept back for the next poll().
  std::vector<absl::AnyInvocable<void()>> answers_;
  std::set<std::pair<std::string, Outlet>> ready_;
  std::vector<LeaseInfo> expired_;
  std::vector<StoredSchedule> due_;
};

}  // namespace delayq::simulation
