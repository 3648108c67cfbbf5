#include "delivery/webhook/webhook_sink.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include <fmt/format.h>

#include "core/moment.h"

namespace delayq::webhook {

namespace {

/// How many jobs may wait for a place at one host, and how long each.
constexpr uint32_t kLongestLine = 16;
constexpr Millis kLongestInLine = std::chrono::seconds{5};
constexpr Millis kLineCheck = std::chrono::seconds{1};
/// When to try again a job for a host that is full.
constexpr Millis kAfterFull = std::chrono::seconds{1};
/// The lease is longer than the call by this, so that no job is handed out again while it is being called.
constexpr Millis kLeaseMargin = std::chrono::seconds{5};
constexpr size_t kMostSigners = 1'000;
constexpr std::string_view kNoCallback = "no callback: neither the job nor its topic says where to call";

}  // namespace

WebhookSink::WebhookSink(const Queue& queue, Caller& caller, WebhookSinkOptions options, uint64_t seed)
    : queue_(queue), caller_(caller), options_(std::move(options)), random_(seed), gate_(options_.hosts) {}

void WebhookSink::set_options(WebhookSinkOptions options) {
  options_ = std::move(options);
  gate_.set_options(options_.hosts);
  signers_.clear();
}

WebhookFigures WebhookSink::figures() const {
  WebhookFigures figures = figures_;
  const delivery::SinkCounts& counts = ledger().counts();
  figures.delivered = counts.delivered;
  figures.failed = counts.failed;
  figures.given_back = counts.given_back;
  figures.in_flight = ledger().size() - waiting_;
  figures.waiting = waiting_;
  figures.open_hosts = gate_.open_hosts();
  return figures;
}

std::string WebhookSink::problem_of(Moment now, std::string_view url) const {
  const std::string host = host_of(url);
  const HostView view = gate_.look(host, now);
  if (view.breaker == Breaker::kClosed) return {};
  const std::string next = view.open_until
                               ? fmt::format("it is called again at {}", format_moment(*view.open_until))
                               : "one call tries whether it is back";
  return fmt::format("{} is not called now: its last {} calls failed; {}", host, view.failures, next);
}

CallbackReport WebhookSink::report(Moment now, size_t limit) const {
  CallbackReport report = book_.report([&](const std::string& host) { return gate_.look(host, now); }, limit);
  for (HostReport& host : report.hosts) {
    if (const auto line = lines_.find(host.host); line != lines_.end()) host.waiting = line->second.size();
  }
  return report;
}

// ---- what is taken

bool WebhookSink::takes(Outlet outlet, const EffectiveSettings& topic) const {
  return outlet == Outlet::kCallback || (topic.delivery == Delivery::kWebhook && !topic.callback.empty());
}

delivery::Room WebhookSink::room(Moment /*now*/) {
  const size_t own = options_.in_flight - std::min<size_t>(options_.in_flight, ledger().size());
  const size_t callers = caller_.room() - std::min(caller_.room(), waiting_);
  return {static_cast<uint32_t>(std::min(own, callers))};
}

Claim WebhookSink::claim(const Origin& origin, uint32_t most, Moment now) {
  if (origin.outlet == Outlet::kCallback) return {most};
  std::string host = host_of(origin.settings.callback);
  const HostGate::Room there = gate_.room(host, now);
  if (there.open_until) return {.rests_until = there.open_until};
  const uint32_t jobs = std::min(there.calls, most);
  if (jobs > 0) gate_.enter(host, now, jobs);
  return {jobs, std::move(host)};
}

delivery::LeaseTerms WebhookSink::lease_terms(const EffectiveSettings& topic) const {
  const Millis call = timeout_of(topic) + kLeaseMargin;
  return {.length = call + kLongestInLine, .at_least = call};
}

Millis WebhookSink::timeout_of(const EffectiveSettings& topic) const {
  return topic.callback_timeout > Millis::zero() ? topic.callback_timeout : options_.timeout;
}

// ---- a job, until its call begins

size_t WebhookSink::send(const Origin& origin, const Claim& claim, std::span<const SinkJob> jobs,
                         Moment now) {
  now_ = now;
  uint32_t held = claim.lane.empty() ? 0 : claim.jobs;
  size_t refused = 0;
  for (const SinkJob& job : jobs) refused += place(job, origin.settings, claim.lane, held) ? 0 : 1;
  if (held > 0) {
    gate_.give_back(claim.lane, held);
    advance_line(claim.lane);
  }
  return refused;
}

bool WebhookSink::place(const SinkJob& handed, const EffectiveSettings& topic, std::string_view held_host,
                        uint32_t& held) {
  const Job& job = *handed.job;
  const JobOptions options = decode_job_options(job.options);
  const CallRoute route = route_of(options, topic);
  if (route.url.empty()) return ledger().dead(handed.ticket, std::string(kNoCallback)), true;

  std::string host = host_of(route.url);
  const bool has_place = held > 0 && host == held_host;
  const HostGate::Room there = has_place ? HostGate::Room{1, {}} : gate_.room(host, now_);
  if (there.open_until) {
    // Spread, so that not all are tried when the host may be tried again.
    const Millis spread{static_cast<int64_t>(random_.below(1'000))};
    return ledger().give_back(handed.ticket, *there.open_until + spread), false;
  }
  const auto line = lines_.find(host);
  const size_t in_line = line == lines_.end() ? 0 : line->second.size();
  if (there.calls == 0 && in_line >= kLongestLine)
    return ledger().give_back(handed.ticket, after_full()), false;

  const Millis timeout = timeout_of(topic);
  // Counted from the lease's end, with a bound for a clock that was set back meanwhile.
  const Moment start_by = std::min(job.until - timeout - kLeaseMargin, now_ + kLongestInLine);
  Flight flight{handed.ticket,
                std::string(job.topic),
                std::string(job.id),
                std::move(host),
                job.attempts,
                route.format,
                start_by,
                {}};
  flight.call = make_call(job, options, route, signer_of(topic, job.topic, route), now_);
  flight.call.connect_timeout = options_.connect_timeout;
  flight.call.total_timeout = timeout;
  if (there.calls == 0) {
    lines_[flight.host].push_back(std::move(flight));
    if (waiting_++ == 0) next_check_ = now_ + kLineCheck;
    return true;
  }
  if (has_place) {
    --held;
  } else {
    gate_.enter(flight.host, now_);
  }
  return start(std::move(flight));
}

Moment WebhookSink::after_full() {
  return now_ + kAfterFull + Millis{static_cast<int64_t>(random_.below(1'000))};
}

signing::Signer& WebhookSink::signer_of(const EffectiveSettings& topic, std::string_view name,
                                        const CallRoute& route) {
  static const std::vector<std::string> kNone;
  const auto own = [&]() -> const std::vector<std::string>& {
    const auto& said = queue_.settings(name).callback_secrets;
    return said ? *said : kNone;
  };
  const auto usual = [&]() -> const std::vector<std::string>& {
    return topic.callback_secrets.empty() ? options_.secrets : topic.callback_secrets;
  };
  const std::vector<std::string>& secrets = route.is_jobs_own ? own() : usual();
  std::string key;
  for (const std::string& secret : secrets) key += secret + '\n';
  const auto found = signers_.find(key);
  if (found != signers_.end()) return found->second;
  if (signers_.size() >= kMostSigners) signers_.clear();
  // Secrets are checked where they are set; an invalid one does not sign.
  Result<signing::Signer> signer = signing::Signer::create(secrets);
  if (!signer.ok()) signer = signing::Signer::create({});
  return signers_.emplace(std::move(key), std::move(*signer)).first->second;
}

bool WebhookSink::start(Flight flight) {
  if (flight.start_by < now_) {
    gate_.give_back(flight.host, 1);
    return ledger().give_back(flight.ticket), false;
  }
  const uint64_t number = ++last_flight_;
  Call call = std::move(flight.call);
  call.start_within = flight.start_by - now_;
  flights_.emplace(number, std::move(flight));
  caller_.call(std::move(call), [this, number](const CallResult& result) { ended(number, result); });
  return true;
}

// ---- a call has ended

bool WebhookSink::poll(Moment now) {
  now_ = now;
  return caller_.poll();
}

void WebhookSink::ended(uint64_t number, const CallResult& result) {
  const auto found = flights_.find(number);
  const Flight flight = std::move(found->second);
  flights_.erase(found);
  if (!ledger().holds(flight.ticket)) return;  // given back when the grace period ended
  ++figures_.calls[static_cast<size_t>(class_of(result))];
  figures_.micros.record(static_cast<uint64_t>(std::max<int64_t>(0, result.took.count())));
  if (result.error == CallError::kNoRoom) {
    gate_.give_back(flight.host, 1);
    ledger().give_back(flight.ticket, now_ + kAfterFull);
  } else {
    settle(flight, result);
  }
  advance_line(flight.host);
}

void WebhookSink::settle(const Flight& flight, const CallResult& result) {
  CallOutcome outcome = outcome_of(result, flight.format, now_);
  const HostGate::Change change = gate_.leave(flight.host, now_, outcome.host_failed);
  if (breaker_log_ && change != HostGate::Change::kNone)
    breaker_log_(flight.host, change == HostGate::Change::kOpened, gate_.look(flight.host, now_));
  const bool is_done = outcome.fate == CallFate::kDone;
  book_.note(now_, flight.host, result, !is_done);
  if (is_done) return ledger().done(flight.ticket, std::move(outcome.text));
  const bool is_dead = outcome.fate == CallFate::kDead;
  book_.note_failure({now_, flight.topic, flight.id, flight.host, flight.attempt, is_dead, result.status,
                      result.error, result.took});
  if (log_) log_({flight.topic, flight.id, flight.host, flight.attempt, is_dead, result});
  if (is_dead) return ledger().dead(flight.ticket, std::move(outcome.text));
  ledger().failed(flight.ticket, std::move(outcome.text), outcome.retry_after);
}

void WebhookSink::advance_line(const std::string& host) {
  for (;;) {
    const HostGate::Room there = gate_.room(host, now_);
    const auto found = lines_.find(host);
    if (there.open_until) {
      if (found != lines_.end()) give_back_line(host, *there.open_until);
      return ledger().lane_is_closed(host);
    }
    if (there.calls == 0) return;
    if (found == lines_.end()) return ledger().lane_has_room(host, there.calls);
    Line& line = found->second;
    Flight flight = std::move(line.front());
    line.pop_front();
    --waiting_;
    if (line.empty()) lines_.erase(found);
    gate_.enter(host, now_);
    start(std::move(flight));
  }
}

// ---- jobs in line

void WebhookSink::give_back_line(const std::string& host, std::optional<Moment> at) {
  const auto found = lines_.find(host);
  waiting_ -= found->second.size();
  for (const Flight& flight : found->second) ledger().give_back(flight.ticket, at);
  lines_.erase(found);
}

Moment WebhookSink::tick(Moment now) {
  now_ = now;
  if (waiting_ > 0 && next_check_ <= now) check_lines();
  return waiting_ > 0 ? next_check_ : kNever;
}

/// The order of a line is not that of `start_by` when timeouts were changed, so each job is looked at.
void WebhookSink::check_lines() {
  next_check_ = now_ + kLineCheck;
  for (auto entry = lines_.begin(); entry != lines_.end();) {
    Line& line = entry->second;
    waiting_ -= std::erase_if(line, [&](const Flight& flight) {
      const bool is_late = flight.start_by < now_;
      if (is_late) ledger().give_back(flight.ticket, after_full());
      return is_late;
    });
    if (line.empty()) {
      lines_.erase(entry++);
    } else {
      ++entry;
    }
  }
}

void WebhookSink::stop(Moment now) {
  now_ = now;
  while (!lines_.empty()) give_back_line(std::string(lines_.begin()->first), std::nullopt);
}

void WebhookSink::clock_set_back(Millis by) {
  if (next_check_ != kNever) next_check_ -= by;
  for (auto& [host, line] : lines_) {
    for (Flight& flight : line) flight.start_by -= by;
  }
}

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

HostView HostGate::look(const std::string& name, Moment now) const {
  const auto found = hosts_.find(name);
  if (found == hosts_.end()) return {};
  const HostState& host = found->second;
  HostView view{Breaker::kClosed, std::nullopt, host.failures, host.calls};
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

HostGate::Change HostGate::leave(const std::string& name, Moment now, bool failed) {
  const auto found = hosts_.find(name);
  if (found == hosts_.end()) return Change::kNone;
  HostState& host = found->second;
  const bool was_open = host.is_open;
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
  const bool is_open = host.is_open;
  forget_if_idle(found);
  if (is_open == was_open) return Change::kNone;
  return is_open ? Change::kOpened : Change::kClosed;
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
