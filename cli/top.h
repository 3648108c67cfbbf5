#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/verb.h"
#include "core/time.h"

namespace delayq::cli {

/// What `delayq top` shows of a topic, or of all of them.
struct TopRow {
  std::string topic;
  int64_t delayed = 0, ready = 0, reserved = 0, done = 0, dead = 0;
  int64_t waiters = 0;
  double push_rate = 0, pop_rate = 0, ack_rate = 0;  ///< per second, since the sample before
  Millis late_p50{}, late_p99{};                     ///< of the hand-overs since the server started
  bool paused = false;

  bool operator==(const TopRow&) const = default;
};

/// One moment of a server. The rows are one page of its topics.
struct TopSnapshot {
  std::string server;
  Moment at{};
  Millis span{};  ///< over which the rates are measured
  TopRow totals;
  int64_t topics = 0;  ///< in all
  size_t first = 0;    ///< how many topics the pages before this one had
  bool is_last = true;
  std::vector<TopRow> rows;
  std::string problem;  ///< why this is not the newest state; empty: it is
};

enum class TopSort : uint8_t {
  kName,
  kDelayed,
  kReady,
  kReserved,
  kDead,
  kPush,
  kPop,
  kAck,
  kLate,
  kWaiters
};

/// The sort key that a word of the command line names, or a key of the keyboard.
std::optional<TopSort> top_sort_of(std::string_view name);
std::optional<TopSort> top_sort_of(char key);
/// All of them, for help and completion.
std::vector<std::string> top_sort_names();

/// How it is displayed.
struct TopLook {
  TopSort sort = TopSort::kReady;
  size_t scroll = 0;  ///< rows that are above the screen
  size_t width = 80;
  size_t height = 24;   ///< lines
  bool styled = false;  ///< with the escape sequences of a terminal
};

/// The largest first, except names; equal ones by name.
void sort_rows(std::vector<TopRow>& rows, TopSort sort);

/// How many rows fit on the screen.
size_t visible_rows(const TopLook& look);

/// The lines of the screen: at most `height`, and none wider than `width`. Columns that do not fit are left
/// out, the least important first. REQUIRES: the rows are sorted.
std::vector<std::string> render_top(const TopSnapshot& snapshot, const TopLook& look);

/// The same for a program: one object on one line.
std::string top_as_json(const TopSnapshot& snapshot);

/// Asks a server for what `delayq top` shows: the totals, one page of topics, and the statistics of each
/// topic of the page. It remembers the counts of the sample before, from which the rates come.
class TopSource {
 public:
  /// `page`: topics in one.
  TopSource(const Session& session, std::string server, uint32_t page)
      : session_(session), server_(std::move(server)), page_(page) {}

  Result<TopSnapshot> sample();

  /// Turns pages, in the order of the topics' names. Does nothing if there is no such page.
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
