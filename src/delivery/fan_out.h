#pragma once

#include "queue/queue.h"

namespace delayq::delivery {

/// The queue's one listener, where jobs leave in several ways: tells each who delivers of the topics that are
/// its own, as their settings are at that moment. When they change the queue tells of the topic once more,
/// and whoever had it before finds that it is not his any longer when he asks for jobs.
class FanOut final : public DeliveryListener {
 public:
  /// All must outlive it. `redis` may be null: then nobody brings jobs there.
  FanOut(const Queue& queue, DeliveryListener& webhooks, DeliveryListener* redis)
      : queue_(queue), webhooks_(webhooks), redis_(redis) {}

  void on_deliverable(std::string_view topic, Outlet outlet) override;

 private:
  const Queue& queue_;
  DeliveryListener& webhooks_;
  DeliveryListener* redis_;
};

}  // namespace delayq::delivery
