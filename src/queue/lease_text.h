#pragma once

#include <optional>
#include <string_view>

#include "core/arena.h"
#include "core/job.h"
#include "core/random.h"
#include "core/result.h"
#include "engine/requests.h"

/// The lease that consumers get and send back: "<topic>/<engine's lease>/<attempt>". Neither a topic's name
/// nor an engine's lease contains a '/'.
///
/// The topic is a part of it so that any server can find the job. The attempt is a part of it so that a nack
/// needs no look at the job first: all that the retry policy must know of the job is there. A consumer that
/// changes it gains nothing that NACK with a delay does not give it.
namespace delayq {

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

}  // namespace delayq
