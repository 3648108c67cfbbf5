#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "core/random.h"
#include "engine/requests.h"
#include "queue/hand_over.h"
#include "queue/settings.h"

namespace delayq {

/// A failed attempt, however it failed.
struct Failure {
  std::string_view options{};     ///< the job's own word on it
  uint32_t attempts = 0;          ///< made so far, the failed one included
  std::optional<Millis> delay{};  ///< asked for by the consumer instead of the backoff
  bool dead = false;              ///< asked for by the consumer
};

/// What becomes of the job.
struct Verdict {
  std::optional<Moment> retry_at;  ///< nullopt: dead
  Keep keep;                       ///< when dead
};

/// Rule 8. The job's attempts and backoff go before its topic's; a delay that the consumer asks for replaces
/// the backoff, but not the count of attempts. `random` decides the jitter.
Verdict judge(const Failure& failure, const EffectiveSettings& topic, Moment now, uint64_t random);

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

/// Jobs whose lease ran out have failed once and go the way of all failures (rules 7 and 8).
class Recoverer {
 public:
  Recoverer(Context& context, HandOver& hand_over, const EffectiveSettings& defaults, Random random)
      : context_(context), hand_over_(hand_over), defaults_(defaults), random_(random) {}

  /// Being told twice of a lease is harmless: the second nack finds it stale.
  void recover(std::vector<LeaseInfo> leases);

  /// Tries again what the engine could not do the last time. Answers when it wants to be called next.
  Moment tick();

 private:
  void settle(const std::vector<LeaseInfo>& leases, const std::vector<NackOutcome>& outcomes);

  Context& context_;
  HandOver& hand_over_;
  const EffectiveSettings& defaults_;  ///< for topics that the queue does not know
  Random random_;
  std::vector<LeaseInfo> again_;
  Moment again_at_ = kNever;
};

}  // namespace delayq
