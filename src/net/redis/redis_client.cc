#include "net/redis/redis_client.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "net/redis/client.h"

namespace delayq::net::redis {

namespace {

/// A request that was refused this often fails, unless ClientOptions::wait is longer. With kPause this is
/// about half a second.
constexpr int kMaxTries = 6;
/// This often, a redirected request is sent to the other node at once.
constexpr int kQuickTries = 2;
/// The pause before a request that Redis cannot execute now is sent again; doubles each time, up to
/// kMaxTries.
constexpr Millis kPause{8};
constexpr Millis kClockPeriod = std::chrono::minutes{1};
/// After this machine's clock was set, Redis is asked for its time again, but not more often than this.
constexpr Millis kClockPause = std::chrono::seconds{1};
/// How often, at most, all parked requests are searched: for those whose pause is over,
constexpr Millis kParkedPeriod{5};
/// and for those that have waited too long. There may be many of these, each with its own deadline.
constexpr Millis kGiveUpPeriod{50};

Error failure(ErrorCode code, std::string detail) { return {code, "redis", std::move(detail), {}}; }

/// `detail` starts with the name of the option that is wrong.
Error wrong_option(std::string detail) { return in_verb("redis", invalid(std::move(detail))); }

Status check(const ClientOptions& options) {
  if (options.addresses.empty()) return wrong_option("addresses: at least one is needed");
  if (options.connections == 0) return wrong_option("connections: at least one is needed");
  if (options.mode == Mode::kSentinel && options.master_name.empty())
    return wrong_option("master_name: Sentinel knows masters by their names");
  if (options.mode == Mode::kCluster && options.database != 0)
    return wrong_option("database: a cluster has only number 0");
  if (options.password.empty() && !options.user.empty()) return wrong_option("password: a user needs one");
  return {};
}

}  // namespace

Result<std::unique_ptr<Client>> open_client(Loop& loop, ClientOptions options) {
  if (Status status = check(options); !status.ok()) return status.error();
  std::shared_ptr<TlsClient> tls;
  if (options.tls.is_on) {
    const Tls& wanted = options.tls;
    auto opened = TlsClient::open({wanted.ca_file, wanted.certificate, wanted.key, wanted.skips_check});
    if (!opened.ok()) return opened.error();
    tls = std::move(*opened);
  }
  auto client = std::make_unique<RedisClient>(loop, std::move(options), std::move(tls));
  client->start();
  return std::unique_ptr<Client>(std::move(client));
}

RedisClient::RedisClient(Loop& loop, ClientOptions options, std::shared_ptr<TlsClient> tls)
    : loop_(loop),
      options_(std::move(options)),
      factory_(loop, options_, std::move(tls)),
      random_(mix64(options_.seed)),
      parked_timer_(loop),
      clock_timer_(loop),
      deployment_(make_deployment()),
      subscriber_(factory_, *this) {}

void RedisClient::start() { deployment_->start(); }

std::unique_ptr<Deployment> RedisClient::make_deployment() {
  LinkEvents& links = *this;
  DeploymentEvents& events = *this;
  if (is_cluster()) return std::make_unique<Cluster>(factory_, options_, links, events);
  return std::make_unique<Single>(factory_, options_, links, events);
}

void RedisClient::call(std::string_view key, std::span<const std::string_view> words, Answer answer) {
  Request request = make_command(words, std::move(answer));
  if (!key.empty()) request.slot = slot_of(key);
  accept(std::move(request));
}

void RedisClient::run(const Script& script, std::span<const std::string_view> keys,
                      std::span<const std::string_view> arguments, Answer answer) {
  Request request = make_run(scripts_.know(script), keys, arguments, std::move(answer));
  request.slot = slot_of(keys.front());
  accept(std::move(request));
}

void RedisClient::accept(Request request) {
  request.number = ++figures_.commands;
  ++outstanding_commands_;
  outstanding_bytes_ += request.bytes();
  const bool is_too_much = outstanding_commands_ > options_.max_outstanding_commands ||
                           outstanding_bytes_ > options_.max_outstanding_bytes;
  if (is_too_much) {
    answer(request, failure(ErrorCode::kOverloaded, "too many commands wait for Redis"));
    return loop_.wake();
  }
  const Loop::Steady now = Loop::steady_now();
  if (options_.wait > Millis::zero()) request.give_up = request.patience = now + options_.wait;
  if (request.slot) {
    request.lane = is_cluster() ? *request.slot : static_cast<uint16_t>(*request.slot % options_.connections);
    if (order_.would_overtake(request.lane, deployment_->link_for(request.slot)))
      order_.stop_behind(request.lane);
    if (order_.is_stopped(request.lane)) return order_.hold(std::move(request));
    order_.leave(request.lane);
  }
  dispatch(std::move(request), now);
}

void RedisClient::send_again(Request request) {
  if (!request.slot) return dispatch(std::move(request), Loop::steady_now());
  const uint16_t lane = request.lane;
  order_.stop(std::move(request));
  if (order_.come_back(lane)) resume(lane);
}

void RedisClient::resume(uint16_t lane) {
  std::vector<Request> next = order_.resume(lane);
  // Count all of them before the first is sent: it may come back at once, and must not be taken for the last
  // one.
  for (size_t i = 0; i < next.size(); ++i) order_.leave(lane);
  // The same `now` for all: if a pause ended in between, later requests would overtake.
  const Loop::Steady now = Loop::steady_now();
  for (Request& request : next) dispatch(std::move(request), now);
}

Link* RedisClient::link_of(const Request& request) {
  if (request.to) {
    Link* const named = deployment_->link_at(*request.to, request.slot.value_or(0));
    if (request.is_asking || named->is_ready()) return named;
  }
  return deployment_->link_for(request.slot);
}

void RedisClient::dispatch(Request request, Loop::Steady now) {
  Link* const link = link_of(request);
  const bool is_ready = link != nullptr && link->is_ready();
  if (is_ready && request.not_before <= now) {
    if (request.slot) order_.sent(request.lane, link);
    return link->send(std::move(request));
  }
  if (request.give_up > now) return park(std::move(request), now);
  finish(std::move(request), no_connection());
  loop_.wake();
}

Error RedisClient::no_connection() const {
  return failure(ErrorCode::kUnavailable,
                 last_error_.empty() ? "no connection yet" : fmt::format("no connection: {}", last_error_));
}

void RedisClient::on_ready(Link& link) {
  ++figures_.connects;
  if (link.times_ready() > 1) ++figures_.reconnects;
  deployment_->on_ready(link);
  if (&link == deployment_->link_for(0)) measure_clock();
}

void RedisClient::on_down(Link& link, const Error& why, std::vector<Request> unanswered) {
  last_error_ = why.detail;
  for (Request& request : unanswered) finish(std::move(request), why);
  deployment_->on_down(link);
}

void RedisClient::on_change() {
  subscriber_.listen_at(deployment_->places());
  revisit_parked();
}

void RedisClient::on_reply(Link& link, Request request, resp::Value reply) {
  if (reply.is_error()) return on_refused(link, std::move(request), reply.text);
  finish(std::move(request), std::move(reply));
}

bool RedisClient::may_retry(Request& request) {
  if (++request.tries > kMaxTries) {
    if (Loop::steady_now() >= request.patience) return false;
    request.tries = kMaxTries;
  }
  ++figures_.retries;
  return true;
}

void RedisClient::pause(Request& request) {
  const Millis pause{static_cast<int64_t>(random_.between(1, kPause.count() << request.tries))};
  request.not_before = Loop::steady_now() + pause;
  let_wait(request, pause + 4 * kParkedPeriod);
}

void RedisClient::let_wait(Request& request, Millis how_long) const {
  request.give_up = std::max(request.give_up, Loop::steady_now() + how_long);
}

void RedisClient::on_refused(Link& link, Request request, const std::string& text) {
  const Refusal refusal = refusal_of(text);
  switch (refusal) {
    case Refusal::kNoScript:
      if (request.script == nullptr || request.wants_source || !may_retry(request)) break;
      request.wants_source = true;
      return send_again(std::move(request));
    case Refusal::kMoved:
    case Refusal::kAsk: {
      const auto redirection = redirection_of(text, *link.address());
      if (!redirection || !is_cluster() || !may_retry(request)) break;
      request.to = redirection->to;
      request.is_asking = refusal == Refusal::kAsk;
      // Nodes that redirect it to each other do not agree yet which of them has the slot.
      if (request.tries > kQuickTries) pause(request);
      let_wait(request, options_.connect_timeout);
      if (!request.is_asking) deployment_->on_moved(redirection->slot, redirection->to);
      return send_again(std::move(request));
    }
    case Refusal::kTryAgain: {
      if (!may_retry(request)) break;
      if (!request.is_asking) request.to.reset();
      pause(request);
      deployment_->on_cluster_down();
      return send_again(std::move(request));
    }
    case Refusal::kNotMaster:
      finish(std::move(request), error_of(text));
      return deployment_->on_replica(link);
    case Refusal::kFinal:
    case Refusal::kNotNow:
    case Refusal::kOutOfMemory:
      break;
  }
  finish(std::move(request), error_of(text));
}

void RedisClient::finish(Request request, Result<resp::Value> result) {
  answer(request, std::move(result));
  if (request.slot && order_.come_back(request.lane)) resume(request.lane);
}

void RedisClient::answer(Request& request, Result<resp::Value> result) {
  outstanding_bytes_ -= request.bytes();
  if (!result.ok()) ++figures_.errors;
  events_.emplace_back(Answered{std::move(request.answer), std::move(result)});
}

void RedisClient::park(Request request, Loop::Steady now) {
  const bool has_pause = request.not_before > now;
  const Loop::Steady at = has_pause ? std::max(request.not_before, now + kParkedPeriod)
                                    : std::max(request.give_up, now + kGiveUpPeriod);
  if (request.slot) order_.stop_behind(request.lane);
  parked_.push_back(std::move(request));
  if (!parked_timer_.is_set() || at < parked_timer_.at()) parked_timer_.set(at, [this] { revisit_parked(); });
}

void RedisClient::revisit_parked() {
  std::vector<Request> all = std::exchange(parked_, {});
  const Loop::Steady now = Loop::steady_now();
  for (Request& request : all) dispatch(std::move(request), now);
}

void RedisClient::subscribe(std::string channel, std::function<void(std::string_view)> heard,
                            std::function<void()> listening) {
  subscriber_.add({std::move(channel), std::move(heard), std::move(listening)});
}

void RedisClient::on_heard(const SharedChannel& channel, std::string_view message) {
  events_.emplace_back(Heard{channel, std::string(message)});
}

void RedisClient::on_listening(const SharedChannel& channel) { events_.emplace_back(Listening{channel}); }

size_t RedisClient::poll() {
  check_clock();
  std::vector<Event> events = std::exchange(events_, {});
  const std::weak_ptr<char> alive = alive_;
  for (Event& event : events) {
    // The last answer may have destroyed this client; then nothing more is handed out.
    if (alive.expired()) break;
    if (auto* const answered = std::get_if<Answered>(&event)) {
      --outstanding_commands_;
      answered->answer(std::move(answered->result));
    } else if (const auto* const heard = std::get_if<Heard>(&event)) {
      heard->channel->heard(heard->message);
    } else if (const auto* const listening = std::get_if<Listening>(&event)) {
      listening->channel->listening();
    }
  }
  return events.size();
}

ClockEstimate::Reading RedisClient::read_clocks() {
  const Loop::Clocks clocks = Loop::clocks();
  return {clocks.wall, clocks.steady};
}

Moment RedisClient::now() const { return Moment{std::chrono::floor<Millis>(clock_.time(read_clocks()))}; }

void RedisClient::check_clock() {
  const ClockEstimate::Reading now = read_clocks();
  if (now.steady - clock_asked_ >= kClockPause && clock_.wants_answer(now)) measure_clock();
}

void RedisClient::measure_clock() {
  clock_timer_.set_after(kClockPeriod, [this] { measure_clock(); });
  clock_asked_ = Loop::steady_now();
  Link* const link = deployment_->link_for(0);
  if (link == nullptr || !link->is_ready()) return;
  if (clock_of_ != *link->address()) {
    clock_of_ = *link->address();
    clock_.expect_another();
  }
  const ClockEstimate::Reading asked = read_clocks();
  link->send(make_internal({"TIME"}, [this, asked](const Result<resp::Value>& answer) {
    if (!answer.ok() || answer->items.size() != 2) return;
    const auto number = [](const std::string& text) {
      int64_t value = 0;
      std::from_chars(text.data(), text.data() + text.size(), value);
      return value;
    };
    using Micros = ClockEstimate::Micros;
    const Micros told =
        std::chrono::seconds(number(answer->items[0].text)) + Micros(number(answer->items[1].text));
    clock_.add(asked, std::chrono::duration_cast<Micros>(Loop::steady_now() - asked.steady), told);
  }));
}

namespace {

using Micros = ClockEstimate::Micros;

Micros between(ClockEstimate::Steady from, ClockEstimate::Steady to) {
  return std::chrono::duration_cast<Micros>(to - from);
}

/// By how much clocks may drift apart in some time.
Micros drift_in(Micros time) {
  constexpr int kParts = 10'000;
  return time / kParts;
}

}  // namespace

Micros ClockEstimate::Sample::time(Steady now) const {
  const Micros doubt = round_trip / 2 + Millis{1};
  const bool is_same = std::chrono::abs(offset) <= doubt;
  return asked.wall + (is_same ? Micros::zero() : offset) + between(asked.steady, now);
}

bool ClockEstimate::is_contradicted(const Sample& sample) const {
  const Micros apart =
      sample.asked.wall + sample.offset -
      (best_->asked.wall + best_->offset + between(best_->asked.steady, sample.asked.steady));
  const Micros explained = (sample.round_trip + best_->round_trip) / 2 +
                           drift_in(between(best_->asked.steady, sample.asked.steady)) + Millis{1};
  return std::chrono::abs(apart) > explained;
}

void ClockEstimate::add(const Reading& asked, Micros round_trip, Micros answer) {
  const Sample sample{asked, answer - (asked.wall + round_trip / 2), round_trip};
  const bool is_better = !best_ || is_another_ || round_trip <= best_->round_trip ||
                         asked.steady - best_->asked.steady >= kKept || is_contradicted(sample);
  is_another_ = false;
  answered_ = asked;
  if (is_better) best_ = sample;
}

Micros ClockEstimate::time(const Reading& now) const { return best_ ? best_->time(now.steady) : now.wall; }

bool ClockEstimate::wants_answer(const Reading& now) const {
  if (!answered_) return false;
  return std::chrono::abs(now.wall - answered_->wall - between(answered_->steady, now.steady)) > kSet;
}

}  // namespace delayq::net::redis
