#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <absl/container/flat_hash_set.h>

#include "core/arena.h"
#include "core/job.h"
#include "core/random.h"
#include "core/result.h"
#include "engine/requests.h"
#include "queue/death_notices.h"
#include "queue/hand_over.h"
#include "queue/settings.h"

namespace delayq {

// The lease that consumers get and send back: "<topic>/<engine's lease>/<attempt>". Neither a topic's name
// nor an engine's lease contains a '/'.
//
// The topic is a part of it so that any server can find the job. The attempt is a part of it so that a nack
// needs no look at the job first: all that the retry policy must know of the job is there. A consumer that
// changes it gains nothing that NACK with a delay does not give it.

/// An attempt at a job, as the retry policy sees it if it fails (rule 8).
struct Attempt {
  uint32_t number = 1;              ///< how many attempts were made, including this one
  std::optional<uint32_t> limit{};  ///< the job's own number of attempts, 0: no limit
  std::optional<Millis>
      delay{};  ///< how long to wait after this attempt, if the job has a backoff of its own

  bool operator==(const Attempt&) const = default;
};

/// The latest attempt at a job with these options. `random` decides the jitter of the job's own backoff.
Attempt attempt_of(std::string_view options, uint32_t attempts, Random& random);

struct HeldLease {
  LeaseRef ref;
  Attempt attempt;
};

std::string_view lease_text(const LeaseRef& lease, const Attempt& attempt, Arena& storage);

/// The topic in the text of a lease; the whole text if it has no '/'.
inline std::string_view topic_of_lease(std::string_view text) { return text.substr(0, text.find('/')); }

/// kInvalid when the text is not a lease. A text without the attempt, as earlier versions made them, is a
/// lease of a first attempt.
Result<HeldLease> parse_lease(std::string_view text);

/// A failed attempt: a nack or an expired lease.
struct Failure {
  Attempt attempt{};
  std::optional<Millis> delay{};  ///< requested by the consumer instead of the backoff
  bool dead = false;              ///< the consumer requests that the job is not tried again
};

/// What happens to the job after a failure.
struct Verdict {
  std::optional<Moment> retry_at;  ///< nullopt: the job is dead
  Keep keep;                       ///< the retention of a dead job
};

/// Rule 8. The job's own attempts and backoff override those of its topic. A delay requested by the consumer
/// replaces the backoff, but attempts are still counted. `random` decides the jitter.
Verdict judge(const Failure& failure, const EffectiveSettings& topic, Moment now, uint64_t random);

/// How leases end (rules 7 and 8): a consumer acks, nacks, gives back or extends, or the lease expires.
class Leases {
 public:
  Leases(Context& context, HandOver& hand_over, const EffectiveSettings& defaults, Random for_nacks,
         Random for_expired)
      : context_(context),
        death_notices_(context),
        hand_over_(hand_over),
        defaults_(defaults),
        nack_random_(for_nacks),
        expired_random_(for_expired) {}

  void ack(std::span<const AckItem> items, Reply<std::vector<Status>> reply);
  void ack_job(const JobRef& job, Reply<void> reply);
  void nack(std::span<const NackItem> items, Reply<std::vector<Result<NackReceipt>>> reply);
  void give_back(std::span<const GiveBackItem> items, Reply<uint64_t> reply);
  void extend(std::span<const ExtendItem> items, Reply<std::vector<Result<Moment>>> reply);

  /// Fails the jobs of expired leases, as a nack would. A lease that is reported twice does no harm: the
  /// second time it is stale.
  void expire(std::vector<LeaseInfo> leases);
  /// Retries the expired leases that the engine could not process. Returns when to call it next.
  Moment tick();

 private:
  /// What is told of the jobs of some leases (queue/news.h). The engine is asked for their ids.
  struct Telling;
  using TellingPtr = std::shared_ptr<Telling>;
  /// How a lease has ended.
  struct Ended {
    size_t place = 0;  ///< of the lease
    NewsKind kind = NewsKind::kDone;
    std::optional<JobState> state{};
    uint32_t attempt = 0;
    std::optional<Moment> due{};
    std::string reason{};
  };
  /// Null when nobody listens. Call it before the leases end.
  TellingPtr begin_telling(std::span<const LeaseRef> leases);
  void tell(const TellingPtr& telling, Ended ended);
  void note(const HeldJobs& jobs, const Ended& ended);
  /// The same for a nack or an expired lease.
  void tell_failure(const TellingPtr& telling, size_t place, NackOutcome outcome, uint32_t attempt,
                    std::optional<Moment> retry_at, std::string_view reason);

  struct NackBatch;
  void settle(NackBatch& batch, size_t item, const Result<NackOutcome>& outcome);
  void end_part(NackBatch& batch);
  struct Expiry;
  void settle_expired(Expiry& expiry, size_t item, const Result<NackOutcome>& outcome);
  const EffectiveSettings& settings_of(const TopicPtr& topic) const;

  Context& context_;
  DeathNotices death_notices_;
  HandOver& hand_over_;
  const EffectiveSettings& defaults_;   ///< for topics that the queue does not know
  Random nack_random_;                  ///< decides the jitter after nacks
  Random expired_random_;               ///< the same after expired leases
  std::vector<LeaseInfo> unprocessed_;  ///< expired leases that the engine could not process
  Moment retry_at_ = kNever;            ///< when those are tried again
  /// Those, and the leases of jobs whose deaths are being announced. An engine may report them again.
  absl::flat_hash_set<std::string> undecided_;
};

}  // namespace delayq
