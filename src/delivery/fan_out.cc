#include "delivery/fan_out.h"

namespace delayq::delivery {

void FanOut::on_deliverable(std::string_view topic, Outlet outlet) {
  const bool to_redis = outlet == Outlet::kTopic && goes_to_redis(queue_.effective_settings(topic).delivery);
  if (!to_redis) return webhooks_.on_deliverable(topic, outlet);
  if (redis_ != nullptr) redis_->on_deliverable(topic, outlet);
}

}  // namespace delayq::delivery
