#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <absl/container/flat_hash_set.h>

#include "core/random.h"
#include "delivery/sink.h"
#include "queue/queue.h"

namespace delayq::delivery {

/// Delivers ready jobs without a consumer, through its sinks: takes them from the queue under a lease, hands
/// each to the sink that its topic's settings name, and reports the result to the queue. The queue decides
/// about retry times, attempts and dead letters.
///
///  - Taking. Sources, that is outlets of topics, take turns. Only as many jobs are taken as their sink has
///    room for; what cannot be sent now stays in the queue.
///  - Leases. No sink gets a job with too little of its lease left, and the leases of jobs that take long are
///    renewed where the sink wants that (LeaseTerms).
///  - Giving back. A job that was taken and not tried goes back uncounted: to its place in line, or to a
///    later moment where its sink says so.
///  - Resting. A topic whose take failed is asked again after a second. While a far side is away, nothing is
///    taken for its sink (Ledger::away()).
///  - Stopping. Nothing is taken any more. Jobs under way may end within the grace period; shortly before its
///    end the rest is given back.
///  - The clock. When it is set back, nothing rests or waits longer because of that.
///
/// A job that is under way when the server is killed is tried again when its lease has expired.
///
/// Jobs of a topic whose sink is not configured wait where they are; that is reported once for each topic.
///
/// Threads and time: as the queue. Its owner calls tick() and poll() beside the queue's.
class DeliveryLoop final : public DeliveryListener {
 public:
  using Stuck = std::function<void(std::string_view topic, const Error& why)>;

  /// The queue must outlive the loop. The loop is, or hears from, the queue's listener (before start()).
  DeliveryLoop(Queue& queue, uint64_t seed) : queue_(queue), random_(seed), settlement_(queue) {}
  DeliveryLoop(const DeliveryLoop&) = delete;
  DeliveryLoop& operator=(const DeliveryLoop&) = delete;

  /// Before the first job. The sink must outlive the loop's use.
  void add(Sink& sink);
  /// `stuck` is called once for each topic whose ready jobs cannot leave as its settings say.
  void set_stuck(Stuck stuck) { stuck_ = std::move(stuck); }
  /// Reports all topics with settings of their own whose jobs would wait, also those without jobs. After
  /// that, each topic may be reported once again.
  void tell_stuck();

  void on_deliverable(std::string_view topic, Outlet outlet) override;

  /// Collects what has ended. Read `now` for the next tick() and poll() after it.
  void hear();
  /// Takes jobs while there is room. Returns when to call it next, if nothing comes in before.
  Moment tick(Moment now);
  /// Settles what was heard. Returns whether there was anything.
  bool poll(Moment now);
  void stop(Moment now, Millis grace);

 private:
  /// A sink, and what is going on with it.
  struct Way {
    Way(Sink& its_sink, Settlement& settlement, Random& random)
        : sink(its_sink), ledger(settlement, sources, random) {}
    Sink& sink;
    Sources sources;
    Ledger ledger;
    uint32_t taking = 0;  ///< jobs that the queue was asked for
  };

  void advance_clock(Moment now);
  Moment tick(Way& way);
  Room room(Way& way) const;
  void ask(Way& way, Source& source, uint32_t most);
  void taken(Way& way, Source& source, const Claim& claim, const Result<PopAnswer>& answer);
  /// Sends what may be sent. Returns how many the sink had no room for.
  size_t send(Way& way, const Source& source, const Claim& claim, const std::vector<TakenJob>& jobs);
  /// Decides when a source is asked again: at once, later, or when jobs are reported.
  void go_on(Way& way, Source& source, const Claim& claim, const std::vector<TakenJob>& jobs, size_t refused);
  /// Whether jobs can leave as the settings say.
  Status check(const Origin& origin) const;
  void tell(std::string_view topic, const Error& why);

  Queue& queue_;
  Random random_;
  Moment now_{};
  Settlement settlement_;
  std::vector<std::unique_ptr<Way>> ways_;
  std::vector<SinkJob> sending_;  ///< kept for its memory
  bool stopping_ = false;
  Moment stop_at_ = kNever;
  Stuck stuck_;
  absl::flat_hash_set<std::string> told_;
};

}  // namespace delayq::delivery
