#include "engine/redis/topic_rows.h"

#include <algorithm>

#include "engine/redis/record.h"

namespace delayq::redis {

namespace {

constexpr size_t kCountItems = kJobStateCount + 3;

}  // namespace

bool TopicRows::add(std::string_view topic, const resp::Value& said, size_t at) {
  if (said.items.size() < at + kCountItems) return false;
  Row& row = rows_[std::string(topic)];
  for (size_t state = 0; state < kJobStateCount; ++state)
    row.counts.by_state[state] += static_cast<uint64_t>(said.items[at + state].integer);
  const int64_t priority = said.items[at + kJobStateCount].integer;
  const Moment due = from_stored(said.items[at + kJobStateCount + 1].integer);
  const auto lease = time_of_lease(static_cast<uint64_t>(said.items[at + kJobStateCount + 2].integer));
  if (lease && (!row.counts.oldest_lease || *lease < *row.counts.oldest_lease))
    row.counts.oldest_lease = lease;
  if (priority < 0) return true;
  const bool is_first = row.first_priority < 0 || priority < row.first_priority ||
                        (priority == row.first_priority && due < *row.counts.oldest_ready);
  if (is_first) {
    row.first_priority = priority;
    row.counts.oldest_ready = due;
  }
  return true;
}

bool TopicRows::add_all(const resp::Value& answer) {
  constexpr size_t kFirst = 3;
  constexpr size_t kEach = kCountItems + 1;
  if (answer.items.size() < kFirst || (answer.items.size() - kFirst) % kEach != 0) return false;
  const std::string& last = answer.items[2].text;
  if (!last.empty() && (!known_to_ || last < *known_to_)) known_to_ = last;
  for (size_t at = kFirst; at < answer.items.size(); at += kEach) {
    if (!add(answer.items[at].text, answer, at + 1)) return false;
  }
  return true;
}

TopicCounts TopicRows::counts_of(std::string_view topic) const {
  const auto found = rows_.find(topic);
  return found == rows_.end() ? TopicCounts{} : found->second.counts;
}

void TopicRows::add_to(TopicCounts& sum) const {
  for (const auto& [name, row] : rows_) {
    for (size_t state = 0; state < kJobStateCount; ++state) sum.by_state[state] += row.counts.by_state[state];
  }
}

TopicPage TopicRows::page(uint32_t limit) const {
  TopicPage page;
  uint32_t seen = 0;
  for (const auto& [name, row] : rows_) {
    if (known_to_ && name > *known_to_) break;
    if (seen == limit) return page;
    ++seen;
    page.cursor = name;
    const auto& counts = row.counts.by_state;
    if (std::any_of(counts.begin(), counts.end(), [](uint64_t count) { return count > 0; }))
      page.topics.push_back({name, row.counts});
  }
  // The page has all topics of the replies.
  if (!known_to_) page.cursor.clear();
  return page;
}

}  // namespace delayq::redis
