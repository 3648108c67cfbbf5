#include "queue/waiters.h"

#include <cassert>

namespace delayq {

Waiter& Waiters::add() {
  auto made = std::make_unique<Waiter>();
  made->id = ++last_id_;
  Waiter& waiter = *made;
  all_.emplace(waiter.id, std::move(made));
  return waiter;
}

Waiter* Waiters::find(WaiterId id) {
  const auto found = all_.find(id);
  return found == all_.end() ? nullptr : found->second.get();
}

void Waiters::remove(Waiter& waiter) {
  assert(!waiter.idle);
  all_.erase(waiter.id);
}

void Waiters::park(Waiter& waiter) {
  waiter.idle = true;
  for (const TopicPtr& topic : waiter.topics) topic->idle.emplace(waiter.id, &waiter);
  give_ups_.emplace(waiter.give_up, waiter.id);
}

void Waiters::unpark(Waiter& waiter) {
  waiter.idle = false;
  for (const TopicPtr& topic : waiter.topics) topic->idle.erase(waiter.id);
  give_ups_.erase({waiter.give_up, waiter.id});
}

Waiter* Waiters::first_to_give_up() { return give_ups_.empty() ? nullptr : find(give_ups_.begin()->second); }

void Waiters::clock_went_back(Millis by) {
  give_ups_.clear();
  for (auto& [id, waiter] : all_) {
    waiter->give_up -= by;
    if (waiter->idle) give_ups_.emplace(waiter->give_up, id);
  }
}

}  // namespace delayq
