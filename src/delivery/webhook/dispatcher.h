#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <absl/container/flat_hash_map.h>

#include "core/random.h"
#include "delivery/settlement.h"
#include "delivery/sources.h"
#include "delivery/webhook/caller.h"
#include "delivery/webhook/figures.h"
#include "delivery/webhook/host_gate.h"
#include "delivery/webhook/message.h"
#include "delivery/webhook/outcome.h"
#include "queue/queue.h"

namespace delayq::webhook {

using delivery::Settlement;
using delivery::Source;
using delivery::Sources;

struct DispatcherOptions {
  Millis connect_timeout = std::chrono::seconds{5};
  Millis timeout = std::chrono::seconds{30};  ///< of a whole call, where the topic says no other
  uint32_t in_flight = 1'024;                 ///< calls at the same time, to all hosts together
  HostGate::Options hosts;
  /// Sign the calls to callbacks of topics that have no secrets of their own.
  std::vector<std::string> secrets;
};

/// A call that was no success, for the log: nothing of the job's body, the answer or the URL's path is in it.
struct FailedCall {
  std::string_view topic;
  std::string_view id;
  std::string_view host;
  uint32_t attempt = 0;
  bool dead = false;  ///< the receiver wants no more of it
  const CallResult& result;
};

/// Delivers ready jobs by calling back: takes them from the queue under a lease, calls, and tells the queue
/// what came of it. Retry times, attempts and dead letters are the queue's business.
///
/// Everything is bounded: calls at once in all and to each host, and jobs that were taken and wait for a
/// place at their host. What cannot be called now is not taken, where the host is known before (the topic's
/// callback), and otherwise given back, uncounted, to a later moment. So a host that hangs holds its own
/// places, and nobody else's. Sources, that is outlets of topics, take turns.
///
/// A lease outlasts its call: no call begins that could still be under way when the lease of its job ends.
/// Wherever a job has waited since it was taken (for the engine's answer, for a place at its host, for the
/// caller's thread), it is given back, uncounted, once too little of its lease is left.
///
/// A job that is being called when the server is killed is tried again when its lease has run out.
///
/// Threads and time: as the queue. The loop calls tick() and poll() beside the queue's.
class Dispatcher final : public DeliveryListener {
 public:
  /// All must outlive the dispatcher, and the dispatcher must be the queue's listener (before start()).
  Dispatcher(Queue& queue, Caller& caller, DispatcherOptions options, uint64_t seed);

  void on_deliverable(std::string_view topic, Outlet outlet) override;

  /// Takes jobs while there is room. Answers when it wants to be called next, if nothing comes in before.
  Moment tick(Moment now);
  /// Hears what came of calls; `now` of the next poll() is read after it.
  void hear() { caller_.hear(); }
  /// Settles what was heard. Answers whether there was anything.
  bool poll(Moment now);

  /// Begins no call from now on, and gives back what was not yet called. Calls under way may end within
  /// `grace`; what is left of them shortly before its end is given back, too.
  void stop(Moment now, Millis grace);

  void set_options(DispatcherOptions options);
  /// Told of each call that was no success.
  void set_log(std::function<void(const FailedCall&)> log) { log_ = std::move(log); }
  Figures figures() const;

 private:
  /// A job that was taken, and its call, until it ends.
  struct Flight {
    std::string lease;
    std::string topic;
    std::string id;
    std::string host;
    uint32_t attempt = 0;
    CallbackFormat format = CallbackFormat::kWebhook;
    Moment start_by{};  ///< a call that begins later could outlast the lease
    Call call;
  };
  using Line = std::deque<Flight>;  ///< jobs that wait for a place at their host
  struct Asked {
    uint32_t count = 0;
    std::string host;  ///< of the topic's callback; its places are held
  };

  uint32_t room() const;
  void ask(Source& source, Moment now);
  void take(Source& source, Asked asked, Moment now);
  void taken(Source& source, const Asked& asked, Result<PopAnswer> answer);
  /// What a source does after it was asked: again, later, or when it is told.
  void go_on(Source& source, const Asked& asked, size_t got, size_t placed);
  /// Calls the job, or lets it wait, or gives it back; false for the last. `held` is a place that is taken
  /// already at `held_host`.
  bool place(const TakenJob& taken, std::string_view held_host, uint32_t& held);
  /// False: given back, since its lease could end during the call.
  bool start(Flight flight);
  Moment start_by(const TakenJob& taken, const EffectiveSettings& topic) const;
  /// When to try again a job for a host that is full; not all at the same moment.
  Moment after_full();
  void ended(uint64_t number, const CallResult& result);
  void settle(Flight flight, const CallResult& result);
  /// The host has places again, or its breaker is open now.
  void advance_line(const std::string& host);
  void give_back_line(const std::string& host, Moment at);
  void give_back(std::string lease, Moment at);
  void check_lines(Moment now);
  void give_back_all_in_flight();
  /// A job's own callback is signed only with secrets that were set for its topic alone: whoever may push to
  /// one topic chooses URL and body, and must not get signatures that the receivers of others believe.
  signing::Signer& signer_of(const EffectiveSettings& topic, std::string_view name, const Route& route);
  Millis timeout_of(const EffectiveSettings& topic) const;

  Queue& queue_;
  Caller& caller_;
  DispatcherOptions options_;
  Random random_;
  Moment now_{};
  Sources sources_;
  HostGate gate_;
  Settlement settlement_;
  absl::flat_hash_map<uint64_t, Flight> flights_;
  absl::flat_hash_map<std::string, Line> lines_;
  uint64_t last_flight_ = 0;
  uint32_t taking_ = 0;  ///< jobs that the queue was asked for
  size_t waiting_ = 0;   ///< in all lines
  Moment next_check_ = kNever;
  bool stopping_ = false;
  Moment stop_at_ = kNever;
  absl::flat_hash_map<std::string, signing::Signer> signers_;  ///< by their secrets
  std::function<void(const FailedCall&)> log_;
  Figures figures_;
};

}  // namespace delayq::webhook
