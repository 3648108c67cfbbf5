#include "delivery/sources.h"

#include <algorithm>

namespace delayq::delivery {

Source& Sources::tell(std::string_view topic, Outlet outlet) {
  std::unique_ptr<Source>& source = all_[Key{topic, outlet}];
  if (source == nullptr) {
    source = std::make_unique<Source>();
    source->topic = topic;
    source->outlet = outlet;
    source->serial = ++last_serial_;
    runnable_.push_back(source.get());
  }
  return *source;
}

Source* Sources::next() {
  if (runnable_.empty()) return nullptr;
  Source* source = runnable_.front();
  runnable_.pop_front();
  source->state = Source::State::kTaking;
  source->told_again = false;
  return source;
}

void Sources::leave_state(Source& source) {
  if (source.state == Source::State::kSleeping) sleeping_.erase({source.wakes_at, source.serial});
  if (source.state == Source::State::kHeld) {
    const auto line = held_.find(source.lane);
    line->second.erase(std::find(line->second.begin(), line->second.end(), &source));
    if (line->second.empty()) held_.erase(line);
  }
}

void Sources::run(Source& source) {
  if (source.state == Source::State::kRunnable) return;
  leave_state(source);
  source.state = Source::State::kRunnable;
  runnable_.push_back(&source);
}

void Sources::rest(Source& source, Moment until) {
  leave_state(source);
  source.state = Source::State::kSleeping;
  source.wakes_at = until;
  sleeping_.emplace(std::pair{until, source.serial}, &source);
}

void Sources::hold(Source& source, std::string lane) {
  leave_state(source);
  source.state = Source::State::kHeld;
  source.lane = std::move(lane);
  held_[source.lane].push_back(&source);
}

void Sources::drop(Source& source) {
  leave_state(source);
  all_.erase(Key{source.topic, source.outlet});
}

void Sources::wake_sleepers(Moment now) {
  while (!sleeping_.empty() && sleeping_.begin()->first.first <= now) run(*sleeping_.begin()->second);
}

void Sources::lane_has_room(const std::string& lane, uint32_t jobs) {
  if (held_.contains(lane)) {
    for (; jobs > 0 && held_.contains(lane); --jobs) run(*held_.find(lane)->second.front());
    return;
  }
  // It is not known for which lane a source rests.
  for (const auto& [when, source] : sleeping_) {
    if (source->rest > Millis::zero()) return run(*source);
  }
}

void Sources::lane_is_closed(const std::string& lane) {
  while (held_.contains(lane)) run(*held_.find(lane)->second.front());
}

}  // namespace delayq::delivery
