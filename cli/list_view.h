#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/verb.h"
#include "core/job_state.h"
#include "core/time.h"

namespace delayq::cli {

/// Which jobs are listed.
struct JobFilter {
  std::string topic;
  std::vector<std::string> states;  ///< in the order in which they are listed
  std::optional<std::string> prefix, error;
  std::optional<std::string> due_after, due_before;  ///< as the server reads moments
};

/// What a walk over listings came to.
struct JobWalk {
  uint64_t jobs = 0;
  uint32_t pages = 0;     ///< that were asked for
  bool has_more = false;  ///< one of the bounds ended it
};

/// Asks for the jobs page by page, at most `most` jobs and `most_pages` pages, and calls `show` with each. If
/// that returns false, the reply was not one of delayq.
Result<JobWalk> walk_jobs(const Session& session, const JobFilter& filter, uint64_t most, uint32_t most_pages,
                          const std::function<bool(const resp::Value& job)>& show);

/// Jobs as a table for people. Columns in which nothing stands are left out.
class JobRows {
 public:
  /// Returns false if it is not a job.
  bool add(const Session& session, const resp::Value& job);
  bool empty() const { return rows_.empty(); }
  size_t size() const { return rows_.size(); }
  /// `most_columns`: longer lines are cut; 0: none.
  std::string text(size_t most_columns) const;

 private:
  std::vector<std::array<std::string, 7>> rows_;
};

/// One moment of a list that is watched.
struct ListSnapshot {
  std::string server;
  std::string topic;
  Moment at{};
  std::string counts;  ///< of the topic by state, for people
  JobRows rows{};
  bool has_more = false;
  std::string problem{};  ///< why this is not the newest state; empty: it is
};

struct ListLook {
  size_t width = 80;
  size_t height = 24;
  size_t scroll = 0;    ///< jobs that are above the screen
  bool styled = false;  ///< with the escape sequences of a terminal
};

/// The lines of the screen: at most `height`, and none wider than `width`.
std::vector<std::string> render_list(const ListSnapshot& snapshot, const ListLook& look);

}  // namespace delayq::cli
