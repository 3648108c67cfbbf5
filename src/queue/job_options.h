#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/job.h"
#include "core/retry_policy.h"
#include "queue/delivery.h"

namespace delayq {

/// The options of a single job, which override the settings of its topic and the defaults. They are stored
/// with the job as NewJob::options; engines never read them. The views belong to the caller.
struct JobOptions {
  std::optional<uint32_t> attempts{};  ///< 0: no limit
  std::optional<Backoff> backoff{};
  std::optional<Millis> lease{};
  std::string_view callback{};      ///< the URL of its webhook; empty: the topic's
  std::string_view content_type{};  ///< of the body; empty: not known
  std::string_view method{};        ///< of its webhook; empty: that of the topic or the format
  std::optional<CallbackFormat> format{};
  std::string_view name{};  ///< a label for humans; nothing depends on it
  /// Where the job goes when its topic delivers to Kafka; empty: as the topic says.
  std::string_view kafka_topic{};
  /// Its headers, or the key and the headers of the Kafka record that it was made of, encoded:
  /// queue/job_headers.h.
  std::string_view headers{};
  /// Header lines that its own callback is called with, '\n' between them: queue/job_headers.h.
  std::string_view callback_headers{};
  bool is_notice = false;  ///< it tells of a job that died; if it dies itself, nobody is told

  /// Whether no option is set, as for most jobs.
  bool says_nothing() const {
    return !attempts && !backoff && !lease && callback.empty() && content_type.empty() && method.empty() &&
           !format && name.empty() && kafka_topic.empty() && headers.empty() && callback_headers.empty() &&
           !is_notice;
  }
  bool operator==(const JobOptions&) const = default;
};

/// A job with a callback of its own is delivered there, whatever the delivery of its topic is.
constexpr Outlet outlet_of(const JobOptions& options) {
  return options.callback.empty() ? Outlet::kTopic : Outlet::kCallback;
}

/// OK, or the first option that is out of range.
Status check_job_options(const JobOptions& options);
/// The same for a job that is pushed now: some names of headers are reserved (check_header_names()).
Status check_new_options(const JobOptions& options);

/// Appends MessagePack to `out`; appends nothing when no option is set.
void encode_job_options(const JobOptions& options, std::string& out);

/// Unknown fields are skipped, so that an older server can read the jobs of a newer one. For bytes that are
/// not options, or values out of range, returns options with nothing set: damaged options must not make a job
/// undeliverable.
JobOptions decode_job_options(std::string_view bytes);

}  // namespace delayq
