#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <absl/container/flat_hash_map.h>

#include "core/random.h"
#include "queue/admission.h"
#include "queue/intake.h"
#include "queue/schedule.h"

namespace delayq {

/// Keeps schedules and makes their jobs (rule 16).
///
/// A change is computed from what is stored, and stored only if that is still the same (Engine::turn). If
/// another change came first, it is computed again. So an occurrence is decided exactly once, by whichever
/// server is first, and no change is lost. No schedule is kept here.
class Schedules {
 public:
  Schedules(Context& context, Admission& admission, Intake& intake, Random random);
  ~Schedules();
  Schedules(const Schedules&) = delete;
  Schedules& operator=(const Schedules&) = delete;

  // ---- see Queue
  void set(const ScheduleSpec& spec, TopicPatterns topics, Reply<ScheduleReceipt> reply);
  void get(std::string_view name, TopicPatterns topics, Reply<std::optional<ScheduleView>> reply);
  void list(const ScheduleListing& request, TopicPatterns topics, Reply<ScheduleViews> reply);
  void remove(std::string_view name, TopicPatterns topics, Reply<void> reply);
  void pause(std::string_view name, bool pauses, TopicPatterns topics, Reply<ScheduleView> reply);
  void run(std::string_view name, TopicPatterns topics, Reply<ScheduleRun> reply);
  void restore(const ScheduleSpec& spec, const ScheduleProgress& progress, OnConflict on_conflict,
               Reply<RestoreOutcome> reply);
  void mark_moving(std::string_view name, bool moving, Reply<RestoreOutcome> reply);
  /// One page as it is stored, for an export.
  void read_page(const ScheduleListRequest& request, Reply<ScheduleViews> reply);
  /// Adds the occurrences of schedules to a forecast of jobs.
  void forecast(const ForecastRequest& request, TopicPatterns topics, Forecast jobs,
                Reply<ForecastReport> reply);

  /// Makes the jobs of schedules whose time has come.
  void on_due(std::vector<StoredSchedule> due);
  /// Goes on with one forecast, for a bounded time. Returns whether there was one.
  bool poll();
  const ScheduleFigures& figures() const { return figures_; }

 private:
  struct Change;
  struct DueBatch;
  struct Forecasting;

  void tell(const TurnRequest& request, const TurnAnswer& answer);
  /// Reads the schedule of that change, computes what becomes of it and stores that, until it was not changed
  /// by others meanwhile.
  void run_change(std::unique_ptr<Change> change);
  void begin(std::unique_ptr<Change> change);
  void store(std::unique_ptr<Change> change, const StoredSchedule* found);
  void settle(std::unique_ptr<Change> change, const Result<std::vector<TurnAnswer>>& answers);
  ScheduleView view(std::shared_ptr<const StoredSchedule> stored);
  /// Adds the step of a due schedule to the batch. False: not now; it will be reported again.
  bool add_due(const StoredSchedule& stored, DueBatch& batch);
  void turn_due(std::unique_ptr<DueBatch> batch);
  void settle(DueBatch& batch, const Result<std::vector<TurnAnswer>>& answers);
  void forecast_page(std::unique_ptr<Forecasting> work);
  void forecast_some(std::unique_ptr<Forecasting> work);
  void list_visible(const ScheduleListing& request, std::vector<std::string> topics, Steps steps,
                    Reply<ScheduleViews> reply);
  uint64_t new_revision() { return random_.next() | 1; }

  Context& context_;
  Admission& admission_;
  Intake& intake_;
  Random random_;
  UuidGenerator run_ids_;
  ScheduleFigures figures_;
  std::deque<std::unique_ptr<Forecasting>> forecasts_;   ///< each takes a step in turn
  absl::flat_hash_map<std::string, uint32_t> changing_;  ///< by name: changes that are under way
};

}  // namespace delayq
