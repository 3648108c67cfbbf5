#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include <absl/container/flat_hash_set.h>

#include "queue/queue.h"

namespace delayq::delivery {

/// The queue's one listener, where jobs leave in several ways: tells each who delivers of the topics that are
/// its own, as their settings are at that moment. When they change the queue tells of the topic once more,
/// and whoever had it before finds that it is not his any longer when he asks for jobs.
///
/// Jobs that are to go to Redis, and cannot, wait where they are; that is told once for each topic.
class FanOut final : public DeliveryListener {
 public:
  using Stuck = std::function<void(std::string_view topic, const Error& why)>;

  /// All must outlive it. `stuck` may be empty.
  FanOut(const Queue& queue, DeliveryListener& webhooks, DeliveryListener& redis, Stuck stuck)
      : queue_(queue), webhooks_(webhooks), redis_(redis), stuck_(std::move(stuck)) {}

  void on_deliverable(std::string_view topic, Outlet outlet) override;
  /// Tells of all topics with settings of their own whose jobs would wait, those without any jobs too. From
  /// now on all is told anew.
  void tell_stuck();

 private:
  void tell(std::string_view topic, const Error& why);

  const Queue& queue_;
  DeliveryListener& webhooks_;
  DeliveryListener& redis_;
  Stuck stuck_;
  absl::flat_hash_set<std::string> told_;
};

}  // namespace delayq::delivery
