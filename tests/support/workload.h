#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "core/random.h"
#include "tests/support/engine_driver.h"
#include "tests/support/lease_book.h"

namespace delayq::support {

/// One engine as a workload uses it.
struct Player {
  EngineDriver& driver;
  LeaseBook& leases;
};

/// One step. It can run on any number of engines; those that agree return the same text.
struct Step {
  Moment now{};
  bool tick_first = false;
  std::string text;  ///< the verb and its arguments, for a trace
  std::function<std::string(Player&)> run;
};

/// The variety of a workload. Few names cause many conflicts.
struct WorkloadShape {
  uint32_t topics = 4;
  uint32_t ids = 10;
  uint32_t groups = 3;
  uint32_t schedules = 3;
  uint32_t largest_body = 300;
  bool clock_jumps = true;
  /// Engines will be restarted. After a restart it is not exactly known which kept job is the oldest, so no
  /// step depends on it, and listings are compared without their order.
  bool restarts = false;
};

/// An endless sequence of random calls of all verbs, determined only by its seed.
class Workload {
 public:
  explicit Workload(uint64_t seed, WorkloadShape shape = {});

  Step next();
  const std::vector<std::string>& topics() const { return topics_; }

 private:
  using Maker = void (Workload::*)(Step&);
  struct Choice {
    uint32_t weight;
    Maker make;
  };
  static const std::vector<Choice>& choices();

  // One verb each: chooses the arguments and sets how to call it.
  void push(Step& step);
  void restore(Step& step);
  void take(Step& step);
  void ack(Step& step);
  void nack(Step& step);
  void resolve_expired(Step& step);
  void extend(Step& step);
  void cancel(Step& step);
  void cancel_group(Step& step);
  void reschedule(Step& step);
  void redrive(Step& step);
  void redrive_oldest(Step& step);
  void purge(Step& step);
  void get(Step& step);
  void locate(Step& step);
  void list(Step& step);
  void counts(Step& step);
  void topics(Step& step);
  void forecast(Step& step);
  void settings(Step& step);
  void turn(Step& step);
  void read_schedules(Step& step);
  void only_tick(Step& step);

  struct TurnPick;
  /// Of each schedule: few, so that the same ones are made again and again.
  static constexpr uint64_t kOccurrences = 6;

  void nack_leases(Step& step, bool expired);
  TurnPick turn_pick();
  /// The id of a job that the schedule makes.
  static std::string occurrence(const std::string& name, uint64_t number);
  void move_clock();
  /// Moves the clock to a time at which something happens, or to the millisecond before it.
  bool go_to_an_edge();
  Moment remember(Moment moment);
  Moment moment_near();
  Moment draw_moment();
  Keep keep();
  JobSpec job();
  SeenJob old_job();
  Millis own_lease();
  std::string bytes(uint32_t most);
  const std::string& topic() { return topics_[random_.below(topics_.size())]; }
  const std::string& id() { return ids_[random_.below(ids_.size())]; }
  const std::string& schedule() { return schedules_[random_.below(schedules_.size())]; }
  JobState state() { return static_cast<JobState>(random_.below(kJobStateCount)); }
  /// Mostly a lease that was just given out, sometimes one that ended long ago.
  size_t lease_back() { return random_.below(random_.chance(2, 3) ? 4 : 24); }
  size_t batch() { return random_.chance(1, 20) ? random_.between(5, 30) : random_.between(1, 3); }
  int64_t ms_below(uint64_t bound) { return static_cast<int64_t>(random_.below(bound)); }

  Random random_;
  WorkloadShape shape_;
  std::vector<std::string> topics_;
  std::vector<std::string> ids_;
  std::vector<std::string> schedules_;
  Moment now_ = kStart;
  /// the latest due times, deadlines and ends of retention that were chosen
  std::array<Moment, 16> edges_{};
  size_t next_edge_ = 0;
};

/// The jobs of one state and topic in an order on which engines agree. Done and dead jobs stay in the order
/// in which they ended, because the oldest are removed first, unless there were `restarts`.
std::vector<SeenJob> in_comparable_order(std::vector<SeenJob> jobs, bool restarts);

}  // namespace delayq::support
