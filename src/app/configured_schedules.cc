#include "app/configured_schedules.h"

#include <fmt/format.h>

#include "core/limits.h"
#include "core/text.h"

namespace delayq {

void ConfiguredSchedules::apply(Wanted wanted) {
  set_all(std::move(wanted));
  look_for_others();
}

void ConfiguredSchedules::set_all(Wanted wanted) {
  wanted_ = std::move(wanted);
  ++generation_;
  unanswered_ = 0;
  for (const auto& each : wanted_) {
    told_.erase(each.first);
    set(each.first);
  }
}

void ConfiguredSchedules::set(const std::string& name) {
  ++unanswered_;
  const auto settled = [this, name, alive = std::weak_ptr(alive_),
                        generation = generation_](const Error* error) {
    if (alive.expired() || generation != generation_) return;
    --unanswered_;
    if (error == nullptr) return;
    tell_(true, fmt::format("schedule {} is not as configured, and is tried again at the next reload: {}",
                            quote(name), error->detail));
  };
  queue_.get_schedule(
      now_(), name, kAllTopics,
      [this, name, settled, alive = std::weak_ptr(alive_),
       generation = generation_](const Result<std::optional<ScheduleView>>& found) {
        if (alive.expired() || generation != generation_) return;
        if (!found.ok()) return settled(&found.error());
        const bool is_of_client = found->has_value() && !(*found)->spec.from_configuration;
        queue_.set_schedule(
            now_(), wanted_.at(name).spec(name), kAllTopics,
            [this, name, settled, is_of_client, alive](const Result<ScheduleReceipt>& receipt) {
              if (receipt.ok() && is_of_client && !alive.expired())
                tell_(false, fmt::format("schedule {} was set by a client: the configuration replaces it",
                                         quote(name)));
              settled(receipt.ok() ? nullptr : &receipt.error());
            });
      });
}

void ConfiguredSchedules::look_through(std::string after, Broken broken) {
  queue_.list_schedules(
      now_(), {.after = after, .limit = Limits::kPageJobs}, kAllTopics,
      [this, alive = std::weak_ptr(alive_), generation = generation_,
       broken = std::move(broken)](const Result<ScheduleViews>& page) mutable {
        // After an error the next reload looks again.
        if (alive.expired() || generation != generation_ || !page.ok()) return;
        for (const ScheduleView& seen : page->schedules) {
          const std::string name{seen.spec.name};
          if (!seen.problem.empty() && ++broken.count == 1)
            broken.first = fmt::format("{} makes no jobs: {}", quote(name), seen.problem);
          if (!seen.spec.from_configuration || wanted_.contains(name) || !told_.insert(name).second) continue;
          tell_(false, fmt::format("schedule {} is no longer in the configuration; it is left as it is: "
                                   "delayq schedule remove {}",
                                   quote(name), name));
        }
        if (!page->cursor.empty()) return look_through(page->cursor, std::move(broken));
        if (broken.count == 1) tell_(true, "schedule " + broken.first);
        if (broken.count > 1)
          tell_(true, fmt::format("{} schedules make no jobs; schedule {}", broken.count, broken.first));
      });
}

}  // namespace delayq
