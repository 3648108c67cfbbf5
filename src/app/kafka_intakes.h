#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/kafka/intake.h"
#include "kafka/client_options.h"
#include "ops/config.h"

namespace delayq {

/// How records of an intake become jobs, as the configuration says.
intake::Rules intake_rules(const Config::KafkaIntake& said);

/// The intakes of the configuration: a consumer group each.
class KafkaIntakes {
 public:
  using Wanted = std::map<std::string, Config::KafkaIntake>;
  struct Options {
    kafka::ClientOptions client;  ///< without brokers there can be no intakes
    Wanted wanted;
    /// Gets what an operator should know.
    intake::Intake::Tell tell = [](bool, const std::string&) {};
    /// Called from other threads when the server should look at them.
    std::function<void()> wakeup{};
  };

  /// `queue` must outlive it, and be started. Fails for wrong options, but not for brokers that cannot be
  /// reached now.
  static Result<std::unique_ptr<KafkaIntakes>> open(Queue& queue, Options options);

  /// Both are called in each turn of the loop: see Intake.
  bool poll(Moment now);
  Moment tick(Moment now);

  /// Replaces how records become jobs, starts new intakes and stops those that are gone. Of the others
  /// everything else needs a restart; that is reported.
  void change(Wanted wanted, Moment now, Millis grace);
  void stop(Moment now, Millis grace);
  bool is_stopped() const;

  std::vector<intake::IntakeFigures> figures() const;

 private:
  struct Running {
    Config::KafkaIntake said;
    std::unique_ptr<intake::Intake> intake;
  };

  KafkaIntakes(Queue& queue, Options options) : queue_(queue), options_(std::move(options)) {}
  Status start(const std::string& name, const Config::KafkaIntake& said);

  Queue& queue_;
  Options options_;
  std::map<std::string, Running> running_;
  std::vector<std::unique_ptr<intake::Intake>> ending_;  ///< no longer in the configuration
  bool is_stopping_ = false;
};

}  // namespace delayq
