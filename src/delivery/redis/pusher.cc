#include "delivery/redis/pusher.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/limits.h"
#include "delivery/redis/content.h"

namespace delayq::redis_delivery {

using delivery::Source;

namespace {

constexpr uint32_t kFirstBatch = 64;
constexpr uint32_t kLargestBatch = 512;
/// A batch with more than this makes the next one smaller.
constexpr size_t kLargeBatchBytes = size_t{4} << 20;
/// Nothing more is taken while so much is being written.
constexpr size_t kMostBytes = size_t{32} << 20;
constexpr Millis kAfterError = std::chrono::seconds{1};
/// How often to look for Redis when nobody tells that it is back.
constexpr Millis kLook = std::chrono::seconds{1};
/// Before the end of the grace period, so that giving back is durable by then.
constexpr Millis kStopMargin{250};

/// Whether Redis did not look at the command, or cannot have been asked.
bool is_away(const Error& error) {
  return error.code == ErrorCode::kUnavailable || error.code == ErrorCode::kOverloaded;
}

std::string_view key_of(const EffectiveSettings& topic, std::string_view name) {
  return topic.redis_key.empty() ? name : std::string_view(topic.redis_key);
}

}  // namespace

Pusher::Pusher(Queue& queue, Target& target, PusherOptions options, uint64_t seed)
    : queue_(queue), target_(target), options_(options), random_(seed), settlement_(queue) {}

Figures Pusher::figures() const {
  Figures figures = figures_;
  figures.in_flight = in_flight_;
  figures.connected = target_.is_connected();
  return figures;
}

// ---- taking

void Pusher::on_deliverable(std::string_view topic, Outlet outlet) {
  if (stopping_ || outlet != Outlet::kTopic) return;
  Source& source = sources_.tell(topic, outlet);
  source.told_again = true;
  if (source.state == Source::State::kSleeping) sources_.run(source);
}

bool Pusher::can_send() const { return !stopping_ && rest_until_ <= now_ && target_.is_connected(); }

uint32_t Pusher::room() const {
  const size_t used = in_flight_ + taking_;
  if (used >= options_.in_flight || bytes_ >= kMostBytes) return 0;
  return static_cast<uint32_t>(options_.in_flight - used);
}

Moment Pusher::tick(Moment now) {
  now_ = now;
  if (rest_until_ > now + options_.longest_rest) rest_until_ = now;  // the clock went back
  sources_.wake_sleepers(now);
  if (next_renewal_ <= now) renew_leases();
  if (stop_at_ <= now) {
    stop_at_ = kNever;
    for (auto& [number, flight] : flights_) give_back(flight);
    flights_.clear();
    next_renewal_ = kNever;
    in_flight_ = bytes_ = 0;
  }
  while (can_send() && room() > 0) {
    Source* const source = sources_.next();
    if (source == nullptr) break;
    ask(*source);
  }
  settlement_.send(now);
  const bool waits_for_redis = sources_.size() > 0 && !stopping_ && !can_send();
  const Moment look = rest_until_ > now ? rest_until_ : now + kLook;
  return std::min({sources_.next_wake(), stop_at_, next_renewal_, waits_for_redis ? look : kNever});
}

void Pusher::ask(Source& source) {
  const bool is_ours = goes_to_redis(queue_.effective_settings(source.topic).delivery);
  if (!is_ours || !queue_.check_delivery(source.topic).ok()) return sources_.drop(source);
  if (source.batch == 0) source.batch = kFirstBatch;
  DeliveryRequest request;
  request.topic = source.topic;
  request.outlet = source.outlet;
  request.count = std::min(room(), source.batch);
  request.lease = options_.lease;
  taking_ += request.count;
  // A source that is being asked stays where it is.
  queue_.take_for_delivery(now_, request, [this, &source, asked = request.count](Result<PopAnswer> answer) {
    taken(source, asked, std::move(answer));
  });
}

void Pusher::taken(Source& source, uint32_t asked, Result<PopAnswer> answer) {
  taking_ -= asked;
  if (answer.ok()) write(source, answer->jobs);
  if (stopping_) return sources_.drop(source);
  if (!answer.ok()) return sources_.rest(source, now_ + kAfterError);
  if (answer->jobs.size() == asked || source.told_again) return sources_.run(source);
  sources_.drop(source);
}

// ---- writing

void Pusher::write(Source& source, const std::vector<TakenJob>& jobs) {
  const EffectiveSettings& topic = queue_.effective_settings(source.topic);
  const std::string key(key_of(topic, source.topic));
  const bool is_list = topic.delivery == Delivery::kRedisList;
  const std::string maxlen = std::to_string(topic.redis_maxlen);
  Flight all;
  all.command = fmt::format("RPUSH {}", key);
  size_t bytes = 0;
  std::vector<std::string> texts;
  texts.reserve(jobs.size());  // the words point into it
  std::vector<std::string_view> list{"RPUSH", key};
  for (const TakenJob& taken : jobs) {
    Flight one{{{std::string(taken.lease), taken.job.due}}, {}, 0, taken.job.until};
    // What was taken for another way of leaving, or too late, goes back to its place.
    const bool is_late = stopping_ || taken.job.until < now_ + options_.lease / 2;
    if (is_late || !goes_to_redis(topic.delivery)) {
      give_back(one);
      continue;
    }
    const bool is_whole = topic.redis_content == RedisContent::kJob;
    const std::string& text = texts.emplace_back(is_whole ? job_text(taken.job) : std::string(taken.job.id));
    one.bytes = text.size();
    bytes += text.size();
    if (is_list) {
      list.push_back(text);
      all.items.push_back(std::move(one.items.front()));
      all.bytes += text.size();
      all.until = std::min(all.until, one.until);
      continue;
    }
    std::vector<std::string_view> words{"XADD", key};
    if (topic.redis_maxlen > 0) words.insert(words.end(), {"MAXLEN", "~", maxlen});
    words.insert(words.end(), {"*", "id", taken.job.id});
    if (is_whole) words.insert(words.end(), {"job", text});
    one.command = fmt::format("XADD {}", key);
    send(key, words, std::move(one));
  }
  if (!all.items.empty()) send(key, list, std::move(all));
  source.batch =
      bytes > kLargeBatchBytes ? std::max(1U, source.batch / 2) : std::min(kLargestBatch, source.batch * 2);
}

void Pusher::send(std::string_view key, std::span<const std::string_view> words, Flight flight) {
  const uint64_t number = ++last_flight_;
  in_flight_ += flight.items.size();
  bytes_ += flight.bytes;
  flights_[number] = std::move(flight);
  if (next_renewal_ == kNever) next_renewal_ = now_ + options_.lease / 4;
  target_.call(key, words, [this, number](const Result<std::string>& result) { ended(number, result); });
}

// ---- what came of it

bool Pusher::poll(Moment now) {
  now_ = now;
  const bool heard = target_.poll();
  return settlement_.send(now) || heard;
}

void Pusher::ended(uint64_t number, const Result<std::string>& result) {
  const auto found = flights_.find(number);
  if (found == flights_.end()) return;  // given back when the grace period ended
  Flight flight = std::move(found->second);
  flights_.erase(found);
  if (flights_.empty()) next_renewal_ = kNever;
  in_flight_ -= flight.items.size();
  bytes_ -= flight.bytes;
  if (!result.ok() && is_away(result.error())) {
    went_away(result.error());
    return give_back(flight);
  }
  if (rest_ != Millis::zero()) {
    rest_ = Millis::zero();
    if (log_) log_({});
  }
  if (result.ok()) {
    figures_.delivered += flight.items.size();
    const std::string outcome = fmt::format("{}: {}", flight.command, *result);
    for (Item& item : flight.items) settlement_.done(std::move(item.lease), outcome);
    return;
  }
  figures_.failed += flight.items.size();
  const std::string reason = fmt::format("{}: {}", flight.command, result.error().detail);
  for (Item& item : flight.items) settlement_.failed(std::move(item.lease), reason, std::nullopt);
}

void Pusher::went_away(const Error& error) {
  if (rest_until_ > now_) return;  // one of many that were under way
  if (rest_ == Millis::zero() && log_) log_(error.detail);
  rest_ = std::clamp(rest_ * 2, options_.first_rest, options_.longest_rest);
  // Not all servers at the same moment.
  const auto spread = static_cast<int64_t>(random_.below(static_cast<uint64_t>(rest_.count() / 4 + 1)));
  rest_until_ = now_ + rest_ - Millis{spread};
}

void Pusher::renew_leases() {
  next_renewal_ = now_ + options_.lease / 4;
  std::vector<ExtendItem> items;
  const auto send = [&] {
    // A lease that is lost already is found out by the ack.
    if (!items.empty()) queue_.extend(now_, items, [](const Result<std::vector<Result<Moment>>>&) {});
    items.clear();
  };
  for (auto& [number, flight] : flights_) {
    if (flight.until >= now_ + options_.lease / 2) continue;
    flight.until = now_ + options_.lease;
    for (const Item& item : flight.items) {
      items.push_back({item.lease, options_.lease});
      if (items.size() == Limits::kBatchJobs) send();
    }
  }
  send();
}

void Pusher::give_back(Flight& flight) {
  figures_.given_back += flight.items.size();
  for (Item& item : flight.items) settlement_.give_back(std::move(item.lease), item.due);
}

void Pusher::stop(Moment now, Millis grace) {
  now_ = now;
  stopping_ = true;
  stop_at_ = saturating_add(now, std::max(Millis::zero(), grace - std::min(kStopMargin, grace / 2)));
}

}  // namespace delayq::redis_delivery
