#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/arena.h"
#include "core/retry_policy.h"
#include "kafka/consumer.h"
#include "queue/verbs.h"

namespace delayq::intake {

/// The names of the headers that say what becomes of a record. All but `retries` are not carried on.
struct HeaderNames {
  std::string delay = "delayq-delay";        ///< a duration
  std::string at = "delayq-at";              ///< a moment
  std::string topic = "delayq-topic";        ///< of the job
  std::string id = "delayq-id";              ///< of the job
  std::string target = "delayq-target";      ///< the Kafka topic that the job is delivered to
  std::string group = "delayq-group";        ///< of the job
  std::string priority = "delayq-priority";  ///< of the job
  std::string attempts = "delayq-attempts";  ///< to deliver the job
  std::string retries = "delayq-retries";    ///< how often the record has come back; written by delayq

  bool operator==(const HeaderNames&) const = default;
};

/// Retries of records that their consumer has sent back: see JobOfRecord.
struct RetryRule {
  uint32_t retries = 0;  ///< how often a record may come back
  Backoff backoff = ExponentialBackoff{};

  bool operator==(const RetryRule&) const = default;
};

/// How records become jobs.
struct Rules {
  HeaderNames headers;
  std::string topic{};               ///< of jobs whose record names none; empty: the Kafka topic's name
  Millis delay{};                    ///< of records that say neither `delay` nor `at`
  bool delays_from_arrival = false;  ///< a delay counts from now, and not from the record's timestamp
  OnConflict on_conflict = OnConflict::kKeep;  ///< for records that name an id
  bool carries = true;                         ///< the key and the other headers travel with the job
  std::optional<RetryRule> retry{};

  bool operator==(const Rules&) const = default;
};

/// Makes the push of a record. The body is the record's value, as it is.
///
/// Identity. Without an id of its own, the job's is TOPIC-PARTITION-OFFSET with OnConflict::kKeep, so that a
/// record that is read twice is one job.
///
/// Time. A delay counts from the record's timestamp, so neither a stop of the server nor reading the record
/// again makes it longer. A record without a timestamp counts from the push.
///
/// Retries. With Rules::retry the delay of a record without `delay` and `at` comes from the backoff, by how
/// often the record has come back: the header `retries`, which is carried on with one more.
///
/// The views of the push point into the record, the rules and `texts`. An error means that the record can
/// never be a job; the detail names the header. The queue checks the rest.
Result<PushRequest> job_of(const kafka::InputRecord& record, const Rules& rules, Arena& texts);

}  // namespace delayq::intake
