#include "tests/support/seen_job.h"

#include <ostream>

#include <fmt/format.h>

#include "core/crc32c.h"
#include "core/text.h"

namespace delayq::support {

SeenJob seen(const Job& job) {
  return {
      .topic = std::string{job.topic},
      .id = std::string{job.id},
      .group = std::string{job.group},
      .body = std::string{job.body},
      .options = std::string{job.options},
      .outcome = std::string{job.outcome},
      .state = job.state,
      .priority = job.priority,
      .attempts = job.attempts,
      .due = job.due,
      .pushed = job.pushed,
      .until = job.until,
      .cancel_requested = job.cancel_requested,
      .outlet = job.outlet,
  };
}

Job view_of(const SeenJob& job) {
  return {job.topic,    job.id,       job.group, job.body,   job.options, job.outcome,          job.state,
          job.priority, job.attempts, job.due,   job.pushed, job.until,   job.cancel_requested, job.outlet};
}

std::vector<Taken> seen(const TakeAnswer& answer) {
  std::vector<Taken> jobs;
  jobs.reserve(answer.jobs.size());
  for (const TakenJob& taken : answer.jobs) jobs.push_back({std::string{taken.lease}, seen(taken.job)});
  return jobs;
}

SeenPage seen(const JobPage& page) {
  SeenPage result{{}, page.cursor};
  result.jobs.reserve(page.jobs.size());
  for (const Job& job : page.jobs) result.jobs.push_back(seen(job));
  return result;
}

std::vector<std::string> ids_of(const std::vector<SeenJob>& jobs) {
  std::vector<std::string> ids;
  for (const SeenJob& job : jobs) ids.push_back(job.id);
  return ids;
}

std::vector<std::string> ids_of(const std::vector<Taken>& jobs) {
  std::vector<std::string> ids;
  for (const Taken& taken : jobs) ids.push_back(taken.job.id);
  return ids;
}

std::string brief(std::string_view text) {
  constexpr size_t kShort = 24;
  if (text.size() <= kShort) return quote(text);
  return fmt::format("{}+{}:{:08x}", quote(text.substr(0, kShort / 2)), text.size(),
                     crc32c(0, text.data(), text.size()));
}

std::string to_string(const SeenJob& job) {
  return fmt::format(
      "{}/{} {} due={} pushed={} until={} pri={} attempts={} group={} body={} options={} outcome={}{}{}",
      brief(job.topic), brief(job.id), name_of(job.state), to_unix_ms(job.due), to_unix_ms(job.pushed),
      to_unix_ms(job.until), job.priority, job.attempts, brief(job.group), brief(job.body),
      brief(job.options), brief(job.outcome), job.cancel_requested ? " cancel-requested" : "",
      job.outlet == Outlet::kCallback ? " called-back" : "");
}

std::ostream& operator<<(std::ostream& out, const SeenJob& job) { return out << to_string(job); }

}  // namespace delayq::support
