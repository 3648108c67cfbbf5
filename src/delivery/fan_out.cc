#include "delivery/fan_out.h"

namespace delayq::delivery {

void FanOut::on_deliverable(std::string_view topic, Outlet outlet) {
  const bool to_redis = outlet == Outlet::kTopic && goes_to_redis(queue_.effective_settings(topic).delivery);
  if (!to_redis) return webhooks_.on_deliverable(topic, outlet);
  if (const Status status = queue_.check_delivery(topic); !status) return tell(topic, status.error());
  redis_.on_deliverable(topic, outlet);
}

void FanOut::tell_stuck() {
  told_.clear();
  for (const auto& [topic, why] : queue_.undeliverable()) tell(topic, why);
}

void FanOut::tell(std::string_view topic, const Error& why) {
  if (told_.emplace(topic).second && stuck_) stuck_(topic, why);
}

}  // namespace delayq::delivery
