#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <absl/container/inlined_vector.h>

#include "core/histogram.h"
#include "core/job.h"
#include "core/time.h"
#include "engine/requests.h"
#include "queue/job_options.h"
#include "queue/settings.h"

/// The plain values that go into the queue and come out of it. Every string_view in a request needs to live
/// only until the call returns; those in an answer live as long as the answer. Everything in a request has a
/// default, so that designated initializers may leave out what is not said.

namespace delayq {

/// What a topic counts since the server started.
enum class Tally : uint8_t {
  kPushed,     ///< jobs created or replaced
  kPopped,     ///< handed over
  kAcked,      ///< done, by their consumer
  kNacked,     ///< failed, by their consumer
  kExpired,    ///< failed, because their lease ran out
  kDied,       ///< of the failed: gone to the dead letters
  kCancelled,  ///< taken back by their producer
};
inline constexpr size_t kTallyCount = 7;
inline constexpr std::array<std::string_view, kTallyCount> kTallyNames{
    "pushed", "popped", "acked", "nacked", "expired", "died", "cancelled"};

class Tallies {
 public:
  uint64_t of(Tally what) const { return counts_[static_cast<size_t>(what)]; }
  void add(Tally what, uint64_t count) { counts_[static_cast<size_t>(what)] += count; }

 private:
  std::array<uint64_t, kTallyCount> counts_{};
};

/// How late jobs were handed over, in buckets that double: up to 0, 1, 3, 7, 15 ... ms; the last takes all
/// the rest.
class Lateness {
 public:
  static constexpr size_t kBuckets = 28;  // the last but one ends above 18 hours

  void record(Millis late) {
    counts_.record(late < Millis::zero() ? 0 : static_cast<uint64_t>(late.count()));
  }

  /// The greatest lateness that `bucket` counts, itself included. REQUIRES: not the last bucket, which has no
  /// end.
  static constexpr Millis upper_bound(size_t bucket) {
    return Millis{static_cast<int64_t>(Histogram<kBuckets>::upper_bound(bucket))};
  }

  const std::array<uint64_t, kBuckets>& buckets() const { return counts_.buckets(); }
  uint64_t count() const { return counts_.count(); }
  Millis sum() const { return Millis{static_cast<int64_t>(counts_.sum())}; }

  /// The upper bound of the bucket in which the `part` (0 to 1) of all hand-overs lies: 0.99 for the 99th
  /// percentile. Zero when there were none; kNever's worth of milliseconds when it lies in the last bucket.
  Millis quantile(double part) const {
    const uint64_t bound = counts_.quantile(part);
    return bound == UINT64_MAX ? Millis::max() : Millis{static_cast<int64_t>(bound)};
  }

 private:
  Histogram<kBuckets> counts_;
};

// ---- push
// -----------------------------------------------------------------------------------------------------------

struct PushRequest {
  std::string_view topic{};
  std::optional<std::string_view> id{};  ///< without one the queue makes a UUIDv7
  std::optional<std::string_view> group{};
  std::string_view body{};
  std::optional<Millis> delay{};  ///< at most one of delay and at; with neither the job is due at once
  std::optional<Moment> at{};     ///< the past is fine: ready at once, in line by that time
  std::optional<uint32_t> priority{};
  JobOptions options{};
  OnConflict on_conflict = OnConflict::kReject;
  bool unique_across_topics = false;  ///< refuse an id that is live in any other topic, too
};

struct PushReceipt {
  std::string_view id{};
  PushOutcome outcome = PushOutcome::kCreated;  ///< never kConflict: that is an error
  JobState state = JobState::kDelayed;
  Moment due{};
};

/// One result for each request, in their order.
struct PushReport {
  std::vector<Result<PushReceipt>> jobs;
  Arena storage;
};

// ---- restore and export
// ---------------------------------------------------------------------------------------------

/// A job as it was elsewhere or before. `job.options` is not looked at: `options` says it.
struct RestoreItem {
  Job job{};
  JobOptions options{};
  OnConflict on_conflict = OnConflict::kKeep;  ///< a done or dead job of that id is in the way, too
};

enum class RestoreOutcome : uint8_t {
  kCreated,
  kReplaced,
  kKept,     ///< a job of that id is there and stays as it is
  kDropped,  ///< nothing to keep any more: its retention is over, or it was cancelled while it was running
};
inline constexpr std::array<std::string_view, 4> kRestoreOutcomeNames{"created", "replaced", "kept",
                                                                      "dropped"};
constexpr std::string_view name_of(RestoreOutcome outcome) {
  return kRestoreOutcomeNames[static_cast<size_t>(outcome)];
}

/// `state` and `due` are those of the job that now has the id (of the one that was dropped: as they were).
struct RestoreReceipt {
  RestoreOutcome outcome = RestoreOutcome::kCreated;
  JobState state = JobState::kDelayed;
  Moment due{};
};

struct ExportRequest {
  std::string_view cursor{};        ///< empty: from the start; else what the last page answered
  uint32_t limit = 1'000;           ///< at most Limits::kPageJobs
  std::string_view topic{};         ///< empty: all
  std::optional<JobState> state{};  ///< only jobs in that state, and no settings
};

/// A job with its body; or, when there are settings, those of `job.topic`, which may be "*". A job whose
/// record is damaged has no id.
struct ExportItem {
  Job job;
  std::optional<Settings> settings;
};

struct ExportPage {
  std::vector<ExportItem> items;
  std::string cursor;  ///< empty: that was the last page
  std::vector<Arena> storage;
};

// ---- hand-over
// ------------------------------------------------------------------------------------------------------

struct PopRequest {
  std::span<const std::string_view> topics{};  ///< the first goes before the second, and so on
  uint32_t count = 1;
  Millis wait{};                  ///< how long to wait for the first job when there is none
  std::optional<Millis> lease{};  ///< else the job's own, else the topic's
  /// At most once: the jobs are done when they are handed over, and lost with the consumer.
  bool auto_ack = false;
};

/// `lease` of each job is the text that ack, nack and extend take: "<topic>/<engine's lease>". Empty when
/// none came.
struct PopAnswer {
  std::vector<TakenJob> jobs;
  bool is_cut = false;  ///< Limits::kPopBytes ended it: there may be more for the next pop
  absl::InlinedVector<Arena, 1> storage;
};

/// What somebody who delivers jobs takes; it never waits.
struct DeliveryRequest {
  std::string_view topic{};
  Outlet outlet = Outlet::kTopic;
  uint32_t count = 1;
  Millis lease = std::chrono::minutes{1};
};

/// Names a consumer between its pop and its answer.
using WaiterId = uint64_t;

// ---- what a lease allows
// --------------------------------------------------------------------------------------------

struct AckItem {
  std::string_view lease{};
  std::string_view outcome{};  ///< kept with the done job: what a callback answered
};

struct NackItem {
  std::string_view lease{};
  std::optional<Millis> delay{};  ///< instead of the backoff; the attempts count all the same
  std::string_view reason{};
  bool dead = false;  ///< do not try again
};

/// A hand-over that reached nobody: the job is ready again at `at`, its attempt not counted.
struct GiveBackItem {
  std::string_view lease{};
  Moment at{};
};

struct NackReceipt {
  NackOutcome outcome = NackOutcome::kRetried;  ///< never kStale: that is an error
  std::optional<Moment> retry_at{};             ///< when retried
};

struct ExtendItem {
  std::string_view lease{};
  std::optional<Millis> duration{};  ///< from now; else the topic's lease, or as it is when that ends later
};

// ---- by id
// ----------------------------------------------------------------------------------------------------------

struct RescheduleItem {
  JobRef job{};
  std::optional<Millis> delay{};  ///< exactly one of delay and at; a delay of zero: run now
  std::optional<Moment> at{};     ///< the past means now
};

// ---- looking around
// -------------------------------------------------------------------------------------------------

struct TopicStats {
  TopicCounts counts;
  Tallies tallies;  ///< since start, or since the topic was last empty and forgotten
  Lateness lateness;
  EffectiveSettings settings;
  uint64_t waiters = 0;          ///< consumers that wait for a job of this topic
  std::string delivery_problem;  ///< why ready jobs do not leave as the settings say; empty: they do
};

struct TotalStats {
  TopicCounts counts;
  Tallies tallies;
  Lateness lateness;
  EngineUsage usage;
  CommitFigures commits;
  uint64_t waiters = 0;
  uint64_t unanswered_bytes = 0;  ///< of pushes that are not durable yet
};

struct TopicSummary {
  std::string topic;
  TopicCounts counts;
  Tallies tallies;  ///< this and the next as in TopicStats
  Lateness lateness;
  uint64_t waiters = 0;
  bool paused = false;
};

/// Topics that have jobs or settings, in the order of their names.
struct TopicSummaries {
  std::vector<TopicSummary> topics;
  std::string cursor;  ///< empty: that was the last page
};

/// What a graceful stop left behind.
struct StopReport {
  uint64_t leases_left = 0;  ///< still handed out when the grace period ended; they run out by themselves
};

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
