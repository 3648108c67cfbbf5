#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/requests.h"

namespace delayq::support {

/// The time of a test's clock unless the test sets it. Any time would do; this one is easy
/// to read in a failure.
inline constexpr Moment kStart = from_unix_ms(1'700'000'000'000);

/// That many milliseconds after (or before) the start of the test.
constexpr Moment at(int64_t ms) { return kStart + Millis{ms}; }

/// A job to push, with its own strings: a test sets only what matters to it.
///   JobSpec("mail", "a").due_at(at(100)).with_priority(0)
struct JobSpec {
  JobSpec() = default;
  JobSpec(std::string topic_name, std::string job_id) : topic(std::move(topic_name)), id(std::move(job_id)) {}

  JobSpec& due_at(Moment moment) { return due = moment, *this; }
  JobSpec& with_body(std::string bytes) { return body = std::move(bytes), *this; }
  JobSpec& with_options(std::string bytes) { return options = std::move(bytes), *this; }
  JobSpec& with_lease(Millis length) { return lease = length, *this; }
  JobSpec& in_group(std::string name) { return group = std::move(name), *this; }
  JobSpec& with_priority(uint32_t value) { return priority = value, *this; }
  JobSpec& or_replace() { return on_conflict = OnConflict::kReplace, *this; }
  JobSpec& or_keep() { return on_conflict = OnConflict::kKeep, *this; }
  JobSpec& called_back() { return outlet = Outlet::kCallback, *this; }
  JobSpec& nowhere_else() { return unique_across_topics = true, *this; }

  /// Valid as long as this object.
  NewJob view() const {
    return {.topic = topic,
            .id = id,
            .group = group,
            .body = body,
            .options = options,
            .due = due,
            .priority = priority,
            .on_conflict = on_conflict,
            .unique_across_topics = unique_across_topics,
            .outlet = outlet,
            .lease = lease};
  }

  std::string topic;
  std::string id;
  std::string group;
  std::string body;
  std::string options;
  Moment due = kStart;
  uint32_t priority = kDefaultPriority;
  OnConflict on_conflict = OnConflict::kReject;
  bool unique_across_topics = false;
  Outlet outlet = Outlet::kTopic;
  Millis lease{};
};

inline std::vector<NewJob> views(const std::vector<JobSpec>& jobs) {
  std::vector<NewJob> result;
  result.reserve(jobs.size());
  for (const JobSpec& job : jobs) result.push_back(job.view());
  return result;
}

/// A retention that is longer than any test.
inline constexpr Keep kKeepAll{at(1'000'000'000'000), 1'000'000};
inline constexpr Keep kKeepNone{};

}  // namespace delayq::support
