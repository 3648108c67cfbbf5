#include "queue/topic_table.h"

#include <utility>

namespace delayq {

std::optional<size_t> TopicTable::place_of(std::string_view topic) const {
  const auto found = by_name_.find(topic);
  if (found == by_name_.end()) return std::nullopt;
  return found->second->place;
}

TopicPtr TopicTable::find(std::string_view topic) const {
  const std::optional<size_t> place = place_of(topic);
  return place ? ring_[*place] : nullptr;
}

TopicPtr TopicTable::open(std::string_view topic, Moment now) {
  if (TopicPtr found = find(topic)) {
    found->last_used = now;
    return found;
  }
  auto made = std::make_shared<TopicState>(topic, ++last_serial_);
  made->settings = &defaults_;
  made->last_used = now;
  made->place = ring_.size();
  by_name_.emplace(made->name, made.get());
  ring_.push_back(made);
  return made;
}

void TopicTable::forget(std::string_view topic) {
  const auto found = by_name_.find(topic);
  if (found == by_name_.end()) return;
  const size_t place = found->second->place;
  by_name_.erase(found);
  std::swap(ring_[place], ring_.back());
  ring_[place]->place = place;
  ring_.pop_back();
}

}  // namespace delayq
