#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <absl/container/flat_hash_map.h>

#include "core/time.h"

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
  /// A call has ended. `failed`: the host itself failed.
  void leave(const std::string& host, Moment now, bool failed);

  enum class Breaker : uint8_t { kClosed, kOpen, kHalfOpen };
  struct View {
    Breaker breaker = Breaker::kClosed;
    std::optional<Moment> open_until;  ///< only of one that is open
    uint32_t failures = 0;             ///< in a row
    uint32_t calls = 0;                ///< under way
  };
  /// For people; a host that is not remembered has had no failure since its last success.
  View look(const std::string& host, Moment now) const;

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

}  // namespace delayq::webhook
