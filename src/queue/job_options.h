#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/job.h"
#include "core/retry_policy.h"
#include "queue/delivery.h"

namespace delayq {

/// What a single job says for itself, before its topic and the defaults are asked. It travels with the job as
/// NewJob::options, which engines keep and never read. Views belong to whoever filled it in.
struct JobOptions {
  std::optional<uint32_t> attempts{};  ///< 0: no limit
  std::optional<Backoff> backoff{};
  std::optional<Millis> lease{};
  std::string_view callback{};      ///< where its webhook goes; empty: where the topic says
  std::string_view content_type{};  ///< of the body; empty: not said
  std::string_view method{};        ///< of its webhook; empty: as the topic or the format says
  std::optional<CallbackFormat> format{};
  std::string_view name{};  ///< a label for people; nothing depends on it

  /// As for nearly every job.
  bool says_nothing() const {
    return !attempts && !backoff && !lease && callback.empty() && content_type.empty() && method.empty() &&
           !format && name.empty();
  }
  bool operator==(const JobOptions&) const = default;
};

/// A job with a callback of its own leaves by it, whatever its topic says.
constexpr Outlet outlet_of(const JobOptions& options) {
  return options.callback.empty() ? Outlet::kTopic : Outlet::kCallback;
}

/// OK, or what is out of range.
Status check_job_options(const JobOptions& options);

/// MessagePack appended to `out`; nothing at all when no option is set.
void encode_job_options(const JobOptions& options, std::string& out);

/// Unknown fields are passed over, so that an older server can read a newer one's jobs. Bytes that are not
/// options, or values out of range, decode to nothing being set: a damaged note must not make a job
/// undeliverable.
JobOptions decode_job_options(std::string_view bytes);

}  // namespace delayq
