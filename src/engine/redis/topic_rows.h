#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "engine/requests.h"
#include "resp/value.h"

namespace delayq::redis {

/// The counts of topics as several shards have them, put together.
class TopicRows {
 public:
  /// Adds what a shard says of a topic: what scripts/counts.lua answers, in `said` from `at` on. False: it is
  /// not.
  bool add(std::string_view topic, const resp::Value& said, size_t at);
  /// Adds an answer of scripts/topics.lua.
  bool add_all(const resp::Value& answer);

  TopicCounts counts_of(std::string_view topic) const;
  /// All together, without what is first in line.
  void add_to(TopicCounts& sum) const;
  /// The first `limit` topics, as far as every shard has told all it has. A topic whose jobs were all
  /// forgotten just now is left out.
  TopicPage page(uint32_t limit) const;

 private:
  struct Row {
    TopicCounts counts;
    int64_t first_priority = -1;  ///< of the first job in line; -1: there is none
  };

  std::map<std::string, Row, std::less<>> rows_;
  std::optional<std::string> known_to_;  ///< beyond this name some shard has more than it said
};

}  // namespace delayq::redis
