#include "net/redis/slot_order.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace delayq::net::redis {

namespace {

/// None goes before another that has to wait.
void wait_together(std::vector<Request>& requests) {
  Loop::Steady not_before{};
  Loop::Steady give_up{};
  for (const Request& request : requests) {
    not_before = std::max(not_before, request.not_before);
    give_up = std::max(give_up, request.give_up);
  }
  for (Request& request : requests) {
    request.not_before = not_before;
    request.give_up = give_up;
  }
}

}  // namespace

void SlotOrder::stop(Request request) {
  const uint16_t lane = request.lane;
  stopped_[lane].refused.push_back(std::move(request));
}

void SlotOrder::hold(Request request) { stopped_.at(request.lane).held.push_back(std::move(request)); }

std::vector<Request> SlotOrder::resume(uint16_t lane) {
  const auto found = stopped_.find(lane);
  std::vector<Request>& refused = found->second.refused;
  if (refused.empty()) {
    std::vector<Request> held = std::move(found->second.held);
    stopped_.erase(found);
    return held;
  }
  // Two nodes may have refused them, in any order.
  std::sort(refused.begin(), refused.end(),
            [](const Request& a, const Request& b) { return a.number < b.number; });
  const auto end = std::find_if(refused.begin(), refused.end(), [&](const Request& request) {
    return request.to != refused.front().to || request.is_asking != refused.front().is_asking;
  });
  std::vector<Request> next(std::make_move_iterator(refused.begin()), std::make_move_iterator(end));
  refused.erase(refused.begin(), end);
  wait_together(next);
  return next;
}

}  // namespace delayq::net::redis
