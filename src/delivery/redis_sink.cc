#include "delivery/redis_sink.h"

#include <utility>

#include <fmt/format.h>

#include "delivery/sink.h"

namespace delayq::delivery {

namespace {

/// Nothing more is taken while this many bytes are being written.
constexpr size_t kMostBytes = size_t{32} << 20;
/// How often to look whether Redis is connected again.
constexpr Millis kLook = std::chrono::seconds{1};

/// Whether Redis did not execute the command, or it was not sent.
bool is_away(const Error& error) {
  return error.code == ErrorCode::kUnavailable || error.code == ErrorCode::kOverloaded;
}

std::string content_of(const Job& job, RedisContent content) {
  return content == RedisContent::kJob ? job_text(job) : std::string(job.id);
}

}  // namespace

bool RedisSink::takes(Outlet outlet, const EffectiveSettings& topic) const {
  return outlet == Outlet::kTopic && goes_to_redis(topic.delivery);
}

Room RedisSink::room(Moment now) {
  if (!target_.is_connected()) return {0, now + kLook};
  const size_t used = ledger().size();
  if (used >= options_.in_flight || bytes_ >= kMostBytes) return {};
  return {static_cast<uint32_t>(options_.in_flight - used)};
}

LeaseTerms RedisSink::lease_terms(const EffectiveSettings& /*topic*/) const {
  return {.length = options_.lease, .at_least = options_.lease / 2, .is_renewed = true};
}

SinkFigures RedisSink::figures() const {
  const SinkCounts& counts = ledger().counts();
  return {counts.delivered, counts.failed, counts.given_back, ledger().size(), target_.is_connected()};
}

// ---- writing

size_t RedisSink::send(const Origin& origin, const Claim& /*claim*/, std::span<const SinkJob> jobs,
                       Moment /*now*/) {
  if (jobs.empty()) return 0;
  const std::string key(origin.settings.redis_key.empty() ? origin.topic : origin.settings.redis_key);
  if (origin.settings.delivery == Delivery::kRedisList) {
    write_list(origin, key, jobs);
  } else {
    write_stream(origin, key, jobs);
  }
  return 0;
}

void RedisSink::write_list(const Origin& origin, std::string_view key, std::span<const SinkJob> jobs) {
  Flight flight;
  flight.command = fmt::format("RPUSH {}", key);
  flight.tickets.reserve(jobs.size());
  std::vector<std::string> texts;
  texts.reserve(jobs.size());  // the words point into it
  std::vector<std::string_view> words{"RPUSH", key};
  words.reserve(jobs.size() + 2);
  for (const SinkJob& each : jobs) {
    words.push_back(texts.emplace_back(content_of(*each.job, origin.settings.redis_content)));
    flight.tickets.push_back(each.ticket);
    flight.bytes += words.back().size();
  }
  call(key, words, std::move(flight));
}

void RedisSink::write_stream(const Origin& origin, std::string_view key, std::span<const SinkJob> jobs) {
  const std::string maxlen = std::to_string(origin.settings.redis_maxlen);
  std::vector<std::string_view> words;
  for (const SinkJob& each : jobs) {
    const std::string text = content_of(*each.job, origin.settings.redis_content);
    words.assign({"XADD", key});
    if (origin.settings.redis_maxlen > 0) words.insert(words.end(), {"MAXLEN", "~", maxlen});
    words.insert(words.end(), {"*", "id", each.job->id});
    if (origin.settings.redis_content == RedisContent::kJob) words.insert(words.end(), {"job", text});
    call(key, words, {{each.ticket}, fmt::format("XADD {}", key), text.size()});
  }
}

void RedisSink::call(std::string_view key, std::span<const std::string_view> words, Flight flight) {
  const uint64_t number = ++last_flight_;
  bytes_ += flight.bytes;
  flights_[number] = std::move(flight);
  target_.call(key, words, [this, number](const Result<std::string>& result) { ended(number, result); });
}

// ---- answers

bool RedisSink::poll(Moment now) {
  now_ = now;
  return target_.poll();
}

void RedisSink::ended(uint64_t number, const Result<std::string>& result) {
  const auto found = flights_.find(number);
  const Flight flight = std::move(found->second);
  flights_.erase(found);
  bytes_ -= flight.bytes;
  if (!result.ok() && is_away(result.error())) {
    if (ledger().away(now_) && log_) log_(result.error().detail);
    for (const Ticket ticket : flight.tickets) ledger().give_back(ticket);
    return;
  }
  if (ledger().answered() && log_) log_({});
  const std::string text =
      fmt::format("{}: {}", flight.command, result.ok() ? *result : result.error().detail);
  for (const Ticket ticket : flight.tickets) {
    if (result.ok()) {
      ledger().done(ticket, text);
    } else {
      ledger().failed(ticket, text);
    }
  }
}

}  // namespace delayq::delivery
