#include "app/server.h"

#include <algorithm>
#include <fstream>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "app/version.h"
#include "core/arena.h"
#include "core/limits.h"
#include "core/text.h"

namespace delayq {

namespace {

/// A bound on the rounds of one turn: calls that are answered as fast as they are made would otherwise
/// continue as long as there are jobs, and no socket would be read meanwhile.
constexpr int kMostRounds = 64;
/// The same in time: rounds of a thousand schedules that make up for what they missed are long.
constexpr Millis kLongestTurn{4};

/// An intake needs some time to commit and to leave its group, also when no consumer is waited for.
constexpr Millis kShortestIntakeStop = std::chrono::seconds{2};
constexpr Millis kLongestIntakeStop = std::chrono::seconds{10};

Error of_setting(std::string_view key, Error error) {
  error.detail = fmt::format("{}: {}", key, error.detail);
  return error;
}

/// What a client reads when there are too many connections.
std::string refusal_in(ProtocolKind protocol) {
  if (protocol == ProtocolKind::kResp)
    return "-OVERLOADED there are too many connections; try again later\r\n";
  return "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nRetry-After: 1\r\n"
         "Connection: close\r\n\r\n";
}

}  // namespace

Server::Server(ServerOptions options) : options_(std::move(options)) {}

Server::~Server() {
  for (const Listening& each : listeners_) each.listener->close();
}

Result<std::unique_ptr<Server>> Server::open(ServerOptions options) {
  auto server = std::unique_ptr<Server>(new Server(std::move(options)));
  if (Status status = server->start(); !status.ok()) return status.error();
  return server;
}

Status Server::start() {
  started_ = net::Loop::now();
  options_.storage.journal.seed = random_seed();
  auto storage = Storage::open(options_.storage, started_, &loop_);
  if (!storage.ok()) {
    const bool is_disk = storage.error().op.starts_with("disk.");
    return is_disk ? of_setting("server.data", storage.error()) : storage.error();
  }
  storage_ = std::move(*storage);
  const Moment now = this->now();
  storage_->engine().set_wakeup([this] { loop_.wake(); });
  options_.queue.redis = redis_outlet();
  options_.queue.has_kafka = !options_.kafka_delivery.client.brokers.empty();
  queue_ = std::make_unique<Queue>(storage_->engine(), options_.queue, random_seed());

  loop_.sessions().set_limits(options_.answers);
  front_->access.replace(options_.tokens);
  set_facts();
  front_->served = options_.served;
  front_->tells_commands = options_.tells_commands;
  front_->turned_away = options_.turned_away;
  if (options_.tls) {
    auto tls = net::TlsContext::open(*options_.tls);
    if (!tls.ok()) return tls.error();
    tls_ = std::move(*tls);
  }
  front_->stopwatch = [] { return net::Loop::steady_now().time_since_epoch(); };
  if (Status status = start_webhooks(); !status.ok()) return status;
  if (Status status = start_deliveries(); !status.ok()) return status;
  if (Status status = start_queue(now); !status.ok()) return status.error();
  if (Status status = start_intakes(); !status.ok()) return status.error();
  start_resp(now);
  start_http();
  for (const ListenAt& where : options_.listen) {
    if (Status status = listen(where); !status.ok()) return status;
    (where.protocol == ProtocolKind::kResp ? front_->facts.resp : front_->facts.http) =
        listener(where.protocol).address();
  }
  return {};
}

void Server::set_facts() {
  api::ServerFacts& facts = front_->facts;
  facts.engine = options_.engine_name;
  facts.max_connections = options_.max_connections;
  facts.max_jobs = options_.queue.jobs;
  facts.max_memory_bytes = options_.queue.memory_bytes;
  if (options_.storage.engine != EngineKind::kJournal) return;
  const journal::JournalOptions& journal = options_.storage.journal;
  const bool in_intervals = journal.durability == journal::Durability::kInterval;
  facts.durability = in_intervals ? "interval" : "commit";
  if (in_intervals) facts.sync_interval = journal.sync_interval;
  facts.disk_reserve_bytes = options_.queue.disk_free_bytes;
}

void Server::start_resp(Moment now) {
  resp_endpoint_ = std::make_unique<resp::Endpoint>(
      resp::Endpoint{*queue_, [this] { return this->now(); }, std::string(kVersion), now,
                     [this] { return loop_.sessions().size(); }, 0, front_});
}

void Server::start_http() {
  http_endpoint_ = std::make_unique<http::Endpoint>(
      http::Endpoint{*queue_, [this] { return this->now(); }, std::string(kVersion), front_,
                     2 * options_.queue.limits.body_bytes + (size_t{64} << 10),
                     http::IdempotencyBook({options_.idempotency})});
  set_host_names(options_.host_names);
  http_endpoint_->process = [this] { return process_figures(); };
  http_endpoint_->metrics_topics = options_.metrics_topics;
  http_endpoint_->dialects = options_.dialects;
  http_endpoint_->webhooks = [this] { return webhooks_->figures(); };
  http_endpoint_->callbacks = [this](Moment now, size_t limit) { return webhooks_->report(now, limit); };
  http_endpoint_->redis = [this] { return storage_->redis_figures(); };
  http_endpoint_->ladder = [this] { return storage_->ladder_figures(); };
  http_endpoint_->redis_delivery = [this] { return redis_delivery_->figures(); };
  http_endpoint_->kafka_delivery = [this] { return kafka_delivery_->figures(); };
  http_endpoint_->kafka_intakes = [this] { return intakes_->figures(); };
}

net::MakeProtocol Server::speaker(ProtocolKind protocol) {
  const size_t body_bytes = options_.queue.limits.body_bytes;
  if (protocol == ProtocolKind::kHttp) {
    net::HttpLimits limits;
    limits.body_bytes = 2 * body_bytes + (size_t{16} << 20);  // room for a batch
    return [this, limits](net::Connection& connection) {
      return std::make_shared<http::Conversation>(*http_endpoint_, connection, limits);
    };
  }
  resp::CommandLimits limits;
  // A body that is a little too large is refused with an error that names its field; one that is far too
  // large is not read at all.
  limits.argument_bytes = 2 * body_bytes + (size_t{64} << 10);
  limits.command_bytes = 2 * limits.argument_bytes + (size_t{1} << 20);
  return [this, limits](net::Connection& connection) {
    return std::make_shared<resp::Conversation>(*resp_endpoint_, connection, limits);
  };
}

Status Server::listen(const ListenAt& where) {
  net::Listener::Options options;
  options.host = where.host;
  options.port = where.port;
  options.max_sessions = options_.max_connections;
  options.refusal = refusal_in(where.protocol);
  options.session = options_.session;
  options.tls = tls_;
  auto listener = net::Listener::open(loop_, std::move(options), speaker(where.protocol));
  if (!listener.ok()) return of_setting(fmt::format("server.{}", name_of(where.protocol)), listener.error());
  listeners_.push_back({where.protocol, std::move(*listener)});
  return {};
}

const net::Listener& Server::listener(ProtocolKind protocol) const {
  const auto found = std::find_if(listeners_.begin(), listeners_.end(),
                                  [&](const Listening& each) { return each.protocol == protocol; });
  return *found->listener;
}

void Server::set_host_names(std::vector<std::string> names) {
  for (const ListenAt& where : options_.listen) {
    if (where.protocol == ProtocolKind::kHttp && check_host_pattern(where.host).ok())
      names.push_back(where.host);
  }
  http_endpoint_->names = HostNames(names);
}

Status Server::start_webhooks() {
  const WebhookOptions& said = options_.webhook;
  webhook::CurlCallerOptions calls;
  auto guard = webhook::AddressGuard::create(said.allow, said.deny);
  if (!guard.ok()) return guard.error();
  calls.guard = std::move(*guard);
  calls.max_calls = std::max(1U, said.calls.in_flight);
  calls.default_timeout = said.calls.timeout;
  calls.user_agent = said.user_agent;
  calls.ca_file = said.ca_file;
  calls.skips_tls_check = said.skips_tls_check;
  calls.clock = [] {
    return std::chrono::duration_cast<std::chrono::microseconds>(net::Loop::steady_now().time_since_epoch());
  };
  auto caller = webhook::CurlCaller::open(std::move(calls));
  if (!caller.ok()) return caller.error();
  caller_ = std::move(*caller);
  caller_->set_wakeup([this] { loop_.wake(); });
  webhooks_ = std::make_unique<webhook::WebhookSink>(*queue_, *caller_, said.calls, random_seed());
  webhooks_->set_log(said.failed);
  webhooks_->set_breaker_log(said.breaker);
  queue_->set_callback_problem(
      [this](Moment now, std::string_view url) { return webhooks_->problem_of(now, url); });
  return {};
}

const net::redis::ClientOptions* Server::engine_redis() const {
  return options_.storage.engine == EngineKind::kRedis ? &options_.storage.redis.client : nullptr;
}

RedisOutlet Server::redis_outlet() const {
  // For every URL: a host has several names, so this may be the engine's own Redis.
  if (options_.storage.engine == EngineKind::kRedis) return {true, options_.storage.redis.prefix + ":"};
  return {!options_.redis_delivery.url.empty(), {}};
}

Status Server::start_deliveries() {
  auto opened = RedisDelivery::open(loop_, options_.redis_delivery, engine_redis(), random_seed());
  if (!opened.ok()) return opened.error();
  redis_delivery_ = std::move(*opened);
  options_.kafka_delivery.wakeup = [this] { loop_.wake(); };
  auto kafka = KafkaDelivery::open(options_.kafka_delivery);
  if (!kafka.ok()) return kafka.error();
  kafka_delivery_ = std::move(*kafka);
  deliveries_ = std::make_unique<delivery::DeliveryLoop>(*queue_, random_seed());
  deliveries_->add(*webhooks_);
  deliveries_->add(redis_delivery_->sink());
  deliveries_->add(kafka_delivery_->sink());
  deliveries_->set_stuck(options_.stuck);
  queue_->set_delivery_listener(deliveries_.get());
  return {};
}

Status Server::set_redis_delivery(RedisDeliveryOptions options) {
  if (Status status = redis_delivery_->change(options, engine_redis(), random_seed()); !status.ok())
    return status;
  options_.redis_delivery = std::move(options);
  queue_->set_redis_outlet(now(), redis_outlet());
  deliveries_->tell_stuck();
  return {};
}

Status Server::start_intakes() {
  auto opened =
      KafkaIntakes::open(*queue_, {options_.kafka_delivery.client, std::move(options_.kafka_intakes),
                                   options_.intakes_tell, [this] { loop_.wake(); }});
  if (!opened.ok()) return opened.error();
  intakes_ = std::move(*opened);
  return {};
}

void Server::set_kafka_intakes(KafkaIntakes::Wanted intakes) {
  intakes_->change(std::move(intakes), now(),
                   std::clamp(options_.grace, kShortestIntakeStop, kLongestIntakeStop));
}

Status Server::start_queue(Moment now) {
  const auto wait_until = [&](auto is_over) {
    while (!is_over()) {
      queue_->tick(now);
      queue_->poll(now);
      loop_.finish_turn();
      if (!is_over()) loop_.wait_until(net::Loop::now() + Millis{10});
    }
  };
  const auto wait_for = [&](auto ask) {
    std::optional<Status> answer;
    ask([&answer](Status status) { answer = std::move(status); });
    wait_until([&answer] { return answer.has_value(); });
    return *answer;
  };
  Status status = wait_for([&](auto reply) { queue_->start(now, std::move(reply)); });
  for (const auto& topic : options_.topics) {
    const std::string& name = topic.first;
    if (!status.ok()) break;
    const auto settings = wanted(name, topic.second);
    if (!settings) continue;
    status = wait_for([&](auto reply) { queue_->set_settings(now, name, *settings, std::move(reply)); });
  }
  if (status.ok()) {
    schedules_ = std::make_unique<ConfiguredSchedules>(
        *queue_, [this] { return this->now(); }, options_.schedules_tell);
    schedules_->set_all(std::move(options_.schedules));
    wait_until([this] { return schedules_->is_settled(); });
  }
  deliveries_->tell_stuck();
  return status;
}

std::optional<Settings> Server::wanted(const std::string& topic, const Settings& said) const {
  if (topic == kDefaultsName) return std::nullopt;  // defaults are configured, not stored
  Settings merged = overlay(queue_->settings(topic), said);
  return merged == queue_->settings(topic) ? std::nullopt : std::optional(std::move(merged));
}

void Server::set_topics(const std::map<std::string, Settings>& topics,
                        const std::function<void(const std::string& topic, const Error&)>& failed) {
  const Moment now = this->now();
  const auto defaults = topics.find(std::string(kDefaultsName));
  queue_->set_configured_defaults(now, defaults == topics.end() ? Settings{} : defaults->second);
  for (const auto& [name, said] : topics) {
    auto settings = wanted(name, said);
    if (!settings) continue;
    queue_->set_settings(now, name, std::move(*settings),
                         [failed, topic = std::string(name)](const Status& status) {
                           if (!status.ok()) failed(topic, status.error());
                         });
  }
}

Moment Server::to_local(Moment moment) const {
  return moment == kNever ? kNever : moment - storage_->clock_offset();
}

Moment Server::work() {
  const Moment begun = this->now();
  Moment now = begun;
  for (int round = 0; round < kMostRounds; ++round) {
    deliveries_->hear();
    now = this->now();  // read after hear(), so that no requested delay is too short
    const Moment next = std::min({queue_->tick(now), deliveries_->tick(now), intakes_->tick(now)});
    bool is_busy = queue_->poll(now);
    is_busy |= deliveries_->poll(now);
    is_busy |= intakes_->poll(now);
    if (!is_busy) return next;
    if (now - begun > kLongestTurn) break;
  }
  return now;
}

void Server::run() {
  Moment next = net::Loop::now();
  schedules_->look_for_others();
  while (!is_stopped_) {
    loop_.wait_until(next);
    if (stops_asked_.load(std::memory_order_relaxed) > stops_begun_) begin_stop();
    const Moment next_event = std::min(http_endpoint_->events.tick(now()), resp_endpoint_->feeds.tick(now()));
    do {
      next = std::min(work(), next_event);
    } while (loop_.finish_turn());
    next = to_local(next);
    storage_->look();
    redis_delivery_->look(net::Loop::steady_now());
    kafka_delivery_->look(net::Loop::steady_now());
    if (stop_report_ && intakes_->is_stopped()) is_stopped_ = true;
    if (options_.turned) next = std::min(next, options_.turned(net::Loop::now()));
  }
}

http::ProcessFigures Server::process_figures() const {
  http::ProcessFigures figures;
  figures.connections = loop_.sessions().size();
  for (const Listening& each : listeners_) figures.refused[each.protocol] += each.listener->refused();
  figures.started = started_;
  uint64_t all_pages = 0;
  uint64_t resident_pages = 0;
  std::ifstream("/proc/self/statm") >> all_pages >> resident_pages;
  figures.resident_bytes = resident_pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return figures;
}

Status Server::reload_tls() {
  if (!options_.tls) return {};
  auto tls = net::TlsContext::open(*options_.tls);
  if (!tls.ok()) return tls.error();
  tls_ = std::move(*tls);
  for (const Listening& each : listeners_) each.listener->set_tls(tls_);
  return {};
}

void Server::stop() {
  stops_asked_.fetch_add(1, std::memory_order_relaxed);
  loop_.wake();
}

void Server::begin_stop() {
  ++stops_begun_;
  if (stops_begun_ > 1) {
    is_stopped_ = true;  // the second stop does not wait: whatever was answered is durable
    return;
  }
  // The listeners stay open until the grace period is over: for acks of clients that reconnect, and for
  // /readyz, which reports that no jobs are accepted any more. The queue refuses new jobs.
  intakes_->stop(now(), std::clamp(options_.grace, kShortestIntakeStop, kLongestIntakeStop));
  deliveries_->stop(now(), options_.grace);
  queue_->stop(now(), options_.grace, [this](const Result<StopReport>& report) { stop_report_ = report; });
}

void ConfiguredSchedules::apply(Wanted wanted) {
  set_all(std::move(wanted));
  look_for_others();
}

void ConfiguredSchedules::set_all(Wanted wanted) {
  wanted_ = std::move(wanted);
  ++generation_;
  unanswered_ = 0;
  for (const auto& each : wanted_) {
    told_.erase(each.first);
    set(each.first);
  }
}

void ConfiguredSchedules::set(const std::string& name) {
  ++unanswered_;
  const auto settled = [this, name, alive = std::weak_ptr(alive_),
                        generation = generation_](const Error* error) {
    if (alive.expired() || generation != generation_) return;
    --unanswered_;
    if (error == nullptr) return;
    tell_(true, fmt::format("schedule {} is not as configured, and is tried again at the next reload: {}",
                            quote(name), error->detail));
  };
  queue_.get_schedule(
      now_(), name, kAllTopics,
      [this, name, settled, alive = std::weak_ptr(alive_),
       generation = generation_](const Result<std::optional<ScheduleView>>& found) {
        if (alive.expired() || generation != generation_) return;
        if (!found.ok()) return settled(&found.error());
        const bool is_of_client = found->has_value() && !(*found)->spec.from_configuration;
        Arena texts;
        queue_.set_schedule(
            now_(), wanted_.at(name).spec(name, texts), kAllTopics,
            [this, name, settled, is_of_client, alive](const Result<ScheduleReceipt>& receipt) {
              if (receipt.ok() && is_of_client && !alive.expired())
                tell_(false, fmt::format("schedule {} was set by a client: the configuration replaces it",
                                         quote(name)));
              settled(receipt.ok() ? nullptr : &receipt.error());
            });
      });
}

void ConfiguredSchedules::look_through(std::string after, Broken broken) {
  queue_.list_schedules(
      now_(), {.after = after, .limit = Limits::kPageJobs}, kAllTopics,
      [this, alive = std::weak_ptr(alive_), generation = generation_,
       broken = std::move(broken)](const Result<ScheduleViews>& page) mutable {
        // After an error the next reload looks again.
        if (alive.expired() || generation != generation_ || !page.ok()) return;
        for (const ScheduleView& seen : page->schedules) {
          const std::string name{seen.spec.name};
          if (!seen.problem.empty() && ++broken.count == 1)
            broken.first = fmt::format("{} makes no jobs: {}", quote(name), seen.problem);
          if (!seen.spec.from_configuration || wanted_.contains(name) || !told_.insert(name).second) continue;
          tell_(false, fmt::format("schedule {} is no longer in the configuration; it is left as it is: "
                                   "delayq schedule remove {}",
                                   quote(name), name));
        }
        if (!page->cursor.empty()) return look_through(page->cursor, std::move(broken));
        if (broken.count == 1) tell_(true, "schedule " + broken.first);
        if (broken.count > 1)
          tell_(true, fmt::format("{} schedules make no jobs; schedule {}", broken.count, broken.first));
      });
}

}  // namespace delayq
