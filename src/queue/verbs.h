#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <absl/container/inlined_vector.h>

#include "core/histogram.h"
#include "core/job.h"
#include "core/time.h"
#include "engine/requests.h"
#include "queue/job_options.h"
#include "queue/schedule.h"
#include "queue/settings.h"

/// The requests and answers of the queue, as plain values. A string_view in a request must be valid until the
/// call returns; one in an answer is valid as long as the answer. All members of a request have defaults, so
/// that designated initializers can omit them.

namespace delayq {

/// The events that are counted for each topic since the server started.
enum class Tally : uint8_t {
  kPushed,     ///< jobs created or replaced
  kPopped,     ///< handed over
  kAcked,      ///< acked by their consumer
  kNacked,     ///< nacked by their consumer
  kExpired,    ///< failed because their lease expired
  kDied,       ///< of the failed ones: those that became dead
  kCancelled,  ///< cancelled by their producer
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

/// How late jobs were handed over: a histogram whose buckets double, up to 0, 1, 3, 7, 15 ... ms. The last
/// bucket has no upper bound.
class Lateness {
 public:
  static constexpr size_t kBuckets = 28;  // the upper bound of the last but one is above 18 hours

  void record(Millis late) {
    counts_.record(late < Millis::zero() ? 0 : static_cast<uint64_t>(late.count()));
  }

  /// The greatest lateness that `bucket` counts, inclusive. REQUIRES: not the last bucket.
  static constexpr Millis upper_bound(size_t bucket) {
    return Millis{static_cast<int64_t>(Histogram<kBuckets>::upper_bound(bucket))};
  }

  const std::array<uint64_t, kBuckets>& buckets() const { return counts_.buckets(); }
  uint64_t count() const { return counts_.count(); }
  Millis sum() const { return Millis{static_cast<int64_t>(counts_.sum())}; }

  /// The upper bound of the bucket with that quantile: 0.99 is the 99th percentile. Zero when there were no
  /// hand-overs; Millis::max() when it is the last bucket.
  Millis quantile(double part) const {
    const uint64_t bound = counts_.quantile(part);
    return bound == UINT64_MAX ? Millis::max() : Millis{static_cast<int64_t>(bound)};
  }
  /// The same as APIs show it, in milliseconds: a value above all buckets is the first number above them.
  uint64_t shown_quantile(double part) const {
    constexpr Millis kMost = upper_bound(kBuckets - 2) + Millis{1};
    return static_cast<uint64_t>(std::min(quantile(part), kMost).count());
  }

 private:
  Histogram<kBuckets> counts_;
};

// ---- push

struct PushRequest {
  std::string_view topic{};
  std::optional<std::string_view> id{};  ///< if not set, the queue makes a UUIDv7
  std::optional<std::string_view> group{};
  std::string_view body{};
  std::optional<Millis> delay{};  ///< at most one of `delay` and `at`; with neither, the job is due at once
  std::optional<Moment> at{};     ///< may be in the past: the job is ready at once, and sorted by this time
  std::optional<uint32_t> priority{};
  JobOptions options{};
  OnConflict on_conflict = OnConflict::kReject;
  bool unique_across_topics = false;  ///< also refuse an id that is live in any other topic
};

struct PushReceipt {
  std::string_view id{};
  PushOutcome outcome = PushOutcome::kCreated;  ///< never kConflict, which is an error
  JobState state = JobState::kDelayed;
  Moment due{};
};

/// One result for each request, in their order.
struct PushReport {
  std::vector<Result<PushReceipt>> jobs;
  Arena storage;
};

// ---- restore and export

/// A job in the state that it had elsewhere. `job.options` is ignored: use `options`.
struct RestoreItem {
  Job job{};
  JobOptions options{};
  OnConflict on_conflict = OnConflict::kKeep;  ///< a done or dead job with that id is a conflict, too
};

enum class RestoreOutcome : uint8_t {
  kCreated,
  kReplaced,
  kKept,     ///< a job with that id exists and is not changed
  kDropped,  ///< not stored: its retention is over, or it was cancelled while it was running
};
inline constexpr std::array<std::string_view, 4> kRestoreOutcomeNames{"created", "replaced", "kept",
                                                                      "dropped"};
constexpr std::string_view name_of(RestoreOutcome outcome) {
  return kRestoreOutcomeNames[static_cast<size_t>(outcome)];
}

/// `state` and `due` are those of the job that now has the id; for kDropped, those of the item.
struct RestoreReceipt {
  RestoreOutcome outcome = RestoreOutcome::kCreated;
  JobState state = JobState::kDelayed;
  Moment due{};
};

struct ExportRequest {
  std::string_view cursor{};        ///< empty: the first page; otherwise the cursor of the previous page
  uint32_t limit = 1'000;           ///< at most Limits::kPageJobs
  std::string_view topic{};         ///< empty: all; else also the schedules whose jobs go there
  std::optional<JobState> state{};  ///< if set, only jobs in that state: no settings and no schedules
};

/// A job with its body; or, if `settings` is set, the settings of `job.topic`, which may be "*"; or, if
/// `schedule` is set, that. A job with a damaged record has no id.
struct ExportItem {
  Job job;
  std::optional<Settings> settings;
  std::shared_ptr<const ScheduleView> schedule{};
};

struct ExportPage {
  std::vector<ExportItem> items;
  std::string cursor;  ///< empty: this is the last page
  std::vector<Arena> storage;
};

// ---- hand-over

struct PopRequest {
  std::span<const std::string_view> topics{};  ///< in the order of precedence
  uint32_t count = 1;
  Millis wait{};                  ///< how long to wait for the first job when there is none
  std::optional<Millis> lease{};  ///< if not set: the job's own, otherwise the topic's
  /// At-most-once delivery: the jobs are done when they are handed over. They are lost if the consumer fails.
  bool auto_ack = false;
};

/// The `lease` of each job is the text for ack, nack and extend: "<topic>/<engine's lease>". `jobs` is empty
/// when no job became ready in time.
struct PopAnswer {
  std::vector<TakenJob> jobs;
  bool is_cut = false;  ///< Limits::kPopBytes was reached: there may be more jobs for the next pop
  absl::InlinedVector<Arena, 1> storage;
};

/// A take of jobs for delivery. It never waits.
struct DeliveryRequest {
  std::string_view topic{};
  Outlet outlet = Outlet::kTopic;
  uint32_t count = 1;
  Millis lease = std::chrono::minutes{1};
};

/// Identifies a pop until it is answered.
using WaiterId = uint64_t;

// ---- leases

struct AckItem {
  std::string_view lease{};
  std::string_view outcome{};  ///< stored with the done job: for example the response of a callback
};

struct NackItem {
  std::string_view lease{};
  std::optional<Millis> delay{};  ///< instead of the backoff; the attempt is still counted
  std::string_view reason{};
  bool dead = false;  ///< do not try again
};

/// A hand-over that reached no consumer: the job is ready again at `at`, and the attempt is not counted.
struct GiveBackItem {
  std::string_view lease{};
  Moment at{};
};

struct NackReceipt {
  NackOutcome outcome = NackOutcome::kRetried;  ///< never kStale, which is an error
  std::optional<Moment> retry_at{};             ///< only for kRetried
};

struct ExtendItem {
  std::string_view lease{};
  std::optional<Millis>
      duration{};  ///< from now; if not set, the topic's lease; then it never becomes shorter
};

// ---- by id

struct RescheduleItem {
  JobRef job{};
  std::optional<Millis> delay{};  ///< exactly one of `delay` and `at`; zero means now
  std::optional<Moment> at{};     ///< the past means now
};

// ---- schedules

struct ScheduleReceipt {
  bool is_new = false;
  bool has_changed = false;  ///< false: it was the same before
  ScheduleView schedule{};
};

struct ScheduleListing {
  std::string_view after{};  ///< names behind this one; empty: from the first on
  uint32_t limit = 100;      ///< at most Limits::kPageJobs
};

/// Schedules in the order of their names. A page may be short, or empty, and still have a cursor.
struct ScheduleViews {
  std::vector<ScheduleView> schedules{};
  std::string cursor{};  ///< what `after` of the next page must be; empty: that was the last page
};

/// The job that a schedule has made out of turn.
struct ScheduleRun {
  std::string topic{};
  std::string id{};
  JobState state = JobState::kReady;
  Moment due{};
};

/// Of this server, since its start.
struct ScheduleFigures {
  uint64_t made = 0;     ///< occurrences that became jobs
  uint64_t skipped = 0;  ///< not made, because the job before was still there
  uint64_t missed = 0;   ///< not made, because it was too late for them
  uint64_t refused = 0;  ///< attempts to make a job that a limit prevented; they are repeated
  Lateness lateness{};   ///< how long after its occurrence a job was made
};

struct ForecastReport {
  Forecast jobs{};                    ///< that are stored
  std::vector<uint64_t> scheduled{};  ///< occurrences of schedules to come, in the same bins
  bool has_all_scheduled = true;      ///< false: there were too many to count them all
};

// ---- looking around

struct TopicStats {
  TopicCounts counts;
  Tallies tallies;  ///< since the start, or since the topic was last forgotten
  Lateness lateness;
  EffectiveSettings settings;
  uint64_t waiters = 0;          ///< consumers that wait for a job of this topic
  std::string delivery_problem;  ///< why ready jobs cannot be delivered as the settings say; empty: they can
};

struct TotalStats {
  TopicCounts counts;
  Tallies tallies;
  Lateness lateness;
  EngineUsage usage;
  CommitFigures commits;
  ScheduleFigures schedules;
  uint64_t waiters = 0;
  uint64_t unanswered_bytes = 0;  ///< bytes of pushes that are not durable yet
};

struct TopicSummary {
  std::string topic;
  TopicCounts counts;
  Tallies tallies;  ///< see TopicStats
  Lateness lateness;
  uint64_t waiters = 0;
  bool paused = false;
};

/// Topics that have jobs or settings, in the order of their names.
struct TopicSummaries {
  std::vector<TopicSummary> topics;
  std::string cursor;  ///< empty: this is the last page
};

/// The result of a graceful stop.
struct StopReport {
  uint64_t leases_left = 0;  ///< not ended when the grace period was over; they will expire
};

/// Is notified of topics that may have jobs to deliver. So the delivery loop need not wait at every topic.
class DeliveryListener {
 public:
  virtual ~DeliveryListener() = default;

  /// There may be ready jobs of that topic for that outlet: there are new ones, a limit was lifted, or the
  /// settings changed. For kTopic only topics whose delivery is not kPull are reported. Called from inside
  /// the queue's methods, sometimes without a reason. Do not call the queue from it: remember the topic, and
  /// call Queue::take_for_delivery() later.
  virtual void on_deliverable(std::string_view topic, Outlet outlet) = 0;
};

/// The verbs of one client, which take effect in the order of their calls.
///
/// Most verbs take effect in the call. Some need several steps (a purge, a nack, a pop of several topics):
/// they ask the engine, and continue when it has answered. While such a verb runs, is_busy() is true and the
/// client's next verb must not be called, or it would take effect between two steps. Other clients are not
/// affected: their verbs are concurrent, so either order is correct.
///
/// Shared by the client and its running verbs.
class Sequence {
 public:
  /// `on_idle` is called when is_busy() becomes false, usually from Queue::poll().
  explicit Sequence(std::function<void()> on_idle) : on_idle_(std::move(on_idle)) {}

  bool is_busy() const { return busy_ > 0; }
  /// The client has disconnected: `on_idle` will not be called any more.
  void abandon() { on_idle_ = nullptr; }

 private:
  friend class Steps;

  void end() {
    if (--busy_ == 0 && on_idle_) on_idle_();
  }

  uint32_t busy_ = 0;  ///< running verbs of several steps
  std::function<void()> on_idle_;
};

/// Exists as long as its queue. An engine that is destroyed after the queue drops the running verbs, and
/// their sequences must not be notified then.
using QueueAlive = std::shared_ptr<const char>;

/// Held by a verb of several steps from its call until its last step has taken effect. Makes its sequence
/// busy; does nothing for verbs without a sequence.
class [[nodiscard]] Steps {
 public:
  Steps() = default;
  Steps(std::shared_ptr<Sequence> sequence, const QueueAlive& alive) : sequence_(std::move(sequence)) {
    if (sequence_ == nullptr) return;
    ++sequence_->busy_;
    alive_ = alive;
  }
  Steps(Steps&& other) noexcept
      : sequence_(std::exchange(other.sequence_, nullptr)), alive_(std::move(other.alive_)) {}
  Steps& operator=(Steps&& other) noexcept {
    end();
    sequence_ = std::exchange(other.sequence_, nullptr);
    alive_ = std::move(other.alive_);
    return *this;
  }
  Steps(const Steps&) = delete;
  Steps& operator=(const Steps&) = delete;
  ~Steps() { end(); }

  void end() {
    const std::shared_ptr<Sequence> ended = std::exchange(sequence_, nullptr);
    if (ended != nullptr && !alive_.expired()) ended->end();
  }

 private:
  std::shared_ptr<Sequence> sequence_;
  std::weak_ptr<const char> alive_;
};

}  // namespace delayq
