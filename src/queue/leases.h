#pragma once

#include <memory>

#include "core/random.h"
#include "queue/hand_over.h"

namespace delayq {

/// What a consumer may do with a job it holds (rules 7 and 8).
class Leases {
 public:
  Leases(Context& context, HandOver& hand_over, const EffectiveSettings& defaults, Random random)
      : context_(context), hand_over_(hand_over), defaults_(defaults), random_(random) {}

  void ack(std::span<const AckItem> items, Reply<std::vector<Status>> reply);
  void ack_job(const JobRef& job, Reply<void> reply);
  void nack(std::span<const NackItem> items, Reply<std::vector<Result<NackReceipt>>> reply);
  void give_back(std::span<const GiveBackItem> items, Reply<uint64_t> reply);
  void extend(std::span<const ExtendItem> items, Reply<std::vector<Result<Moment>>> reply);

 private:
  struct NackBatch;
  void decide(std::unique_ptr<NackBatch> batch, const std::vector<LeaseInfo>& running);
  void settle(NackBatch& batch, const std::vector<NackOutcome>& outcomes);
  static void fail(NackBatch& batch, const Error& error);
  const EffectiveSettings& settings_of(const TopicPtr& topic) const;

  Context& context_;
  HandOver& hand_over_;
  const EffectiveSettings& defaults_;  ///< for topics that the queue does not know
  Random random_;
};

}  // namespace delayq
