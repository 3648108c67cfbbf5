#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "api/http/metrics.h"
#include "app/storage.h"
#include "core/result.h"
#include "engine/kafka/ladder.h"
#include "engine/redis/cold_tier.h"
#include "net/redis/client.h"

namespace delayq {

/// What the kafka engine has besides the redis engine: the ladder in Kafka with its clients, and what is
/// logged about it.
class ColdStorage {
 public:
  /// Makes the topics that are missing and checks all of them; waits at most `patience` for a broker.
  /// `redis_prefix` is that of the keys. `redis` must outlive it. `wakeup` is called from other threads.
  static Result<std::unique_ptr<ColdStorage>> open(ColdStorageOptions options, net::redis::Client& redis,
                                                   std::string_view redis_prefix, Millis patience,
                                                   std::function<void()> wakeup);

  kafka::Ladder& ladder() { return *ladder_; }
  /// For the start-up line.
  std::string describe() const;
  /// Reports to `tell` that Kafka cannot be used, and that it is back. Call it in each turn of the loop.
  void look(const redis::ColdTier& tier, const std::function<void(bool, std::string_view)>& tell);
  http::LadderFigures figures(const redis::ColdTier& tier) const;

 private:
  explicit ColdStorage(ColdStorageOptions options) : options_(std::move(options)) {}

  ColdStorageOptions options_;
  std::unique_ptr<kafka::Ladder> ladder_;
  std::string told_;
  std::chrono::steady_clock::time_point told_at_{};
};

}  // namespace delayq
