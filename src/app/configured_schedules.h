#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "ops/config.h"
#include "queue/queue.h"

namespace delayq {

/// Keeps the stored schedules as the configuration says. A schedule of the configuration replaces one that a
/// client has set under the same name. A schedule that the configuration no longer names is left as it is,
/// and reported once. Schedules that make no jobs here, because their zone is missing for example, are
/// reported with each look.
class ConfiguredSchedules {
 public:
  using Wanted = std::map<std::string, Config::Schedule>;
  /// Gets what an operator should know.
  using Tell = std::function<void(bool is_bad, const std::string& what)>;

  /// `queue` must outlive it. After it is destroyed, answers of the queue have no effect.
  ConfiguredSchedules(Queue& queue, std::function<Moment()> now, Tell tell)
      : queue_(queue), now_(std::move(now)), tell_(std::move(tell)) {}

  /// Sets those that differ, and looks for others. A schedule that cannot be set is reported, and is tried
  /// again by the next apply(). Returns at once: the queue answers later.
  void apply(Wanted wanted);
  /// The two parts of apply(). The look reads all stored schedules, so a start leaves it until it serves.
  void set_all(Wanted wanted);
  void look_for_others() { look_through({}, {}); }
  /// Whether all schedules of the last apply() or set_all() are set, or were refused.
  bool is_settled() const { return unanswered_ == 0; }

 private:
  /// Stored schedules that make no jobs here.
  struct Broken {
    uint64_t count = 0;
    std::string first{};  ///< its name, and why
  };

  void set(const std::string& name);
  /// Reports stored schedules that are no longer wanted, a page at a time; at the end those that are broken.
  void look_through(std::string after, Broken broken);

  Queue& queue_;
  std::function<Moment()> now_;
  Tell tell_;
  Wanted wanted_;
  uint64_t generation_ = 0;  ///< of wanted_: an answer about an earlier one is ignored
  size_t unanswered_ = 0;
  std::set<std::string> told_;  ///< no longer in the configuration, and reported
  std::shared_ptr<const char> alive_ = std::make_shared<const char>();
};

}  // namespace delayq
