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

/// Combines the counts of topics from several shards.
class TopicRows {
 public:
  /// Adds the counts of a topic in one shard: the reply of scripts/counts.lua, in `said` from `at` on.
  /// Returns false if it is malformed.
  bool add(std::string_view topic, const resp::Value& said, size_t at);
  /// Adds a reply of scripts/topics.lua.
  bool add_all(const resp::Value& answer);

  TopicCounts counts_of(std::string_view topic) const;
  /// Adds the sum of all topics, without the first job in line.
  void add_to(TopicCounts& sum) const;
  /// The first `limit` topics, as far as the replies of all shards reach. A topic without jobs is left out.
  TopicPage page(uint32_t limit) const;

 private:
  struct Row {
    TopicCounts counts;
    int64_t first_priority = -1;  ///< of the first job in line; -1: there is none
  };

  std::map<std::string, Row, std::less<>> rows_;
  std::optional<std::string> known_to_;  ///< beyond this name some shard has more topics than its reply
};

}  // namespace delayq::redis
