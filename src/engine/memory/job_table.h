#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/arena.h"
#include "core/job.h"

namespace delayq::memory {

/// A job with all data that the engine has about it.
struct StoredJob {
  std::string topic;
  std::string id;
  std::string group;
  std::string body;
  std::string options;
  std::string outcome;
  JobState state = JobState::kDelayed;
  uint32_t priority = kDefaultPriority;
  uint32_t attempts = 0;
  Moment due{};
  Moment pushed{};
  Moment until{};
  Moment handed_over{};
  Moment ended{};  ///< done and dead: when the job ended; unset if it was restored in that state
  bool cancel_requested = false;
  Outlet outlet = Outlet::kTopic;
  Millis own_lease{};        ///< zero: none
  bool expiry_told = false;  ///< the lease's expiry has been reported to the queue
  uint64_t sequence = 0;     ///< push order; unique
  uint64_t entered = 0;      ///< order of entering its state; unique
  uint64_t lease = 0;        ///< the latest lease while reserved; otherwise 0
};

/// The jobs and all indexes to find them. Fields that an index depends on (state, due, until, lease) are
/// changed only through update(), which removes the job from all indexes and adds it again, so that no index
/// can be missed. Pointers and references stay valid until the job is erased.
class JobTable {
 public:
  using When = std::pair<Moment, uint64_t>;             ///< a moment, then push order
  using Rank = std::tuple<uint32_t, Moment, uint64_t>;  ///< hand-over order: priority, due, push order
  using InOrder = std::map<uint64_t, StoredJob*>;       ///< by `entered` or by `sequence`
  using InTime = std::map<When, StoredJob*>;
  using Names = std::set<std::string, std::less<>>;

  struct Topic {
    std::map<std::string, StoredJob, std::less<>> jobs;          ///< by id
    std::array<InOrder, kJobStateCount> states;                  ///< by `entered`
    std::array<std::map<Rank, StoredJob*>, kOutletCount> ready;  ///< by outlet

    const InOrder& in(JobState state) const { return states[static_cast<size_t>(state)]; }
    const std::map<Rank, StoredJob*>& ready_for(Outlet outlet) const {
      return ready[static_cast<size_t>(outlet)];
    }
  };

  JobTable() = default;
  // The indexes point into the jobs, so a copy would point into the original. A move keeps the jobs in place.
  JobTable(const JobTable&) = delete;
  JobTable& operator=(const JobTable&) = delete;
  JobTable(JobTable&&) = default;
  JobTable& operator=(JobTable&&) = default;

  /// Adds a job as the last one in push order. REQUIRES: no job has its (topic, id).
  StoredJob& insert(StoredJob job);
  /// Adds a job with its own `sequence` and `entered`. REQUIRES: as insert(), and no other
  /// job has these numbers.
  StoredJob& restore(StoredJob job);
  void erase(const StoredJob& job);

  /// Lets `change` modify the job, except topic, id, group, `sequence` and `entered`.
  template <class Change>
  void update(StoredJob& job, Change change) {
    const JobState before = job.state;
    unindex(job);
    change(job);
    if (job.state != before) job.entered = ++last_entered_;
    index(job);
  }

  StoredJob* find(std::string_view topic, std::string_view id);
  /// Returns the reserved job whose latest lease this is, or nullptr.
  StoredJob* find_lease(uint64_t lease);
  /// Returns nullptr if the topic has no jobs.
  const Topic* find_topic(std::string_view topic) const;

  const std::map<std::string, Topic, std::less<>>& topics() const { return topics_; }
  /// Delayed jobs by due time; done and dead jobs by the end of their retention.
  const InTime& alarms() const { return alarms_; }
  /// Reserved jobs by their lease's deadline.
  const InTime& deadlines() const { return deadlines_; }
  /// The live jobs of a group in push order.
  const InOrder& group(std::string_view name) const;
  /// The topics in which the id is live.
  const Names& topics_of(std::string_view id) const;
  uint64_t size() const { return size_; }

 private:
  void index(StoredJob& job);
  void unindex(const StoredJob& job);
  static When alarm_of(const StoredJob& job);

  std::map<std::string, Topic, std::less<>> topics_;
  InTime alarms_;
  InTime deadlines_;
  std::map<uint64_t, StoredJob*> leases_;
  std::map<std::string, InOrder, std::less<>> groups_;
  std::map<std::string, Names, std::less<>> live_ids_;
  uint64_t size_ = 0;
  uint64_t last_sequence_ = 0;
  uint64_t last_entered_ = 0;
};

/// Parses the whole `text` as a decimal number.
inline std::optional<uint64_t> parse_number(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

inline constexpr char kLeasePrefix = 'm';

/// The text of a lease, as consumers get it.
inline std::string lease_text(uint64_t lease) { return kLeasePrefix + std::to_string(lease); }

/// Makes the Job of a reply. Its strings are copied to `storage`.
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
      .handed_over = job.state == JobState::kReserved ? job.handed_over : Moment{},
  };
}

/// The reverse of copy_job(): copies the strings; `sequence` and `entered` are not set.
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
