#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <absl/container/btree_map.h>
#include <absl/container/flat_hash_map.h>

#include "core/arena.h"
#include "core/job.h"
#include "core/random.h"
#include "queue/queue.h"

namespace delayq::delivery {

/// An outlet of a topic that may have jobs to deliver.
struct Source {
  enum class State : uint8_t {
    kRunnable,  ///< in line to be asked
    kTaking,    ///< being asked
    kSleeping,  ///< until `wakes_at`
    kHeld,      ///< until its lane has room
  };

  std::string topic;
  Outlet outlet = Outlet::kTopic;
  State state = State::kRunnable;
  bool told_again = false;  ///< jobs were reported while it was being asked
  uint32_t batch = 0;       ///< how many to ask for at most; zero: it was not asked yet
  /// For jobs whose lanes are known only when they have been taken: how long the last rest was, after some of
  /// them found no room. Zero: all found room.
  Millis rest{};

  Moment wakes_at{};
  std::string lane;  ///< for which it is held
  uint64_t serial = 0;
};

/// The sources of one sink that may have jobs. All take turns, so that a busy topic does not keep the others
/// waiting.
class Sources {
 public:
  /// Returns the source; a new one is runnable.
  Source& tell(std::string_view topic, Outlet outlet);
  /// Returns the next source in line, which is being asked from now on; null when there is none.
  Source* next();

  // ---- what comes after being asked (or, for the first, after sleeping or being held)
  void run(Source& source);
  void rest(Source& source, Moment until);
  void hold(Source& source, std::string lane);
  /// Nothing more to deliver: forgets the source until tell() is called for it.
  void drop(Source& source);

  /// Makes the sources runnable whose rest is over.
  void wake_sleepers(Moment now);
  /// When the next one wakes; kNever when none sleeps.
  Moment next_wake() const { return sleeping_.empty() ? kNever : sleeping_.begin()->first.first; }
  /// Makes this many of the sources runnable that are held for the lane; if there are none, the first of
  /// those that rest because a lane had no room.
  void lane_has_room(const std::string& lane, uint32_t jobs);
  /// Makes all sources runnable that are held for the lane: there will be no room soon.
  void lane_is_closed(const std::string& lane);

  size_t size() const { return all_.size(); }

 private:
  using Key = std::pair<std::string, Outlet>;

  void leave_state(Source& source);

  absl::flat_hash_map<Key, std::unique_ptr<Source>> all_;
  std::deque<Source*> runnable_;
  absl::btree_map<std::pair<Moment, uint64_t>, Source*> sleeping_;
  absl::flat_hash_map<std::string, std::deque<Source*>> held_;
  uint64_t last_serial_ = 0;
};

/// Collects the results of taken jobs, so that they are reported to the queue in batches. If the queue fails,
/// the leases expire by themselves and the jobs are tried again.
class Settlement {
 public:
  explicit Settlement(Queue& queue) : queue_(queue) {}

  // The texts are copied.
  void done(std::string_view lease, std::string_view outcome);
  /// Failed; the queue decides whether and when the job is tried again.
  void failed(std::string_view lease, std::string_view reason, std::optional<Millis> retry_after);
  void dead(std::string_view lease, std::string_view reason);
  /// Not tried; ready again at that moment.
  void give_back(std::string_view lease, Moment at);

  /// Reports to the queue. Returns whether there was anything to report.
  bool send(Moment now);

 private:
  Queue& queue_;
  std::vector<AckItem> done_;
  std::vector<NackItem> failed_;
  std::vector<GiveBackItem> back_;
  Arena texts_;  ///< of all items
};

/// Which leases a sink needs for its jobs.
struct LeaseTerms {
  Millis length{};  ///< of the lease that jobs are taken under
  /// A job with less left than this when it reaches the sink is not sent, but given back.
  Millis at_least{};
  /// Whether the lease is renewed, when half of it is over, for as long as the sink has the job. Without
  /// this, the sink must settle the job before its lease ends.
  bool is_renewed = false;
};

/// Names a job that a sink has. A ticket is used once: after the job is settled it is not valid.
using Ticket = uint64_t;

/// Jobs of one sink since the start.
struct SinkCounts {
  uint64_t delivered = 0;
  uint64_t failed = 0;      ///< to be tried again, or dead, as the queue decides
  uint64_t given_back = 0;  ///< taken and not tried, or not known to have been tried
};

/// A sink and its far side, for metrics.
struct SinkFigures {
  uint64_t delivered = 0;  ///< since the start, like the next two; see SinkCounts
  uint64_t failed = 0;
  uint64_t given_back = 0;
  uint64_t in_flight = 0;  ///< jobs that are being sent now
  bool connected = false;  ///< whether the far side can be reached now
};

/// The jobs that one sink has, from send() until each is settled, and what the sink reports to the loop.
///
/// A ticket whose job was settled already is ignored: the loop gives back what is left when the grace period
/// of a stop ends, and the sink may hear of those jobs later.
class Ledger {
 public:
  /// All must outlive it.
  Ledger(Settlement& settlement, Sources& sources, Random& random)
      : settlement_(settlement), sources_(sources), random_(random) {}

  // ---- what became of a job: exactly one of these for each
  void done(Ticket ticket, std::string_view outcome);
  /// Counts as an attempt; the topic's retry policy decides what follows, `retry_after` overrides its delay.
  void failed(Ticket ticket, std::string_view reason, std::optional<Millis> retry_after = std::nullopt);
  void dead(Ticket ticket, std::string_view reason);
  /// Not counted as an attempt. Ready again at that moment; without one, at its place in line.
  void give_back(Ticket ticket, std::optional<Moment> at = std::nullopt);

  bool holds(Ticket ticket) const;
  /// How many jobs the sink has.
  size_t size() const { return size_; }
  const SinkCounts& counts() const { return counts_; }

  // ---- how the far side is
  /// Nothing can be sent at all now, for no fault of a job. Nothing is taken for this sink for a while, each
  /// time twice as long. Returns whether that is news: the last report was answered(), or none.
  bool away(Moment now);
  /// The far side works. Returns whether that is news: the last report was away().
  bool answered();
  /// The lane (see Claim) has room for so many jobs again.
  void lane_has_room(const std::string& lane, uint32_t jobs) { sources_.lane_has_room(lane, jobs); }
  /// Nothing will be sent into the lane for now; the next claim of its sources says until when.
  void lane_is_closed(const std::string& lane) { sources_.lane_is_closed(lane); }

 private:
  friend class DeliveryLoop;

  struct Entry {
    std::string lease;        ///< its memory is used again by the next job
    Moment due{};             ///< the job's place in line
    Moment until{};           ///< when the lease ends
    Millis renewed_length{};  ///< zero: it is not renewed
    uint32_t generation = 0;
    bool is_open = false;
  };

  Ticket open(const TakenJob& taken, const LeaseTerms& terms, Moment now);
  /// Gives back a job that does not reach the sink.
  void turn_back(const TakenJob& taken);
  void give_back_all();
  /// Renews the leases of which less than half is left.
  void renew(Queue& queue, Moment now);
  /// When to call renew(); kNever: there is nothing to renew.
  Moment next_renewal() const { return next_renewal_; }
  /// Nothing is taken before this moment.
  Moment rests_until() const { return rests_until_; }
  void clock_set_back(Millis by);

  Entry* find(Ticket ticket);
  /// Frees the entry. Returns its lease, which is valid until the next open().
  std::string_view close(Entry& entry);

  Settlement& settlement_;
  Sources& sources_;
  Random& random_;
  std::vector<Entry> entries_;
  std::vector<uint32_t> free_;
  size_t size_ = 0;
  SinkCounts counts_;
  Millis rest_{};  ///< how long the last rest was; zero: the far side has answered since
  Moment rests_until_{};
  Moment next_renewal_ = kNever;
};

/// Where jobs come from: an outlet of a topic, with the topic's settings as they are now.
struct Origin {
  std::string_view topic;
  Outlet outlet = Outlet::kTopic;
  const EffectiveSettings& settings;
};

/// How many jobs a sink can be given now, of all topics together.
struct Room {
  uint32_t jobs = 0;
  /// Without room: when to ask again, if nothing is heard before. kNever: there is room when jobs end.
  Moment again = kNever;
};

/// How many jobs of one origin a sink can be given now.
///
/// A lane is a part of the far side with a limit of its own, such as a host that is called. Without jobs, the
/// origin waits: until `rests_until`, or else until the sink reports Ledger::lane_has_room() or
/// lane_is_closed() of the lane.
struct Claim {
  uint32_t jobs = 0;  ///< the sink keeps room for them until they come with send()
  std::string lane{};
  std::optional<Moment> rests_until{};
};

/// A job that a sink gets. The job's views live until send() returns.
struct SinkJob {
  Ticket ticket = 0;
  const Job* job = nullptr;
};

/// A way by which jobs leave: HTTP calls, lists and streams in Redis, and so on. The DeliveryLoop chooses the
/// topics, takes the jobs under leases, renews those, tells the queue what became of the jobs, rests and
/// stops. A sink knows only how to send jobs to its far side, and what the answers mean.
///
/// A sink gets jobs with send(), in hand-out order, and reports each of them to its ledger exactly once: from
/// inside send(), from poll() or from tick(), in any order and after any time. So a sink may collect jobs,
/// have many batches under way, and settle each when the far side confirms it.
///
/// Threads: all methods are called on the queue's thread. None of them waits. A sink with threads of its own
/// collects what they have done in hear().
class Sink {
 public:
  virtual ~Sink() = default;

  /// Where to report. Called once, before everything else.
  void attach(Ledger& ledger) { ledger_ = &ledger; }

  /// Whether jobs of this outlet, in a topic with these settings, leave by this sink. The first sink that
  /// returns true gets them.
  virtual bool takes(Outlet outlet, const EffectiveSettings& topic) const = 0;

  // ---- before jobs are taken from the queue. What the sink refuses here stays where it is.
  /// Jobs that are being taken are not counted: the loop subtracts them.
  virtual Room room(Moment now) = 0;
  /// At most `most` jobs. Each claim with jobs is followed by exactly one send(), perhaps of fewer jobs.
  virtual Claim claim(const Origin& origin, uint32_t most, Moment now) {
    (void)origin, (void)now;
    return {most};
  }
  virtual LeaseTerms lease_terms(const EffectiveSettings& topic) const = 0;
  /// How many jobs of a topic are taken at first; more and more are taken while there are more.
  virtual uint32_t first_batch() const = 0;

  /// Sends jobs of one origin, for a claim. Returns how many it gave back at once for want of room in their
  /// lanes: then the loop looks further into the topic, for jobs of other lanes.
  virtual size_t send(const Origin& origin, const Claim& claim, std::span<const SinkJob> jobs,
                      Moment now) = 0;

  // ---- in each turn of the loop: hear(), tick(), poll()
  /// Collects what has ended. The clock is read after it, so `now` of poll() is never before an answer.
  virtual void hear() {}
  /// Does timed work of the sink. Returns when to call it next.
  virtual Moment tick(Moment now) {
    (void)now;
    return kNever;
  }
  /// Reports what was heard. Returns whether there was anything.
  virtual bool poll(Moment now) = 0;

  /// Gives back jobs that are not yet being sent, and begins nothing more. Jobs that are being sent may end;
  /// the loop gives back those that are left when the grace period ends.
  virtual void stop(Moment now) { (void)now; }
  /// The clock was set back by this much: moments that the sink waits for must be moved back too.
  virtual void clock_set_back(Millis by) { (void)by; }

 protected:
  Ledger& ledger() { return *ledger_; }
  const Ledger& ledger() const { return *ledger_; }

 private:
  Ledger* ledger_ = nullptr;
};

/// The whole job on one line, for a consumer that knows nothing else of it:
///
///   {"topic":"order","id":"7","body":{"uid":1},"attempt":1,"due_at":"2030-01-31T08:00:00.000Z",
///    "pushed_at":"2030-01-31T07:30:00.000Z","priority":1024,"group":"customer:1","name":"...",
///    "content_type":"..."}
///
/// The body is written by json::write_body(); the last three are there when the job has them.
std::string job_text(const Job& job);

}  // namespace delayq::delivery
