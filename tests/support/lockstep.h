#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <string>

#include "tests/support/engine_driver.h"
#include "tests/support/lease_book.h"
#include "tests/support/workload.h"

namespace delayq::support {

/// Two engines that are asked the same and must answer the same: a model that is right, and a subject.
class Lockstep {
 public:
  /// `pump` lets happen what goes on behind the subject's back.
  Lockstep(Engine& model, Engine& subject, std::function<bool()> pump = {});

  /// Does the step on both. Answers what was different, or nothing.
  std::optional<std::string> play(const Step& step);
  /// Looks at everything that can be seen of both: topics, counts, every job with its body, settings,
  /// forecast, and that every piece of news came. Answers the first difference.
  std::optional<std::string> compare_everything();

  /// The subject was closed and opened again.
  void attach(Engine& subject) {
    subject_.driver.attach(subject);
    has_restarted_ = true;
  }
  EngineDriver& subject() { return subject_.driver; }

  /// The last steps and what the model answered, one per line.
  std::string trace() const;

 private:
  struct Side {
    EngineDriver driver;
    LeaseBook leases;
  };

  std::optional<std::string> compare_news();
  std::optional<std::string> compare_topic(const std::string& topic);
  std::optional<std::string> compare_forecast();
  std::optional<std::string> compare_texts(std::string_view what, const std::string& model,
                                           const std::string& subject);
  static std::set<size_t> expired_numbers(Side& side);
  void remember(std::string line);

  Side model_;
  Side subject_;
  std::set<std::string> ready_owed_;  ///< topics whose news the model told and the subject has not yet
  std::set<size_t> expired_now_;      ///< leases that the model told with the last step
  std::set<size_t> expired_owed_;     ///< leases that ran out and the subject has not told yet
  bool has_restarted_ = false;
  std::deque<std::string> lines_;
};

}  // namespace delayq::support
