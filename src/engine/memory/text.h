#pragma once

#include <charconv>
#include <optional>

#include "core/arena.h"
#include "engine/memory/job_table.h"

namespace delayq::memory {

/// All of `text` as a decimal number.
inline std::optional<uint64_t> parse_number(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

inline constexpr char kLeasePrefix = 'm';

/// A lease as its holder knows it.
inline std::string lease_text(uint64_t lease) { return kLeasePrefix + std::to_string(lease); }

/// The job as it is answered, with its texts in `storage`.
inline Job copy_job(const StoredJob& job, bool with_body, Arena& storage) {
  return {
      .topic = storage.copy(job.topic),
      .id = storage.copy(job.id),
      .group = storage.copy(job.group),
      .body = with_body ? storage.copy(job.body) : std::string_view{},
      .options = storage.copy(job.options),
      .outcome = storage.copy(job.outcome),
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

/// The other way round: the job with its texts, without a place in any order.
inline StoredJob stored(const Job& job) {
  StoredJob stored;
  stored.topic = job.topic;
  stored.id = job.id;
  stored.group = job.group;
  stored.body = job.body;
  stored.options = job.options;
  stored.outcome = job.outcome;
  stored.state = job.state;
  stored.priority = job.priority;
  stored.attempts = job.attempts;
  stored.due = job.due;
  stored.pushed = job.pushed;
  stored.until = job.until;
  stored.outlet = job.outlet;
  return stored;
}

}  // namespace delayq::memory
