#include "delivery/webhook/host_gate.h"

#include <algorithm>
#include <cassert>

namespace delayq::webhook {

HostGate::Room HostGate::room(const std::string& name, Moment now) {
  const auto found = hosts_.find(name);
  if (found == hosts_.end()) return {options_.per_host, std::nullopt};
  HostState& host = found->second;
  if (host.is_open) {
    // A clock that was set back must not keep it open for longer.
    host.open_until = std::min(host.open_until, saturating_add(now, options_.cooldown));
    if (host.open_until > now) return {0, host.open_until};
    return {host.is_probing ? 0U : 1U, std::nullopt};
  }
  return {options_.per_host - std::min(options_.per_host, host.calls), std::nullopt};
}

HostGate::View HostGate::look(const std::string& name, Moment now) const {
  const auto found = hosts_.find(name);
  if (found == hosts_.end()) return {};
  const HostState& host = found->second;
  View view{Breaker::kClosed, std::nullopt, host.failures, host.calls};
  if (!host.is_open) return view;
  const Moment until = std::min(host.open_until, saturating_add(now, options_.cooldown));
  view.breaker = until > now ? Breaker::kOpen : Breaker::kHalfOpen;
  if (until > now) view.open_until = until;
  return view;
}

void HostGate::enter(const std::string& name, Moment now, uint32_t calls) {
  if (hosts_.size() >= options_.hosts) make_room();
  HostState& host = hosts_[name];
  host.calls += calls;
  if (host.is_open && host.open_until <= now) host.is_probing = true;
}

void HostGate::give_back(const std::string& name, uint32_t calls) {
  const auto found = hosts_.find(name);
  if (found == hosts_.end() || calls == 0) return;
  HostState& host = found->second;
  assert(host.calls >= calls);
  host.calls -= calls;
  if (host.calls == 0) host.is_probing = false;
  forget_if_idle(found);
}

void HostGate::leave(const std::string& name, Moment now, bool failed) {
  const auto found = hosts_.find(name);
  if (found == hosts_.end()) return;
  HostState& host = found->second;
  assert(host.calls > 0);
  --host.calls;
  if (failed) {
    ++host.failures;
    const bool is_enough = options_.failures != 0 && host.failures >= options_.failures;
    // Calls that were under way when it opened change nothing, unless they end during a probe: then they
    // count like the probe.
    if ((is_enough && !host.is_open) || host.is_probing) {
      host.open_until = saturating_add(now, options_.cooldown);
      set_open(host, true);
    }
  } else {
    host.failures = 0;
    set_open(host, false);
  }
  host.is_probing = false;
  forget_if_idle(found);
}

void HostGate::set_open(HostState& host, bool open) {
  if (host.is_open == open) return;
  host.is_open = open;
  open_ = open ? open_ + 1 : open_ - 1;
}

void HostGate::forget_if_idle(Hosts::iterator host) {
  if (host->second.calls == 0 && host->second.failures == 0) hosts_.erase(host);
}

/// Forgets the hosts without calls under way, with their failures: better to try a dead host once more than
/// to grow without bound.
void HostGate::make_room() {
  for (auto host = hosts_.begin(); host != hosts_.end();) {
    const auto next = std::next(host);
    if (host->second.calls == 0) {
      set_open(host->second, false);
      hosts_.erase(host);
    }
    host = next;
  }
}

}  // namespace delayq::webhook
