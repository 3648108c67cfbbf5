#pragma once

#include <string_view>

#include "core/job.h"

namespace delayq {

/// Told which topics have something for those who deliver jobs by themselves, so that nobody has to wait for
/// each of ten thousand topics.
class DeliveryListener {
 public:
  virtual ~DeliveryListener() = default;

  /// There may be ready jobs of that topic for that outlet: new ones, or others than before may be taken, or
  /// a limit was lifted. kTopic is told only of topics that are not pulled from. Comes from inside the
  /// queue's methods, also without cause: note it, and call Queue::take_for_delivery() later.
  virtual void on_deliverable(std::string_view topic, Outlet outlet) = 0;
};

}  // namespace delayq
