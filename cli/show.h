#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "cli/importing.h"
#include "cli/verb.h"

namespace delayq::cli {

/// Shows a job or statistics, which are a map of fields: one per line for a person, one object for a program.
/// Returns false if the reply is not a map.
bool show_map(const Session& session, const resp::Value& map);

/// A map as one JSON object. Fields that count or measure are numbers, those that say yes or no booleans, and
/// all others texts, even when they look like numbers.
std::string map_as_json(const resp::Value& map);

/// How many jobs of a topic are in which state.
struct TopicCounts {
  static constexpr std::array<std::string_view, 5> kStates{"delayed", "ready", "reserved", "done", "dead"};

  std::array<uint64_t, kStates.size()> states{};

  /// Delayed, ready and reserved together: time alone moves jobs from one to the next, and a reserved one is
  /// ready where it is restored.
  uint64_t live() const { return states[0] + states[1] + states[2]; }
  uint64_t done() const { return states[3]; }
  uint64_t dead() const { return states[4]; }
  uint64_t all() const { return live() + done() + dead(); }
};

/// By topic. Of a topic without jobs all counts are zero.
Result<std::map<std::string, TopicCounts>> count_topics(const Ask& ask);

/// All zero for a topic that is not in `topics`.
inline TopicCounts counts_of(const std::map<std::string, TopicCounts>& topics, const std::string& name) {
  const auto found = topics.find(name);
  return found == topics.end() ? TopicCounts{} : found->second;
}

/// A topic's name is cut to this many bytes when it is shown.
inline constexpr size_t kShownTopic = 60;

}  // namespace delayq::cli
