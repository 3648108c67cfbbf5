#include "delivery/webhook/dispatcher.h"

#include <algorithm>
#include <utility>

namespace delayq::webhook {

namespace {

/// Asked of a source that was not asked just before: many topics may share a host and its places.
constexpr uint32_t kFirstBatch = 8;
constexpr uint32_t kLargestBatch = 512;
/// How many more jobs than it has places a host may have in line, and for how long each.
constexpr uint32_t kLongestLine = 16;
constexpr Millis kLongestInLine = std::chrono::seconds{5};
constexpr Millis kLineCheck = std::chrono::seconds{1};
/// When to try again a job for a host that is full.
constexpr Millis kAfterFull = std::chrono::seconds{1};
constexpr Millis kFirstRest{10};
constexpr Millis kLongestRest{160};
/// The lease is longer than the call by this, so that no job is handed out again while it is being called.
constexpr Millis kLeaseMargin = std::chrono::seconds{5};
/// Before the end of the grace period, so that giving back is on disk by then.
constexpr Millis kStopMargin{250};
constexpr Millis kClockSlack = std::chrono::seconds{1};
constexpr size_t kMostSigners = 1'000;
constexpr std::string_view kNoCallback = "no callback: neither the job nor its topic says where to call";

}  // namespace

Dispatcher::Dispatcher(Queue& queue, Caller& caller, DispatcherOptions options, uint64_t seed)
    : queue_(queue),
      caller_(caller),
      options_(std::move(options)),
      random_(seed),
      gate_(options_.hosts),
      settlement_(queue) {}

void Dispatcher::set_options(DispatcherOptions options) {
  options_ = std::move(options);
  gate_.set_options(options_.hosts);
  signers_.clear();
}

Figures Dispatcher::figures() const {
  Figures figures = figures_;
  figures.in_flight = flights_.size();
  figures.waiting = waiting_;
  figures.open_hosts = gate_.open_hosts();
  return figures;
}

// ---- which source is asked, and for how much

void Dispatcher::on_deliverable(std::string_view topic, Outlet outlet) {
  if (stopping_) return;
  Source& source = sources_.tell(topic, outlet);
  source.told_again = true;
  // Its topic may call another host now. Those that rest go on resting.
  const bool waits = source.state == Source::State::kHeld || source.state == Source::State::kSleeping;
  if (waits && outlet == Outlet::kTopic) sources_.run(source);
}

uint32_t Dispatcher::room() const {
  const size_t used = flights_.size() + waiting_ + taking_;
  const size_t own = options_.in_flight - std::min<size_t>(options_.in_flight, used);
  const size_t callers = caller_.room() - std::min<size_t>(caller_.room(), waiting_ + taking_);
  return static_cast<uint32_t>(std::min(own, callers));
}

Moment Dispatcher::tick(Moment now) {
  // When the clock goes back those that sleep would sleep for longer: let them look anew.
  sources_.wake_sleepers(now < now_ - kClockSlack ? kNever : now);
  now_ = now;
  if (waiting_ > 0 && next_check_ <= now) check_lines(now);
  if (stop_at_ <= now) give_back_all_in_flight();
  while (!stopping_ && room() > 0) {
    Source* source = sources_.next();
    if (source == nullptr) break;
    ask(*source, now);
  }
  settlement_.send(now);
  return std::min({sources_.next_wake(), waiting_ > 0 ? next_check_ : kNever, stop_at_});
}

void Dispatcher::ask(Source& source, Moment now) {
  if (source.batch == 0) source.batch = kFirstBatch;
  if (source.outlet == Outlet::kCallback) {
    return take(source, {std::min(room(), source.batch), {}}, now);
  }
  const EffectiveSettings& topic = queue_.effective_settings(source.topic);
  if (topic.delivery != Delivery::kWebhook || topic.callback.empty()) return sources_.drop(source);
  std::string host = host_of(topic.callback);
  const HostGate::Room room_there = gate_.room(host, now);
  if (room_there.open_until) return sources_.rest(source, *room_there.open_until);
  if (room_there.calls == 0) return sources_.hold(source, std::move(host));
  const uint32_t count = std::min({room(), room_there.calls, source.batch});
  gate_.enter(host, now, count);
  take(source, {count, std::move(host)}, now);
}

void Dispatcher::take(Source& source, Asked asked, Moment now) {
  taking_ += asked.count;
  DeliveryRequest request;
  request.topic = source.topic;
  request.outlet = source.outlet;
  request.count = asked.count;
  request.lease = timeout_of(queue_.effective_settings(source.topic)) + kLongestInLine + kLeaseMargin;
  // A source that is being asked stays where it is.
  queue_.take_for_delivery(now, request, [this, &source, asked = std::move(asked)](Result<PopAnswer> answer) {
    taken(source, asked, std::move(answer));
  });
}

Millis Dispatcher::timeout_of(const EffectiveSettings& topic) const {
  return topic.callback_timeout > Millis::zero() ? topic.callback_timeout : options_.timeout;
}

void Dispatcher::taken(Source& source, const Asked& asked, Result<PopAnswer> answer) {
  taking_ -= asked.count;
  uint32_t held = asked.host.empty() ? 0 : asked.count;
  size_t placed = 0;
  if (answer.ok()) {
    for (const TakenJob& job : answer->jobs) placed += place(job, asked.host, held) ? 1 : 0;
  }
  if (held > 0) {
    gate_.give_back(asked.host, held);
    advance_line(asked.host);
  }
  if (!answer.ok() && !stopping_) return sources_.rest(source, now_ + kAfterFull);
  go_on(source, asked, answer.ok() ? answer->jobs.size() : 0, placed);
}

void Dispatcher::go_on(Source& source, const Asked& asked, size_t got, size_t placed) {
  if (stopping_) return sources_.drop(source);
  if (source.outlet == Outlet::kCallback && placed < got) {
    // Some of its hosts are full. Dig on for the jobs of others, the less hurriedly the less there are.
    source.batch = placed > 0 ? kFirstBatch : std::min(kLargestBatch, source.batch * 2);
    source.rest = placed > 0 ? kFirstRest : std::clamp(source.rest * 2, kFirstRest, kLongestRest);
    return sources_.rest(source, now_ + source.rest);
  }
  source.batch = std::min(kLargestBatch, source.batch * 2);
  source.rest = Millis::zero();
  if (got == asked.count || source.told_again) return sources_.run(source);
  sources_.drop(source);
}

// ---- a job, from its taking to its call

bool Dispatcher::place(const TakenJob& taken, std::string_view held_host, uint32_t& held) {
  const Job& job = taken.job;
  std::string lease(taken.lease);
  if (stopping_) return give_back(std::move(lease), now_), false;
  const EffectiveSettings& topic = queue_.effective_settings(job.topic);
  const JobOptions options = decode_job_options(job.options);
  const Route route = route_of(options, topic);
  if (route.url.empty()) return settlement_.dead(std::move(lease), std::string(kNoCallback)), true;

  Flight flight{std::move(lease), std::string(job.topic), std::string(job.id),    host_of(route.url),
                job.attempts,     route.format,           start_by(taken, topic), {}};
  const bool has_place = held > 0 && flight.host == held_host;
  const HostGate::Room there = has_place ? HostGate::Room{1, {}} : gate_.room(flight.host, now_);
  if (there.open_until) {
    // Not all at the moment at which the host may be tried again.
    const Millis spread{static_cast<int64_t>(random_.below(1'000))};
    return give_back(std::move(flight.lease), *there.open_until + spread), false;
  }
  const auto line = lines_.find(flight.host);
  const size_t in_line = line == lines_.end() ? 0 : line->second.size();
  if (there.calls == 0 && in_line >= kLongestLine)
    return give_back(std::move(flight.lease), after_full()), false;
  flight.call = make_call(job, options, route, signer_of(topic, job.topic, route), now_);
  flight.call.connect_timeout = options_.connect_timeout;
  flight.call.total_timeout = timeout_of(topic);
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

Moment Dispatcher::start_by(const TakenJob& taken, const EffectiveSettings& topic) const {
  return taken.job.until - timeout_of(topic) - kLeaseMargin;
}

Moment Dispatcher::after_full() {
  return now_ + kAfterFull + Millis{static_cast<int64_t>(random_.below(1'000))};
}

signing::Signer& Dispatcher::signer_of(const EffectiveSettings& topic, std::string_view name,
                                       const Route& route) {
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
  // Secrets are checked where they are set; what is not one after all does not sign.
  Result<signing::Signer> signer = signing::Signer::create(secrets);
  if (!signer.ok()) signer = signing::Signer::create({});
  return signers_.emplace(std::move(key), std::move(*signer)).first->second;
}

bool Dispatcher::start(Flight flight) {
  if (flight.start_by < now_) {
    gate_.give_back(flight.host, 1);
    return give_back(std::move(flight.lease), now_), false;
  }
  const uint64_t number = ++last_flight_;
  Call call = std::move(flight.call);
  call.start_within = flight.start_by - now_;
  flights_.emplace(number, std::move(flight));
  caller_.call(std::move(call), [this, number](const CallResult& result) { ended(number, result); });
  return true;
}

// ---- a call has ended

bool Dispatcher::poll(Moment now) {
  now_ = now;
  const bool has_any = caller_.poll();
  return settlement_.send(now) || has_any;
}

void Dispatcher::ended(uint64_t number, const CallResult& result) {
  const auto found = flights_.find(number);
  if (found == flights_.end()) return;  // given back when the grace period ended
  Flight flight = std::move(found->second);
  flights_.erase(found);
  ++figures_.calls[static_cast<size_t>(class_of(result))];
  figures_.micros.record(static_cast<uint64_t>(std::max<int64_t>(0, result.took.count())));
  const std::string host = flight.host;
  if (result.error == CallError::kNoRoom) {
    gate_.give_back(host, 1);
    give_back(std::move(flight.lease), now_ + kAfterFull);
  } else {
    settle(std::move(flight), result);
  }
  advance_line(host);
}

void Dispatcher::settle(Flight flight, const CallResult& result) {
  Outcome outcome = outcome_of(result, flight.format, now_);
  gate_.leave(flight.host, now_, outcome.host_failed);
  if (outcome.fate == Fate::kDone) {
    ++figures_.delivered;
    return settlement_.done(std::move(flight.lease), std::move(outcome.text));
  }
  ++figures_.failed;
  const bool is_dead = outcome.fate == Fate::kDead;
  if (log_) log_({flight.topic, flight.id, flight.host, flight.attempt, is_dead, result});
  if (is_dead) return settlement_.dead(std::move(flight.lease), std::move(outcome.text));
  settlement_.failed(std::move(flight.lease), std::move(outcome.text), outcome.retry_after);
}

void Dispatcher::advance_line(const std::string& host) {
  for (;;) {
    const HostGate::Room there = gate_.room(host, now_);
    const auto found = lines_.find(host);
    if (there.open_until) {
      if (found != lines_.end()) give_back_line(host, *there.open_until);
      return sources_.host_is_closed(host);
    }
    if (there.calls == 0) return;
    if (found == lines_.end()) return sources_.host_has_room(host, there.calls);
    Line& line = found->second;
    Flight flight = std::move(line.front());
    line.pop_front();
    --waiting_;
    if (line.empty()) lines_.erase(found);
    gate_.enter(host, now_);
    start(std::move(flight));
  }
}

// ---- giving back

void Dispatcher::give_back(std::string lease, Moment at) {
  ++figures_.given_back;
  settlement_.give_back(std::move(lease), at);
}

void Dispatcher::give_back_line(const std::string& host, Moment at) {
  const auto found = lines_.find(host);
  waiting_ -= found->second.size();
  for (Flight& flight : found->second) give_back(std::move(flight.lease), at);
  lines_.erase(found);
}

/// Gives back the jobs that waited for too long. Their order is not that of `start_by` when the clock was set
/// back or timeouts were changed, so each is looked at.
void Dispatcher::check_lines(Moment now) {
  next_check_ = now + kLineCheck;
  for (auto entry = lines_.begin(); entry != lines_.end();) {
    Line& line = entry->second;
    waiting_ -= std::erase_if(line, [&](Flight& flight) {
      const bool is_late = flight.start_by < now;
      if (is_late) give_back(std::move(flight.lease), after_full());
      return is_late;
    });
    if (line.empty()) {
      lines_.erase(entry++);
    } else {
      ++entry;
    }
  }
}

void Dispatcher::stop(Moment now, Millis grace) {
  now_ = now;
  stopping_ = true;
  stop_at_ = saturating_add(now, std::max(Millis::zero(), grace - std::min(kStopMargin, grace / 2)));
  while (!lines_.empty()) give_back_line(std::string(lines_.begin()->first), now);
  settlement_.send(now);
}

void Dispatcher::give_back_all_in_flight() {
  stop_at_ = kNever;
  for (auto& [number, flight] : flights_) give_back(std::move(flight.lease), now_);
  flights_.clear();
}

}  // namespace delayq::webhook
