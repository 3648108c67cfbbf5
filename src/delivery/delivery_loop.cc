#include "delivery/delivery_loop.h"

#include <algorithm>
#include <utility>

namespace delayq::delivery {

namespace {

constexpr uint32_t kLargestBatch = 512;
/// A batch with more than this makes the next one smaller.
constexpr size_t kLargeBatchBytes = size_t{4} << 20;
/// The rest after a take that failed.
constexpr Millis kAfterError = std::chrono::seconds{1};
/// The rest after a batch with jobs that the sink had no room for: at first, and at most.
constexpr Millis kFirstDigRest{10};
constexpr Millis kLongestDigRest{160};
/// This long before the end of the grace period jobs are given back, so that it is durable by then.
constexpr Millis kStopMargin{250};
constexpr Millis kClockSlack = std::chrono::seconds{1};

}  // namespace

void DeliveryLoop::add(Sink& sink) {
  ways_.push_back(std::make_unique<Way>(sink, settlement_, random_));
  sink.attach(ways_.back()->ledger);
}

// ---- which sink has a topic

void DeliveryLoop::on_deliverable(std::string_view topic, Outlet outlet) {
  if (stopping_) return;
  const EffectiveSettings& settings = queue_.effective_settings(topic);
  for (const auto& way : ways_) {
    if (!way->sink.takes(outlet, settings)) continue;
    if (const Status status = check({topic, outlet, settings}); !status) return tell(topic, status.error());
    Source& source = way->sources.tell(topic, outlet);
    source.told_again = true;
    // The topic's settings may be others now. Jobs with callbacks of their own do not depend on them.
    const bool waits = source.state == Source::State::kHeld || source.state == Source::State::kSleeping;
    if (waits && outlet == Outlet::kTopic) way->sources.run(source);
    return;
  }
}

Status DeliveryLoop::check(const Origin& origin) const {
  // A callback can always be tried; for the others something may be missing in the configuration.
  const bool can_always =
      origin.outlet == Outlet::kCallback || origin.settings.delivery == Delivery::kWebhook;
  return can_always ? Status{} : queue_.check_delivery(origin.topic);
}

void DeliveryLoop::tell_stuck() {
  told_.clear();
  for (const auto& [topic, why] : queue_.undeliverable()) tell(topic, why);
}

void DeliveryLoop::tell(std::string_view topic, const Error& why) {
  if (told_.emplace(topic).second && stuck_) stuck_(topic, why);
}

// ---- a turn

void DeliveryLoop::advance_clock(Moment now) {
  const Millis back = std::exchange(now_, now) - now;
  if (back < kClockSlack) return;
  if (stop_at_ != kNever) stop_at_ -= back;
  for (const auto& way : ways_) {
    way->sources.wake_sleepers(kNever);  // they are checked again
    way->ledger.clock_set_back(back);
    way->sink.clock_set_back(back);
  }
}

void DeliveryLoop::hear() {
  for (const auto& way : ways_) way->sink.hear();
}

Moment DeliveryLoop::tick(Moment now) {
  advance_clock(now);
  if (stop_at_ <= now) {
    stop_at_ = kNever;
    for (const auto& way : ways_) way->ledger.give_back_all();
  }
  Moment next = stop_at_;
  for (const auto& way : ways_) next = std::min(next, tick(*way));
  settlement_.send(now);
  return next;
}

Moment DeliveryLoop::tick(Way& way) {
  way.sources.wake_sleepers(now_);
  const Moment sink_next = way.sink.tick(now_);
  if (way.ledger.next_renewal() <= now_) way.ledger.renew(queue_, now_);
  Moment looks_again = kNever;
  while (!stopping_ && way.sources.size() > 0) {
    const Room there = room(way);
    if (there.jobs == 0) {
      looks_again = there.again;
      break;
    }
    Source* const source = way.sources.next();
    if (source == nullptr) break;
    ask(way, *source, there.jobs);
  }
  return std::min({way.sources.next_wake(), sink_next, way.ledger.next_renewal(), looks_again});
}

Room DeliveryLoop::room(Way& way) const {
  if (way.ledger.rests_until() > now_) return {0, way.ledger.rests_until()};
  Room there = way.sink.room(now_);
  there.jobs -= std::min(there.jobs, way.taking);
  return there;
}

bool DeliveryLoop::poll(Moment now) {
  advance_clock(now);
  bool has_any = false;
  for (const auto& way : ways_) has_any |= way->sink.poll(now);
  return settlement_.send(now) || has_any;
}

void DeliveryLoop::stop(Moment now, Millis grace) {
  advance_clock(now);
  stopping_ = true;
  stop_at_ = saturating_add(now, std::max(Millis::zero(), grace - std::min(kStopMargin, grace / 2)));
  for (const auto& way : ways_) way->sink.stop(now);
  settlement_.send(now);
}

// ---- taking

void DeliveryLoop::ask(Way& way, Source& source, uint32_t most) {
  const EffectiveSettings& settings = queue_.effective_settings(source.topic);
  const Origin origin{source.topic, source.outlet, settings};
  if (!way.sink.takes(source.outlet, settings) || !check(origin).ok()) return way.sources.drop(source);
  if (source.batch == 0) source.batch = way.sink.first_batch();
  Claim claim = way.sink.claim(origin, std::min(most, source.batch), now_);
  if (claim.rests_until) return way.sources.rest(source, *claim.rests_until);
  if (claim.jobs == 0) return way.sources.hold(source, std::move(claim.lane));
  DeliveryRequest request;
  request.topic = source.topic;
  request.outlet = source.outlet;
  request.count = claim.jobs;
  request.lease = way.sink.lease_terms(settings).length;
  way.taking += claim.jobs;
  // A source that is being asked stays where it is.
  queue_.take_for_delivery(now_, request,
                           [this, &way, &source, claim = std::move(claim)](const Result<PopAnswer>& answer) {
                             taken(way, source, claim, answer);
                           });
}

void DeliveryLoop::taken(Way& way, Source& source, const Claim& claim, const Result<PopAnswer>& answer) {
  static const std::vector<TakenJob> kNone;
  const std::vector<TakenJob>& jobs = answer.ok() ? answer->jobs : kNone;
  way.taking -= claim.jobs;
  const size_t refused = send(way, source, claim, jobs);
  if (stopping_) return way.sources.drop(source);
  if (!answer.ok()) return way.sources.rest(source, now_ + kAfterError);
  go_on(way, source, claim, jobs, refused);
}

size_t DeliveryLoop::send(Way& way, const Source& source, const Claim& claim,
                          const std::vector<TakenJob>& jobs) {
  const EffectiveSettings& settings = queue_.effective_settings(source.topic);
  const LeaseTerms terms = way.sink.lease_terms(settings);
  // Settings may have changed since the queue was asked.
  const bool is_open = !stopping_ && way.sink.takes(source.outlet, settings);
  sending_.clear();
  for (const TakenJob& taken : jobs) {
    if (!is_open || taken.job.until < now_ + terms.at_least) {
      way.ledger.turn_back(taken);
    } else {
      sending_.push_back({way.ledger.open(taken, terms, now_), &taken.job});
    }
  }
  return way.sink.send({source.topic, source.outlet, settings}, claim, sending_, now_);
}

void DeliveryLoop::go_on(Way& way, Source& source, const Claim& claim, const std::vector<TakenJob>& jobs,
                         size_t refused) {
  if (refused > 0) {
    // Some lanes are full. Looks further for jobs of other lanes; the fewer there are, the longer it rests
    // between.
    const bool found_any = refused < jobs.size();
    source.batch = found_any ? way.sink.first_batch() : std::min(kLargestBatch, source.batch * 2);
    source.rest = found_any ? kFirstDigRest : std::clamp(source.rest * 2, kFirstDigRest, kLongestDigRest);
    return way.sources.rest(source, now_ + source.rest);
  }
  size_t bytes = 0;
  for (const TakenJob& taken : jobs) bytes += taken.job.body.size();
  source.batch =
      bytes > kLargeBatchBytes ? std::max(1U, source.batch / 2) : std::min(kLargestBatch, source.batch * 2);
  source.rest = Millis::zero();
  if (jobs.size() == claim.jobs || source.told_again) return way.sources.run(source);
  way.sources.drop(source);
}

}  // namespace delayq::delivery
