#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "tests/support/engine_driver.h"
#include "tests/support/lease_book.h"
#include "tests/support/workload.h"

namespace delayq::support {

/// Two engines that get the same calls and must return the same replies: a model that is
/// correct, and a subject.
class Lockstep {
 public:
  /// `pump` runs the background work below the subject.
  Lockstep(Engine& model, Engine& subject, std::function<bool()> pump = {});

  /// Runs the step on both. Returns the difference, or nothing.
  std::optional<std::string> play(const Step& step);
  /// Compares everything that is visible of both: topics, counts, every job with its body, settings,
  /// schedules, forecast, and that every event was reported. Returns the first difference.
  std::optional<std::string> compare_everything();

  /// Call after the subject was closed and opened again.
  void attach(Engine& subject) {
    subject_.driver.attach(subject);
    has_restarted_ = true;
  }
  EngineDriver& subject() { return subject_.driver; }

  /// The last steps and the model's replies, one per line.
  std::string trace() const;

 private:
  struct Side {
    EngineDriver driver;
    LeaseBook leases;
  };

  std::optional<std::string> compare_news();
  std::optional<std::string> compare_schedule_news();
  std::optional<std::string> compare_schedules();
  std::optional<std::string> compare_topic(const std::string& topic);
  std::optional<std::string> compare_forecast();
  std::optional<std::string> compare_texts(std::string_view what, const std::string& model,
                                           const std::string& subject);
  static std::set<size_t> expired_numbers(Side& side);
  void remember(std::string line);

  Side model_;
  Side subject_;
  std::set<std::string> ready_owed_;  ///< topics that the model has reported and the subject has not yet
  std::set<size_t> expired_now_;      ///< leases that the model reported in the last step
  std::set<size_t> expired_owed_;     ///< expired leases that the subject has not reported yet
  std::map<std::string, uint64_t>
      due_owed_;                   ///< revisions of due schedules that the subject has not reported
  std::set<uint64_t> due_told_;    ///< revisions that it has reported
  Moment latest_ = Moment::min();  ///< of all steps: the clock may have gone back since
  bool has_restarted_ = false;
  std::deque<std::string> lines_;
};

}  // namespace delayq::support
