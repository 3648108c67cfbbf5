#include "engine/redis/hints.h"

#include <algorithm>

namespace delayq::redis {

bool Hints::may_have(uint32_t shard, std::string_view topic, Outlet outlet) const {
  const auto found = topics_.find(topic);
  return found == topics_.end() || !found->second[place(shard, outlet)].is_empty;
}

void Hints::note_ready(uint32_t shard, std::string_view topic, Outlet outlet) {
  if (shards_ == 1) return;  // which is always asked
  // A topic that is not known has no shard that is left out. But a take may be on its way.
  const auto found = topics_.find(topic);
  if (found == topics_.end()) {
    forgotten_ = ++noted_;
    return;
  }
  Line& line = found->second[place(shard, outlet)];
  line.heard = ++noted_;
  line.is_empty = false;
}

uint64_t Hints::heard(uint32_t shard, std::string_view topic, Outlet outlet) const {
  const auto found = topics_.find(topic);
  return found == topics_.end() ? forgotten_
                                : std::max(forgotten_, found->second[place(shard, outlet)].heard);
}

void Hints::note_empty(uint32_t shard, std::string_view topic, Outlet outlet, uint64_t heard) {
  if (shards_ == 1 || heard != this->heard(shard, topic, outlet)) return;
  if (topics_.size() >= kMostTopics && !topics_.contains(topic)) forget();
  Lines& lines = topics_[std::string(topic)];
  lines.resize(size_t{shards_} * kOutletCount);
  lines[place(shard, outlet)].is_empty = true;
}

}  // namespace delayq::redis
