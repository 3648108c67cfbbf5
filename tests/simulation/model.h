#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/memory/memory_engine.h"
#include "tests/simulation/history.h"
#include "tests/simulation/occurrences.h"
#include "tests/simulation/schedule_history.h"
#include "tests/simulation/survey.h"

namespace delayq::simulation {

/// What the engine under test must say: the memory engine, told the same operations in the same order, with
/// the history that a crash may fall back on. It outlives the engine's lives: after each crash it goes on
/// from what survived, once that was found to be allowed.
class Model {
 public:
  using Operation = History::Operation;

  Model() : engine_(std::make_unique<MemoryEngine>()) {}

  Operation begin() { return ++last_operation_; }
  /// A new life of the engine: what was asked before will not be answered.
  void begin_life() { history_.forget_unanswered(); }

  /// Lets the memory engine do a part of the operation; answers what it answered. `call` gets the engine and
  /// a Reply.
  template <class T, class Call>
  T apply(Operation operation, Promise promise, Call call) {
    std::optional<T> answer;
    call(*engine_, Reply<T>([&](Result<T> result) { answer.emplace(std::move(*result)); }));
    poll();
    history_.record(operation, promise, engine_->jobs());
    return std::move(*answer);
  }
  /// See History.
  void passed_through(Operation operation, const History::Key& key, JobState state, Moment until,
                      Moment now) {
    history_.passed_through(operation, key, state, until, now);
  }
  /// What `call` would do to jobs. It gets an engine that is like the model's now, and what to call after
  /// every step that a crash may follow.
  template <class Call>
  std::vector<History::Change> what_if(Call call) const {
    const std::unique_ptr<MemoryEngine> twin = copy();
    std::vector<History::Change> changes;
    call(*twin, [&] {
      for (History::Change& change : history_.changes_in(twin->jobs())) changes.push_back(std::move(change));
    });
    return changes;
  }
  /// See History.
  void may_have(Operation operation, const History::Change& change) { history_.may_have(operation, change); }
  void tick(Moment now);
  bool store_settings(Operation operation, std::string_view topic, std::string_view settings);
  /// `wrong` gets what is wrong with the request itself.
  TurnAnswer turn(Operation operation, Moment now, const TurnRequest& request, std::string& wrong);

  void answered(Operation operation);
  void flushed(Operation operation);

  // ---- leases: the two engines call them by different names
  void pair_leases(std::string_view real, std::string_view ours);
  /// The same where several would do: which one it was does not show.
  void guess_lease(std::string_view real, std::string_view ours);
  bool is_guessed(std::string_view real) const { return guessed_.contains(std::string(real)); }
  std::string to_model(std::string_view real) const;
  /// How the model calls its lease of that number, and whether the real engine has told its own name for it.
  static std::string name_of(uint64_t lease) { return "m" + std::to_string(lease); }
  bool has_name(uint64_t lease) const { return named_.contains(name_of(lease)); }
  /// The real engine says that this lease has run out. When a crash left open which lease of its job
  /// survived, it was this one.
  void settle_lease(std::string_view real);
  /// The reserved job that has this lease now, whether it has run out or not.
  const memory::StoredJob* find_lease(std::string_view real) const;

  // ---- after a crash, or an answer that said nothing
  /// Goes on from what the engine holds, or says why that cannot be. `certain`: what it holds is on the disk.
  Status adopt(const Survey& survey, Moment now, bool certain);
  /// Whether the engine holds exactly what it should, in the right order.
  Status compare(const Survey& survey) const;
  /// How many jobs are not as they should be, more or less.
  uint64_t count_differences(const Survey& survey) const;
  /// All jobs as they should be.
  std::vector<support::SeenJob> expected() const;

  const memory::JobTable& jobs() const { return engine_->jobs(); }
  const MemoryEngine::Settings& settings() const { return engine_->settings(); }
  const MemoryEngine::Schedules& schedules() const { return engine_->schedules(); }
  const ScheduleHistory& schedule_history() const { return schedule_history_; }
  const Occurrences& occurrences() const { return occurrences_; }

 private:
  using Found = std::map<History::Key, const support::SeenJob*>;
  using Bounds = std::map<History::Key, History::Bounds>;

  /// The values that a topic's settings may have; empty text: none.
  struct Setting {
    std::string value;
    Operation operation = 0;
  };

  void poll();
  std::unique_ptr<MemoryEngine> copy() const;
  Status adopt_settings(const Survey& survey, bool certain, MemoryEngine::Settings& into);
  /// Adds to `bounds` what the schedules say about jobs.
  Status adopt_schedules(const Survey& survey, const Found& found, Moment now, bool certain, Bounds& bounds);
  /// The same for one of them; `is` is null when there is none.
  Status adopt_schedule(const std::string& name, const StoredSchedule* is, const Found& found, Moment now,
                        bool certain, Bounds& bounds);
  Status adopt_jobs(const Survey& survey, const Found& found, const Bounds& bounds, Moment now, bool certain,
                    memory::JobTable& into);

  std::unique_ptr<MemoryEngine> engine_;
  History history_;
  ScheduleHistory schedule_history_;
  Occurrences occurrences_;
  std::map<std::string, std::vector<Setting>, std::less<>> settings_;
  std::map<std::string, std::string, std::less<>> leases_;  // theirs to ours
  std::set<std::string> named_;                             // ours, of those
  std::set<std::string> guessed_;                           // theirs
  std::map<std::string, std::string> may_be_;               // ours, to the one that a crash let us choose
  Operation last_operation_ = 0;
};

}  // namespace delayq::simulation
