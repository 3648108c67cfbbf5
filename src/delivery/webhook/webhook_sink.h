#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <absl/container/flat_hash_map.h>

#include "core/random.h"
#include "core/time.h"
#include "delivery/sink.h"
#include "delivery/webhook/call.h"
#include "delivery/webhook/call_book.h"
#include "queue/queue.h"

namespace delayq::webhook {

/// How many calls a host ("name:port") may have at once, and a circuit breaker for each, so that one dead
/// host costs neither time nor places that others need.
///
/// The breaker is closed until a number of calls in a row have failed. Then it is open: no call for the
/// cooldown. After that it is half open: one call, the probe, may be made; its success closes the breaker,
/// its failure opens it again.
///
/// Only hosts with calls under way, or with failures since their last success, are remembered; of the latter
/// a bounded number.
class HostGate {
 public:
  struct Options {
    uint32_t per_host = 64;
    uint32_t failures = 10;  ///< in a row; 0: the breaker never opens
    Millis cooldown = std::chrono::seconds{30};
    size_t hosts = 10'000;  ///< remembered without calls under way
  };

  explicit HostGate(Options options) : options_(options) {}
  /// For new calls; calls that are under way are not affected.
  void set_options(Options options) { options_ = options; }

  struct Room {
    uint32_t calls = 0;                ///< that may be begun now
    std::optional<Moment> open_until;  ///< the breaker is open; if empty, and no calls: until one ends
  };
  Room room(const std::string& host, Moment now);

  /// Takes places. REQUIRES: room() has as many.
  void enter(const std::string& host, Moment now, uint32_t calls = 1);
  /// Returns places that were not used.
  void give_back(const std::string& host, uint32_t calls);
  /// A call has ended. `failed`: the host itself failed. Returns whether that opened or closed the breaker; a
  /// probe that fails leaves it open.
  enum class Change : uint8_t { kNone, kOpened, kClosed };
  Change leave(const std::string& host, Moment now, bool failed);

  /// For people. A host that is not remembered has had no failure since its last success.
  HostView look(const std::string& host, Moment now) const;

  /// How many have a breaker that is not closed.
  size_t open_hosts() const { return open_; }
  size_t size() const { return hosts_.size(); }

 private:
  struct HostState {
    uint32_t calls = 0;
    uint32_t failures = 0;
    bool is_open = false;  ///< or half open, when `open_until` has passed
    bool is_probing = false;
    Moment open_until{};
  };
  using Hosts = absl::flat_hash_map<std::string, HostState>;

  void set_open(HostState& host, bool open);
  void forget_if_idle(Hosts::iterator host);
  void make_room();

  Options options_;
  Hosts hosts_;
  size_t open_ = 0;
};

using delivery::Claim;
using delivery::Origin;
using delivery::SinkJob;
using delivery::Ticket;

struct WebhookSinkOptions {
  Millis connect_timeout = std::chrono::seconds{5};
  Millis timeout = std::chrono::seconds{30};  ///< of a whole call, unless the topic sets another
  uint32_t in_flight = 1'024;                 ///< calls at the same time, to all hosts together
  HostGate::Options hosts;
  /// Sign the calls to callbacks of topics that have no secrets of their own.
  std::vector<std::string> secrets;
};

/// A call that failed, for the log: nothing of the job's body, the answer or the URL's path is in it.
struct FailedCall {
  std::string_view topic;
  std::string_view id;
  std::string_view host;
  uint32_t attempt = 0;
  bool dead = false;  ///< the receiver wants no more calls for this job
  const CallResult& result;
};

/// Calls jobs back over HTTP.
///
/// Everything is bounded: calls at once in all and to each host, and jobs that were taken and wait for a
/// place at their host. Hosts are the lanes of this sink. If the host is known before (the topic's callback),
/// jobs that cannot be called now are not taken; otherwise they are given back to a later moment. So a host
/// that hangs uses only its own places.
///
/// A lease outlasts its call: no call begins that could still be under way when the lease of its job ends.
/// Wherever a job has waited since it was taken (for a place at its host, for the caller's thread), it is
/// given back, uncounted, once too little of its lease is left.
class WebhookSink final : public delivery::Sink {
 public:
  /// All must outlive the sink.
  WebhookSink(const Queue& queue, Caller& caller, WebhookSinkOptions options, uint64_t seed);

  bool takes(Outlet outlet, const EffectiveSettings& topic) const override;
  delivery::Room room(Moment now) override;
  Claim claim(const Origin& origin, uint32_t most, Moment now) override;
  delivery::LeaseTerms lease_terms(const EffectiveSettings& topic) const override;
  /// Small: many topics may share a host and its places.
  uint32_t first_batch() const override { return 8; }
  size_t send(const Origin& origin, const Claim& claim, std::span<const SinkJob> jobs, Moment now) override;
  void hear() override { caller_.hear(); }
  Moment tick(Moment now) override;
  bool poll(Moment now) override;
  void stop(Moment now) override;
  void clock_set_back(Millis by) override;

  /// For calls that begin from now on.
  void set_options(WebhookSinkOptions options);
  /// Called for each call that failed.
  void set_log(std::function<void(const FailedCall&)> log) { log_ = std::move(log); }
  /// Called when the breaker of a host opens and when it closes.
  using BreakerLog = std::function<void(const std::string& host, bool is_open, const HostView& view)>;
  void set_breaker_log(BreakerLog log) { breaker_log_ = std::move(log); }
  /// Why the host of a URL is not called now, for people; empty: its breaker is closed.
  std::string problem_of(Moment now, std::string_view url) const;
  WebhookFigures figures() const;
  /// The hosts that were called and the last failures, at most `limit` of each.
  CallbackReport report(Moment now, size_t limit) const;

 private:
  /// A job, and its call, until that ends.
  struct Flight {
    Ticket ticket = 0;
    std::string topic;
    std::string id;
    std::string host;
    uint32_t attempt = 0;
    CallbackFormat format = CallbackFormat::kWebhook;
    Moment start_by{};  ///< a call that begins later could outlast the lease
    Call call;
  };
  using Line = std::deque<Flight>;  ///< jobs that wait for a place at their host

  /// Calls the job, or lets it wait. Returns false if it was given back, because its host has no room. `held`
  /// is how many places are taken already at `held_host`.
  bool place(const SinkJob& handed, const EffectiveSettings& topic, std::string_view held_host,
             uint32_t& held);
  /// Returns false if the job was given back, since its lease could end during the call.
  bool start(Flight flight);
  /// When to try again a job whose host is full; spread, so that not all are tried at the same moment.
  Moment after_full();
  void ended(uint64_t number, const CallResult& result);
  void settle(const Flight& flight, const CallResult& result);
  /// The host has places again, or its breaker is open now.
  void advance_line(const std::string& host);
  /// Without a moment: each to its place in line.
  void give_back_line(const std::string& host, std::optional<Moment> at);
  /// Gives back the jobs that waited for too long.
  void check_lines();
  /// A job's own callback is signed only with secrets that were set for its topic alone: the producer of a
  /// job chooses its URL and body, and must not get signatures that the receivers of other topics accept.
  signing::Signer& signer_of(const EffectiveSettings& topic, std::string_view name, const CallRoute& route);
  Millis timeout_of(const EffectiveSettings& topic) const;

  const Queue& queue_;
  Caller& caller_;
  WebhookSinkOptions options_;
  Random random_;
  Moment now_{};
  HostGate gate_;
  absl::flat_hash_map<uint64_t, Flight> flights_;
  absl::flat_hash_map<std::string, Line> lines_;
  uint64_t last_flight_ = 0;
  size_t waiting_ = 0;  ///< in all lines
  Moment next_check_ = kNever;
  absl::flat_hash_map<std::string, signing::Signer> signers_;  ///< by their secrets
  std::function<void(const FailedCall&)> log_;
  BreakerLog breaker_log_;
  CallBook book_;
  WebhookFigures figures_;  ///< of calls; those of jobs are in the ledger
};

}  // namespace delayq::webhook
