#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "engine/requests.h"

namespace delayq::support {

/// A job that an engine returned, with its own strings.
struct SeenJob {
  std::string topic;
  std::string id;
  std::string group;
  std::string body;
  std::string options;
  std::string outcome;
  JobState state = JobState::kDelayed;
  uint32_t priority = 0;
  uint32_t attempts = 0;
  Moment due{};
  Moment pushed{};
  Moment until{};
  bool cancel_requested = false;
  Outlet outlet = Outlet::kTopic;

  bool operator==(const SeenJob&) const = default;
};

SeenJob seen(const Job& job);
/// The reverse; valid as long as `job`.
Job view_of(const SeenJob& job);

/// A job that was handed out, with its lease.
struct Taken {
  std::string lease;
  SeenJob job;

  LeaseRef ref() const { return {job.topic, lease}; }
};

struct SeenPage {
  std::vector<SeenJob> jobs;
  std::string cursor;
};

std::vector<Taken> seen(const TakeAnswer& answer);
SeenPage seen(const JobPage& page);

std::vector<std::string> ids_of(const std::vector<SeenJob>& jobs);
std::vector<std::string> ids_of(const std::vector<Taken>& jobs);

/// One line, whatever the job's strings contain. A long string is shown as its start, its
/// length and its checksum.
std::string to_string(const SeenJob& job);
std::ostream& operator<<(std::ostream& out, const SeenJob& job);

/// The same for a single string.
std::string brief(std::string_view text);

}  // namespace delayq::support
