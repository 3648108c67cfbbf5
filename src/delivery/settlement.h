#pragma once

#include <optional>
#include <string>
#include <vector>

#include "queue/queue.h"

namespace delayq::delivery {

/// What was decided about taken jobs since the queue was last told, so that it is told in batches. When the
/// queue cannot do it the leases run out by themselves, and the jobs are tried again.
class Settlement {
 public:
  explicit Settlement(Queue& queue) : queue_(queue) {}

  void done(std::string lease, std::string outcome);
  /// Failed; the queue decides what comes of it.
  void failed(std::string lease, std::string reason, std::optional<Millis> retry_after);
  void dead(std::string lease, std::string reason);
  /// Not tried; ready again at that moment.
  void give_back(std::string lease, Moment at);

  /// Tells the queue. Answers whether there was anything.
  bool send(Moment now);

 private:
  struct Item {
    std::string lease;
    std::string text;
    std::optional<Millis> delay{};
    bool dead = false;
    Moment at{};
  };

  Queue& queue_;
  std::vector<Item> done_;
  std::vector<Item> failed_;
  std::vector<Item> back_;
};

}  // namespace delayq::delivery
