#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "tests/support/job_spec.h"
#include "tests/support/seen_job.h"

namespace delayq::support {

/// Calls an engine as if it replied at once, so that a test is easy to read. Every verb is called with now(),
/// polls until the reply comes, and returns its value. Throws (which fails the test) if the reply is an
/// error, does not come, comes twice, or comes from inside the verb. For replies that may be errors: ask().
class EngineDriver : public EngineListener {
 public:
  /// `pump` runs the background work below the engine (disk, threads) and returns whether there was any;
  /// called between polls.
  explicit EngineDriver(Engine& engine, std::function<bool()> pump = {});

  /// Continues with another engine, after a restart. Clock and news stay.
  void attach(Engine& engine) { engine_ = &engine; }
  Engine& engine() { return *engine_; }

  /// From now on tick() is called before every verb, as a server does that is never busy: for engines that
  /// need it to see what is due. Tests of what happens without a tick turn it off.
  void tick_before_verbs(bool is_on = true) { ticks_first_ = is_on; }

  // ---- the clock
  Moment now() const { return now_; }
  void go_to(Moment moment) { now_ = moment; }

  // ---- a job's life
  PushAnswer push(const JobSpec& job);
  std::vector<PushAnswer> push_all(const std::vector<JobSpec>& jobs);
  std::vector<PushAnswer> restore_all(const std::vector<RestoreRequest>& jobs);
  /// Restores a job that was seen before, as it was then.
  PushAnswer restore(const SeenJob& job, OnConflict on_conflict = OnConflict::kKeep,
                     uint32_t keep_count = 1'000'000);
  /// Takes up to `count` jobs, with leases of a minute.
  std::vector<Taken> take(std::string_view topic, uint32_t count = 1);
  std::vector<Taken> take(const TakeRequest& request);
  /// Takes the next job. Throws if there is none.
  Taken take_one(std::string_view topic, Millis lease = std::chrono::minutes{1});
  AckOutcome ack(const Taken& taken, Keep keep = kKeepAll, std::string_view outcome = {});
  std::vector<AckOutcome> ack_all(const std::vector<AckRequest>& leases);
  NackOutcome retry(const Taken& taken, Moment retry_at, std::string_view reason = {});
  NackOutcome bury(const Taken& taken, std::string_view reason = {}, Keep keep = kKeepAll);
  std::vector<NackOutcome> nack_all(const std::vector<NackRequest>& leases);
  bool extend(const Taken& taken, Moment until);
  std::vector<ExtendAnswer> extend_all(const std::vector<ExtendRequest>& leases);

  // ---- by id, by group, by topic
  CancelOutcome cancel(std::string_view topic, std::string_view id);
  std::vector<CancelOutcome> cancel_all(const std::vector<JobRef>& jobs);
  /// Runs the whole walk, in steps of `max`. Returns the sum of its answers.
  GroupCancelAnswer cancel_group(std::string_view group, uint32_t max = 1'000'000,
                                 TopicPatterns topics = kAllTopics);
  /// One call.
  GroupCancelAnswer cancel_of_group(const GroupCancelRequest& request);
  RescheduleOutcome reschedule(std::string_view topic, std::string_view id, Moment due);
  std::vector<RescheduleOutcome> reschedule_all(const std::vector<RescheduleRequest>& jobs);
  uint64_t redrive(std::string_view topic, const std::vector<std::string_view>& ids);
  uint64_t redrive_oldest(std::string_view topic, uint32_t max = 1'000'000);
  uint64_t purge(std::string_view topic, JobState state, uint32_t max = 1'000'000);
  /// Runs the whole walk, in steps of `request.max`. Returns how many jobs were removed.
  uint64_t trim(TrimRequest request);

  // ---- reading
  std::optional<SeenJob> get(std::string_view topic, std::string_view id);
  /// The state of a job that must exist.
  JobState state_of(std::string_view topic, std::string_view id);
  /// Sorted by name.
  std::vector<std::string> locate(std::string_view id, Among among = Among::kLive);
  SeenPage list(const ListRequest& request);
  /// All pages from the start. Throws if they do not end.
  std::vector<SeenJob> list_all(ListRequest request);
  std::vector<std::string> ids_in(std::string_view topic, JobState state);
  TopicCounts counts(std::string_view topic);
  uint64_t count(std::string_view topic, JobState state) { return counts(topic).of(state); }
  TopicPage topics(std::string_view cursor, uint32_t limit);
  std::vector<std::string> topic_names(uint32_t page_size = 100);
  Forecast forecast(const ForecastRequest& request);
  /// After a flush, because the figures of some engines lag behind.
  EngineUsage usage();

  // ---- settings
  void store_settings(std::string_view topic, std::string_view settings);
  /// Sorted by topic.
  std::vector<TopicSettings> load_settings();

  // ---- schedules
  TurnAnswer turn(const TurnRequest& request);
  std::vector<TurnAnswer> turn_all(const std::vector<TurnRequest>& requests);
  std::optional<StoredSchedule> get_schedule(std::string_view name);
  SchedulePage list_schedules(const ScheduleListRequest& request);
  /// All pages of that size. Throws if one is empty and not the last.
  std::vector<StoredSchedule> all_schedules(uint32_t page_size = 100);

  // ---- running
  /// Ticks until nothing more is due, and delivers the events. Returns when the engine
  /// wants to be called next.
  Moment tick();
  /// Polls and pumps until nothing happens any more. Returns whether there was anything to pump.
  bool settle();
  void flush();
  BackupReport backup(std::string_view name);

  /// The topics reported as ready since the last call.
  std::set<std::string> ready_news() { return std::exchange(ready_news_, {}); }
  /// Of these, the topics with ready jobs that have callbacks of their own.
  std::set<std::string> callback_news() { return std::exchange(callback_news_, {}); }
  std::vector<LeaseInfo> expired_news() { return std::exchange(expired_news_, {}); }

  /// In the order in which they were reported.
  std::vector<StoredSchedule> schedule_news() { return std::exchange(schedule_news_, {}); }

  /// Calls `verb` with a Reply, waits for the result and returns it.
  template <class T, class Verb>
  Result<T> ask(std::string_view name, Verb verb) {
    if (ticks_first_) tick();
    auto waiting = std::make_shared<Waiting<T>>();
    verb(Reply<T>([waiting](Result<T> answer) { waiting->receive(std::move(answer)); }));
    waiting->call_is_over = true;
    wait_for(name, [&] { return waiting->answer.has_value(); });
    return std::move(*waiting->answer);
  }

  void on_ready(std::string_view topic, Outlet outlet) override {
    ready_news_.emplace(topic);
    if (outlet == Outlet::kCallback) callback_news_.emplace(topic);
  }
  void on_expired(std::vector<LeaseInfo> leases) override;
  void on_schedules_due(std::vector<StoredSchedule> due) override;

 private:
  template <class T>
  struct Waiting {
    bool call_is_over = false;
    std::optional<Result<T>> answer;

    void receive(Result<T> result) {
      if (!call_is_over) throw std::logic_error("answered from inside the call that asked");
      if (answer) throw std::logic_error("answered twice");
      answer = std::move(result);
    }
  };

  template <class T, class Verb>
  T must(std::string_view name, Verb verb) {
    Result<T> answer = ask<T>(name, std::move(verb));
    if (!answer.ok()) throw std::runtime_error(std::string{name} + " answered " + to_string(answer.error()));
    return std::move(*answer);
  }

  void wait_for(std::string_view name, const std::function<bool()>& done);

  Engine* engine_;
  std::function<bool()> pump_;
  Moment now_ = kStart;
  bool ticks_first_ = false;
  std::set<std::string> ready_news_;
  std::set<std::string> callback_news_;
  std::vector<LeaseInfo> expired_news_;
  std::vector<StoredSchedule> schedule_news_;
};

}  // namespace delayq::support
