#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/top_view.h"
#include "cli/verb.h"

namespace delayq::cli {

/// Asks a server for what `delayq top` shows: the totals, one page of topics, and the statistics of each
/// topic of the page. It remembers the counts of the sample before, from which the rates come.
class TopSource {
 public:
  /// `page`: topics in one.
  TopSource(const Session& session, std::string server, uint32_t page)
      : session_(session), server_(std::move(server)), page_(page) {}

  Result<TopSnapshot> sample();

  /// The pages in the order of the topics' names; nothing when there is none there.
  void next_page();
  void previous_page();

 private:
  /// What was counted since the server started.
  struct Counts {
    int64_t pushed = 0, popped = 0, acked = 0;
  };

  TopRow row_of(const std::string& topic, const resp::Value& stats, double seconds);

  const Session& session_;
  std::string server_;
  uint32_t page_;
  std::vector<std::string> cursors_{""};  ///< of the pages up to this one
  std::string next_cursor_;
  std::vector<size_t> sizes_{0};  ///< topics before each of these pages
  size_t shown_ = 0;
  std::map<std::string, Counts> before_, now_;
  Moment last_{};
};

}  // namespace delayq::cli
