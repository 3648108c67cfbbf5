#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "queue/schedule.h"
#include "tests/simulation/history.h"

namespace delayq::simulation {

/// What users must see of schedules, whatever happens to the server: each occurrence becomes one job, never
/// before its time, and what becomes none is counted as skipped or missed.
///
/// It knows the rules of schedules (rule 16) by itself, from the calendar's arithmetic, and looks at what the
/// queue asks of the engine. Its methods return what is wrong; empty when nothing is.
class Occurrences {
 public:
  using Operation = History::Operation;

  struct Turn {
    Operation operation = 0;
    Moment now{};
    const StoredSchedule* before = nullptr;  ///< null: there was none
    const StoredSchedule* after = nullptr;   ///< null: it was removed
    const TurnRequest& request;
    TurnAnswer answer{};
  };

  /// A turn that was carried out.
  std::string turned(const Turn& turn);
  /// After a crash: of this schedule, what came after that operation never happened.
  void went_back(std::string_view name, Operation operation);
  /// Whether the counts of a stored schedule are those of its rule since it was set, as far as the rule has
  /// stayed the same.
  std::string check_counts(const StoredSchedule& schedule) const;
  /// How many jobs were made, and survived.
  uint64_t made() const;

 private:
  /// One version of a schedule. A crash takes the last ones away.
  struct Entry {
    Operation operation = 0;
    bool is_gone = false;      ///< it was removed: the next one is another schedule of that name
    bool is_countable = true;  ///< the rule has been the same since it was set, and was counted to the end
    std::string made{};        ///< the job's id; empty: none
  };
  using Line = std::vector<Entry>;

  std::string judge(const Turn& turn, const Line& line, Entry& entry) const;

  std::map<std::string, Line, std::less<>> lines_;
};

}  // namespace delayq::simulation
