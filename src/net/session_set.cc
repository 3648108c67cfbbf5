#include "net/session_set.h"

#include <algorithm>
#include <utility>

#include "net/session.h"

namespace delayq::net {

namespace {

constexpr size_t kScratchBytes = 256 * 1024;
/// Looking at all sessions takes time: not more often than this.
constexpr std::chrono::milliseconds kBetweenDrops{100};

}  // namespace

SessionSet::SessionSet() : scratch_(kScratchBytes, '\0') {}

SessionSet::~SessionSet() { clear(); }  // before the budget and the list that they are in

void SessionSet::clear() {
  touched_.clear();
  held_back_.clear();
  open_.clear();
}

bool SessionSet::finish_turn() {
  bool any_read = false;
  for (const std::shared_ptr<AtTurnEnd>& whoever : std::exchange(touched_, {})) {
    any_read |= whoever->finish_turn();
  }
  if (requests_.is_full()) drop_largest_requests();
  if (held_back_.empty() || budget_.is_full()) return any_read;
  for (const std::shared_ptr<Session>& session : std::exchange(held_back_, {})) session->on_budget();
  return true;
}

void SessionSet::drop_largest_requests() {
  while (requests_.is_full()) {
    const auto largest = std::max_element(open_.begin(), open_.end(), [](const auto& one, const auto& other) {
      return one->request_bytes() < other->request_bytes();
    });
    if (largest == open_.end() || (*largest)->request_bytes() == 0) return;  // those that are closing have it
    // A copy: closing it removes it from the set.
    const std::shared_ptr<Session> session = *largest;  // NOLINT(performance-unnecessary-copy-initialization)
    session->close();
  }
}

bool SessionSet::drop_stranger() {
  if (strangers_.empty()) return false;
  strangers_.front()->close();
  return true;
}

void SessionSet::drop_slow_reader(Steady now) {
  if (!budget_.is_full() || now < last_drop_ + kBetweenDrops) return;
  last_drop_ = now;
  std::shared_ptr<Session> largest;
  for (const std::shared_ptr<Session>& session : open_) {
    if (session->is_read_slowly(now) && (largest == nullptr || session->unsent() > largest->unsent()))
      largest = session;
  }
  if (largest != nullptr) largest->close();
}

}  // namespace delayq::net
