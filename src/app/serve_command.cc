#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "api/compat/compat.h"
#include "api/http/dashboard.h"
#include "app/commands.h"
#include "app/config_options.h"
#include "app/server.h"
#include "app/storage.h"
#include "app/version.h"
#include "core/moment.h"
#include "core/text.h"
#include "ops/access_log.h"
#include "ops/log.h"
#include "ops/process.h"

namespace delayq {

namespace {

/// For closing files and ending threads, after everything is flushed or given up. A disk that hangs would
/// hold up the process for ever.
constexpr Millis kLongestExit = std::chrono::seconds{10};

struct ServeOptions {
  ConfigOptions config;
  bool in_background = false;
};

webhook::WebhookSinkOptions call_options(const Config::Webhook& said) {
  webhook::WebhookSinkOptions options;
  options.connect_timeout = said.connect_timeout;
  options.timeout = said.timeout;
  options.in_flight = said.in_flight;
  options.hosts.per_host = said.per_host;
  options.hosts.failures = said.breaker_failures;
  options.hosts.cooldown = said.breaker_cooldown;
  options.secrets = said.secrets;
  return options;
}

/// Logs nothing of the job's body, of the answer, or of the URL's path, which may be secret.
void log_failed_call(const webhook::FailedCall& call) {
  const auto took = std::chrono::duration_cast<Millis>(call.result.took).count();
  const bool is_unbelieved = call.result.error == webhook::CallError::kTls;
  const std::string what =
      call.result.is_answered()
          ? fmt::format("status {}", call.result.status)
          : fmt::format("{}{}", name_of(call.result.error),
                        is_unbelieved ? " (webhook.ca_file sets the trusted authorities)" : "");
  spdlog::warn("webhook: topic {} job {} to {}: {} in {} ms, attempt {}{}", call.topic, quote(call.id),
               call.host, what, took, call.attempt, call.dead ? ", no more wanted" : "");
}

void log_breaker(const std::string& host, bool is_open, const webhook::HostView& view) {
  if (!is_open) return spdlog::info("webhook: {} answers again: its jobs are called as before", host);
  spdlog::warn(
      "webhook: {} is not called until {}: its last {} calls failed. Its jobs wait; no attempts are "
      "counted meanwhile",
      host, view.open_until ? format_moment(*view.open_until) : "the next try", view.failures);
}

WebhookOptions webhook_options(const Config::Webhook& said) {
  WebhookOptions options;
  options.calls = call_options(said);
  options.allow = said.allow;
  options.deny = said.deny;
  options.ca_file = said.ca_file;
  options.skips_tls_check = said.insecure;
  options.user_agent = said.user_agent;
  options.failed = log_failed_call;
  options.breaker = log_breaker;
  return options;
}

EngineKind engine_kind(Config::Engine engine) {
  switch (engine) {
    case Config::Engine::kMemory:
      return EngineKind::kMemory;
    case Config::Engine::kRedis:
    case Config::Engine::kKafka:
      return EngineKind::kRedis;
    case Config::Engine::kJournal:
      break;
  }
  return EngineKind::kJournal;
}

void log_storage(bool is_bad, std::string_view what) {
  spdlog::log(is_bad ? spdlog::level::warn : spdlog::level::info, "{}", what);
}

void log_stuck(std::string_view topic, const Error& why) {
  spdlog::warn("topic {}: its jobs wait: {}", quote(topic), why.detail);
}

RedisDeliveryOptions redis_delivery_options(const Config::RedisDelivery& said) {
  RedisDeliveryOptions options;
  options.url = said.url;
  options.timeout = said.timeout;
  options.in_flight = said.in_flight;
  options.tell = log_storage;
  return options;
}

KafkaDeliveryOptions kafka_delivery_options(const Config::Kafka& said) {
  KafkaDeliveryOptions options;
  options.client = kafka_client_options(said);
  options.timeout = said.timeout;
  options.in_flight = said.in_flight;
  options.tell = log_storage;
  return options;
}

ColdStorageOptions cold_options(const Config::Kafka& said, uint64_t body_bytes) {
  ColdStorageOptions options;
  options.client = kafka_client_options(said);
  options.timeout = said.timeout;
  options.ladder.prefix = said.prefix;
  options.ladder.horizon = said.horizon;
  options.ladder.steps = said.ladder;
  options.ladder.partitions = static_cast<int32_t>(said.partitions);
  options.ladder.replication = said.replication == 0 ? -1 : static_cast<int32_t>(said.replication);
  options.ladder.outage = said.outage;
  options.ladder.partition_groups = said.partition_groups;
  // The record has the whole job.
  options.ladder.record_bytes = body_bytes + (uint64_t{256} << 10);
  return options;
}

Result<ServerOptions> server_options(const Config& config) {
  static constexpr std::array<std::string_view, 4> kEngines{"journal", "memory", "redis", "kafka"};
  ServerOptions options;
  options.engine_name = kEngines[static_cast<size_t>(config.server.engine)];
  options.storage.engine = engine_kind(config.server.engine);
  options.storage.tell = log_storage;
  if (options.storage.engine == EngineKind::kRedis) {
    auto redis = redis_storage_options(config.redis);
    if (!redis.ok()) return redis.error();
    options.storage.redis = std::move(*redis);
    if (config.server.engine == Config::Engine::kKafka)
      options.storage.redis.cold = cold_options(config.kafka, config.limits.body_bytes);
  }
  options.storage.directory = config.server.data;
  options.storage.backups = config.server.backups;
  options.storage.journal.segment_bytes = config.journal.segment_bytes;
  options.storage.journal.disk_reserve = config.journal.disk_reserve;
  options.storage.journal.sync_interval = config.journal.interval;
  options.storage.journal.durability = config.journal.durability == Config::Durability::kInterval
                                           ? journal::Durability::kInterval
                                           : journal::Durability::kCommit;
  options.queue = queue_config(config);
  options.webhook = webhook_options(config.webhook);
  options.redis_delivery = redis_delivery_options(config.redis_delivery);
  options.kafka_delivery = kafka_delivery_options(config.kafka);
  options.stuck = log_stuck;
  options.topics = config.topics;
  options.schedules = config.schedules;
  options.schedules_tell = log_storage;
  options.kafka_intakes = config.kafka_intakes;
  options.intakes_tell = log_storage;
  for (const ProtocolKind kind : kProtocols) {
    const Address& address = config.server.addresses[kind];
    options.listen.push_back({kind, address.host, address.port});
  }
  options.host_names = config.server.hosts;
  options.max_connections = config.server.max_connections;
  options.grace = config.server.grace;
  options.tokens = config.tokens;
  options.idempotency = config.server.idempotency;
  options.metrics_topics = config.limits.metrics_topics;
  options.session.request = config.server.request_timeout;
  options.session.stall = config.server.write_timeout;
  options.session.stranger = config.server.first_request_timeout;
  options.answers = {config.limits.unread_bytes, config.limits.unread_total_bytes};
  if (config.compat.go_delay_queue) options.dialects.push_back(&compat::go_delay_queue());
  if (config.compat.callback) options.dialects.push_back(&compat::callback());
  if (config.compat.delayq) options.dialects.push_back(&compat::delayq());
  if (config.server.dashboard)
    options.dialects.insert(options.dialects.end(), http::dashboard().begin(), http::dashboard().end());
  if (!config.tls.certificate.empty())
    options.tls = net::TlsFiles{config.tls.certificate, config.tls.key, config.tls.client_ca};
  return options;
}

/// Each connection needs a descriptor, and the usual limit is low.
void allow_many_descriptors() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

int serve_failed(const Error& error) {
  std::cerr << to_string(in_verb("delayq serve", error)) << "\n";
  return traits_of(error.code).exit_code;
}

/// Empty if nothing is logged.
std::function<void(const Served&)> request_log(AccessLog* access, Millis slow) {
  if (access == nullptr && slow == Millis::zero()) return {};
  return [access, slow](const Served& served) {
    if (access != nullptr) access->note(served);
    if (const std::string warning = slow_warning(served, slow); !warning.empty()) spdlog::warn(warning);
  };
}

void greet(Server& server, const Config& config, bool in_background) {
  const bool is_encrypted = !config.tls.certificate.empty();
  const std::string client = fmt::format("redis-cli{} -p {}", is_encrypted ? " --tls" : "",
                                         server.listener(ProtocolKind::kResp).port());
  const std::string url = fmt::format("{}://{}/", is_encrypted ? "https" : "http",
                                      server.listener(ProtocolKind::kHttp).address());
  std::cout << fmt::format("delayq {} is ready, {}.\n", kVersion, server.storage().describe())
            << (config.server.dashboard ? fmt::format("See it: {}\n", url) : "")
            << fmt::format("Try it: {0} PUSH order 5s '{{\"uid\":1}}'   then: {0} POP order WAIT 10s\n",
                           client)
            << fmt::format(
                   "Or:     curl {}v1/topics/order/jobs -d '{{\"body\": {{\"uid\": 1}}, \"delay\": "
                   "\"5s\"}}'\n",
                   url)
            << (config.tokens.empty()
                    ? ""
                    : "Everybody needs a token: -a TOKEN, or -H 'Authorization: Bearer TOKEN'.\n")
            << (in_background ? fmt::format("kill {} stops it.\n", ::getpid()) : "Ctrl-C stops it.\n")
            << std::flush;
}

std::chrono::microseconds since_boot() {
  return std::chrono::duration_cast<std::chrono::microseconds>(net::Loop::steady_now().time_since_epoch());
}

/// Whether it was started from a terminal that has since been closed. That sends SIGHUP, too.
bool has_lost_terminal(bool had_one) { return had_one && ::isatty(STDIN_FILENO) == 0; }

/// SIGHUP: applies the settings that can be changed at run time. A configuration with errors changes nothing.
void reload(const ConfigOptions& options, Server& server, AccessLog* access) {
  spdlog::info(
      "SIGHUP: logs, tokens, server.hosts, certificates, topics, schedules, intakes, and how jobs are called "
      "back or written to Redis are read again");
  if (const Status status = reopen_log(); !status.ok()) spdlog::error("{}", status.error().detail);
  if (access != nullptr) access->reopen();
  ConfigOutcome outcome = read_config(options);
  // A file that is being written, or was truncated, must not open the server to every client.
  if (outcome.ok() && outcome.config.tokens.empty() && !server.is_open())
    outcome.errors.emplace_back(
        "it has no [[tokens]] any more, so every client could do everything; to serve without tokens, "
        "restart");
  for (const std::string& error : outcome.errors)
    spdlog::error("the configuration stays as it was: {}", error);
  if (outcome.ok()) {
    server.set_tokens(std::move(outcome.config.tokens));
    server.set_host_names(std::move(outcome.config.server.hosts));
    server.set_calls(call_options(outcome.config.webhook));
    // Before the topics, which may need it.
    const Status status = server.set_redis_delivery(redis_delivery_options(outcome.config.redis_delivery));
    if (!status.ok()) spdlog::error("redis_delivery stays as it was: {}", status.error().detail);
    server.set_topics(outcome.config.topics, [](const std::string& topic, const Error& error) {
      spdlog::error("topic {} stays as it was: {}", quote(topic), error.detail);
    });
    server.set_schedules(std::move(outcome.config.schedules));
    server.set_kafka_intakes(std::move(outcome.config.kafka_intakes));
  }
  if (const Status status = server.reload_tls(); !status.ok())
    spdlog::error("the certificates stay as they were: {}", status.error().detail);
}

/// Signals that arrive before the loop runs, or after it, must not kill the process in the middle of its
/// work: a stop is already being done, and there is nothing left to reload. Neither must SIGPIPE, which is
/// sent when the reader of the log is gone.
void ignore_signals(std::initializer_list<int> numbers) {
  for (const int number : numbers) std::signal(number, SIG_IGN);
}

/// The objects around a server, for as long as it runs.
struct Surroundings {
  Status open(const Config& config, bool in_background);

  std::unique_ptr<PidFile> pid_file;
  std::unique_ptr<AccessLog> access;
  RefusalLog refusals;
  ServiceManager manager{[](const char* name) { return std::getenv(name); }};
};

Status Surroundings::open(const Config& config, bool in_background) {
  if (!config.server.pid_file.empty()) {
    auto taken = PidFile::take(config.server.pid_file);
    if (!taken.ok()) return taken.error();
    pid_file = std::move(*taken);
  }
  if (Status status = start_log(config.log, in_background); !status.ok()) return status;
  if (!config.log.access.empty()) {
    auto opened = AccessLog::open(config.log);
    if (!opened.ok()) return opened.error();
    access = std::move(*opened);
  }
  return {};
}

std::string_view reason_to_stop(int signal) {
  if (signal == SIGHUP) return "the terminal was closed";
  return signal == SIGINT ? "SIGINT" : "SIGTERM";
}

std::string_view where_jobs_are(Config::Engine engine) {
  switch (engine) {
    case Config::Engine::kMemory:
      return "gone: the jobs were in memory";
    case Config::Engine::kRedis:
      return "in Redis";
    case Config::Engine::kKafka:
      return "in Redis and Kafka";
    case Config::Engine::kJournal:
      break;
  }
  return "on disk";
}

/// Logs what the stop gave up, and what that means for the jobs. Returns the exit code.
int log_stop(const std::optional<Result<StopReport>>& report, const Config& config) {
  const std::string_view where = where_jobs_are(config.server.engine);
  if (!report) {
    spdlog::info(
        "stopped at once, as the second signal asks; everything that was answered is {}; jobs that are with "
        "consumers are handed out again when their leases run out",
        where);
    return EXIT_SUCCESS;
  }
  if (report->ok()) {
    if (const uint64_t left = (*report)->leases_left; left > 0) {
      spdlog::warn(
          "{} jobs were still with consumers when the grace period ended; each is handed out again "
          "when its lease runs out, as a retry",
          left);
    }
    spdlog::info("stopped; everything that was answered is {}", where);
    return EXIT_SUCCESS;
  }
  const bool may_lose_interval = config.server.engine == Config::Engine::kJournal &&
                                 config.journal.durability == Config::Durability::kInterval;
  spdlog::error(
      "stopped without a flush, which was given up: {}. Everything that was answered is {}{}. Commands that "
      "got no answer may not be stored: jobs of such pushes have to be pushed again, and jobs of such acks "
      "are handed out again",
      report->error().detail, where,
      may_lose_interval ? ", of the last journal.interval only as long as the machine has power" : "");
  return traits_of(report->error().code).exit_code;
}

/// Repeats in the log what was written to standard error about a file of another system.
void log_file(const ServeOptions& said, const ConfigOutcome& outcome) {
  if (outcome.form.empty()) return;
  spdlog::info("{} is read as a file of {}", outcome.file, outcome.form);
  const bool is_told = outcome.config.log.file.empty() && !said.in_background;  // the log is standard error
  if (is_told) return;
  for (const std::string& warning : outcome.warnings) spdlog::warn("{}", warning);
}

/// Serves until it is stopped. `tell_ready` is called when it is ready.
int serve(const ServeOptions& said, const ConfigOutcome& outcome, const std::function<void()>& tell_ready) {
  const Config& config = outcome.config;
  const bool in_background = said.in_background;
  // Declared first, so that it covers the destruction of all others.
  std::optional<ExitDeadline> exit_deadline;
  ignore_signals({SIGHUP, SIGPIPE});
  allow_many_descriptors();
  Surroundings around;
  if (Status status = around.open(config, in_background); !status.ok()) return serve_failed(status.error());
  log_file(said, outcome);
  auto server_said = server_options(config);
  if (!server_said.ok()) return serve_failed(server_said.error());
  ServerOptions options = std::move(*server_said);
  options.served = request_log(around.access.get(), config.log.slow);
  options.tells_commands = around.access != nullptr;
  options.turned_away = [&around](const Served& served) { around.refusals.note(served); };
  options.turned = [&around](Moment now) { return around.manager.turned(now); };
  auto opened = Server::open(std::move(options));
  if (!opened.ok()) return serve_failed(opened.error());
  Server& server = **opened;
  const std::string status =
      fmt::format("delayq {} listens on {} (HTTP) and {} (RESP), {}", kVersion,
                  server.listener(ProtocolKind::kHttp).address(),
                  server.listener(ProtocolKind::kResp).address(), server.storage().describe());
  {
    bool is_stopping = false;
    const bool had_terminal = !in_background && ::isatty(STDIN_FILENO) != 0;
    const net::Signals signals(server.loop(), {SIGTERM, SIGINT, SIGHUP}, [&](int number) {
      if (number == SIGHUP && !has_lost_terminal(had_terminal)) {
        if (!is_stopping) around.manager.reloading(since_boot());
        reload(said.config, server, around.access.get());
        if (!is_stopping) around.manager.ready(status);
        return;
      }
      is_stopping = true;
      spdlog::info("stopping: {}", reason_to_stop(number));
      around.manager.stopping(config.server.grace);
      server.stop();
    });
    spdlog::info("{}", status);
    if (config.tokens.empty() && config.server.hosts.empty() &&
        !is_loopback(config.server.addresses[ProtocolKind::kHttp]))
      spdlog::warn(
          "HTTP requests that name this server, and not its address, are refused: server.hosts is empty");
    greet(server, config, in_background);
    around.manager.ready(status);
    tell_ready();
    server.run();
  }
  ignore_signals({SIGTERM, SIGINT, SIGHUP});
  const int exit_code = log_stop(server.stop_report(), config);
  exit_deadline.emplace(kLongestExit, exit_code, [] {
    spdlog::error(
        "ended without waiting any longer for threads that hang: in a disk, or in a name's resolution");
  });
  return exit_code;
}

int run(const ServeOptions& options) {
  const ConfigOutcome outcome = read_config_to_serve(options.config);
  for (const std::string& warning : outcome.warnings) std::cerr << "warning: " << warning << "\n";
  for (const std::string& error : outcome.errors) std::cerr << error << "\n";
  if (!outcome.ok()) return traits_of(ErrorCode::kInvalid).exit_code;
  if (!options.in_background) return serve(options, outcome, [] {});
  return run_in_background([&](const auto& tell_ready) { return serve(options, outcome, tell_ready); });
}

}  // namespace

void add_serve_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ServeOptions>();
  CLI::App* serve =
      app.add_subcommand("serve", "Run the server (this is what delayq does without a command)");
  options->config.add_to(*serve);
  serve->add_flag("-d,--daemon", options->in_background,
                  "Run in the background; returns when the server is ready, or with what is wrong");
  serve->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace delayq
