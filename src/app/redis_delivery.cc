#include "app/redis_delivery.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include <fmt/format.h>

#include "app/storage.h"
#include "net/redis/options.h"

namespace delayq {

namespace {

/// An idle connection that was closed, or a Redis that restarts, is back within this time: not worth a log
/// line.
constexpr std::chrono::seconds kPatience{1};
/// How many refused keys are logged. A topic may write to a key of any name, so there is no other bound.
constexpr size_t kMostTold = 100;

std::string lower(std::string_view text) {
  std::string small(text);
  std::transform(small.begin(), small.end(), small.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return small;
}

/// The lease is longer than connecting and writing together, so that no job is handed out again meanwhile.
constexpr Millis kLeaseMargin = std::chrono::seconds{10};

delivery::RedisSinkOptions sink_options(const RedisDeliveryOptions& said) {
  delivery::RedisSinkOptions options;
  options.in_flight = said.in_flight;
  options.lease = 2 * said.timeout + kLeaseMargin;
  return options;
}

/// The answer as text: the length of a list, or the id of a stream's entry.
std::string text_of(const resp::Value& value) {
  return value.type == resp::Value::Type::kInteger ? std::to_string(value.integer) : value.text;
}

/// A key that the Redis user may not write to concerns one topic only. Other topics must not wait for it, as
/// they do when Redis itself is unreachable.
Error refusal_of(Error error) {
  if (error.detail.starts_with("NOPERM ")) error.code = ErrorCode::kForbidden;
  return error;
}

}  // namespace

// ---- what is logged

void DeliveryWatch::begin(net::redis::Mode mode, RedisNames names) {
  mode_ = mode;
  names_ = std::move(names);
  away_since_.reset();
  is_cut_off_ = takes_nothing_ = false;
  told_.clear();
}

void DeliveryWatch::say(std::string_view why) {
  std::string advice = advice_on_reaching(why, mode_, names_);
  if (advice.empty() && !why.ends_with('?')) advice = fmt::format("is {} right?", names_.url);
  tell_(true, fmt::format("redis delivery: jobs wait until Redis takes them: {}{}{}", why,
                          advice.empty() ? "" : "; ", advice));
}

void DeliveryWatch::say_if_over() {
  if (!is_cut_off_ && !takes_nothing_) tell_(false, "redis delivery: Redis takes jobs again");
}

void DeliveryWatch::look(Clock::time_point now, bool is_connected, std::string_view last_error) {
  if (!names_.is_all_in_url) return;
  if (is_connected) {
    away_since_.reset();
    if (std::exchange(is_cut_off_, false)) say_if_over();
    return;
  }
  if (last_error.empty() || is_cut_off_ || takes_nothing_) return;
  if (!away_since_) away_since_ = now;
  const bool lasts = !advice_on_reaching(last_error, mode_, names_).empty();
  if (!lasts && now - *away_since_ < kPatience) return;
  is_cut_off_ = true;
  say(last_error);
}

void DeliveryWatch::wrote(std::string_view why) {
  if (why.empty()) {
    if (std::exchange(takes_nothing_, false)) say_if_over();
    return;
  }
  if (!is_cut_off_ && !takes_nothing_) say(why);
  takes_nothing_ = true;
}

void DeliveryWatch::refused(std::string_view command, std::string_view key, std::string_view text) {
  if (!text.starts_with("NOPERM") || told_.size() >= kMostTold) return;
  if (!told_.insert(fmt::format("{} {}", command, key)).second) return;
  tell_(true, fmt::format("redis delivery: {} {}: {}; the user of {} needs ~{} +{}", command, key, text,
                          names_.url, key, lower(command)));
}

void DeliveryWatch::greeted(const resp::Value& hello) {
  const resp::Value* const mode = hello.find("mode");
  if (mode == nullptr || mode->text != "cluster" || mode_ == net::redis::Mode::kCluster) return;
  if (!told_.insert("cluster").second) return;
  tell_(true,
        fmt::format("redis delivery: it is a member of a Cluster, which has only some of the keys: set {} to "
                    "redis-cluster://HOST,HOST",
                    names_.url));
}

// ---- the client and the sink

std::optional<net::redis::ClientOptions> redis_target(const RedisDeliveryOptions& said,
                                                      const net::redis::ClientOptions* engine) {
  std::optional<net::redis::ClientOptions> where;
  if (!said.url.empty()) {
    if (auto parsed = net::redis::parse_url(said.url); parsed.ok()) where = std::move(*parsed);
  } else if (engine != nullptr) {
    where = *engine;
    where->connections = 1;
    where->wait = Millis::zero();  // jobs wait in the queue
  }
  if (!where) return where;
  where->connect_timeout = said.timeout;
  where->reply_timeout = said.timeout;
  where->seed = 0;
  return where;
}

void RedisDelivery::ClientTarget::call(std::string_view key, std::span<const std::string_view> words,
                                       Answer answer) {
  assert(client_ != nullptr);  // nothing is written while it is not connected
  client_->call(key, words,
                [answer = std::move(answer), &watch = watch_, command = std::string(words.front()),
                 name = std::string(key)](const Result<resp::Value>& reply) mutable {
                  if (!reply.ok()) watch.refused(command, name, reply.error().detail);
                  answer(reply.ok() ? Result<std::string>(text_of(*reply))
                                    : Result<std::string>(refusal_of(reply.error())));
                });
}

bool RedisDelivery::ClientTarget::poll() {
  size_t heard = client_ == nullptr ? 0 : client_->poll();
  for (const auto& client : retired_) heard += client->poll();
  std::erase_if(retired_, [](const auto& client) { return client->outstanding() == 0; });
  return heard > 0;
}

void RedisDelivery::ClientTarget::replace(std::unique_ptr<net::redis::Client> client) {
  if (client_ != nullptr && client_->outstanding() > 0) retired_.push_back(std::move(client_));
  client_ = std::move(client);
  greeted_ = 0;
}

void RedisDelivery::ClientTarget::look(DeliveryWatch::Clock::time_point now) {
  if (client_ == nullptr) return;
  watch_.look(now, client_->is_connected(), client_->last_error());
  const uint64_t connects = client_->figures().connects;
  if (connects == greeted_ || !client_->is_connected()) return;
  greeted_ = connects;
  client_->call({}, {"HELLO"}, [&watch = watch_](const Result<resp::Value>& hello) {
    if (hello.ok()) watch.greeted(*hello);
  });
}

RedisDelivery::RedisDelivery(net::Loop& loop, RedisDeliveryOptions options)
    : loop_(loop), watch_(std::move(options.tell)), sink_(target_, sink_options(options)) {
  sink_.set_log([this](std::string_view why) { watch_.wrote(why); });
}

void RedisDelivery::look(DeliveryWatch::Clock::time_point now) { target_.look(now); }

Result<std::unique_ptr<RedisDelivery>> RedisDelivery::open(net::Loop& loop,
                                                           const RedisDeliveryOptions& options,
                                                           const net::redis::ClientOptions* engine,
                                                           uint64_t seed) {
  std::unique_ptr<RedisDelivery> delivery(new RedisDelivery(loop, options));
  if (Status status = delivery->change(options, engine, seed); !status.ok()) return status.error();
  return delivery;
}

Status RedisDelivery::change(const RedisDeliveryOptions& options, const net::redis::ClientOptions* engine,
                             uint64_t seed) {
  if (!options.url.empty()) {
    if (const auto parsed = net::redis::parse_url(options.url); !parsed.ok()) return parsed.error();
  }
  std::optional<net::redis::ClientOptions> where = redis_target(options, engine);
  if (where != where_) {
    std::unique_ptr<net::redis::Client> client;
    if (where) {
      net::redis::ClientOptions seeded = *where;
      seeded.seed = seed;
      auto opened = net::redis::open_client(loop_, std::move(seeded));
      if (!opened.ok()) return opened.error();
      client = std::move(*opened);
    }
    target_.replace(std::move(client));
    if (where)
      watch_.begin(where->mode, options.url.empty() ? RedisNames{} : RedisNames{"redis_delivery.url", true});
    where_ = std::move(where);
  }
  sink_.set_options(sink_options(options));
  return {};
}

std::optional<delivery::SinkFigures> RedisDelivery::figures() const {
  return target_.is_there() ? std::optional(sink_.figures()) : std::nullopt;
}

}  // namespace delayq
