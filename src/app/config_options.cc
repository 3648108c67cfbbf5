#include "app/config_options.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "app/kafka.h"
#include "app/storage.h"
#include "delivery/webhook/address_guard.h"
#include "engine/memory/memory_engine.h"
#include "json/writer.h"
#include "net/listener.h"
#include "net/loop.h"
#include "net/redis/options.h"
#include "net/tls.h"
#include "ops/config.h"
#include "ops/seed_config.h"
#include "queue/queue.h"

namespace delayq {

namespace {

/// The file that DelayQ reads by default.
constexpr const char* kSearched = "conf/delayq.conf";

std::vector<std::pair<std::string, std::string>> environment() {
  std::vector<std::pair<std::string, std::string>> variables;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view text = *each;
    const size_t sign = std::min(text.find('='), text.size());
    variables.emplace_back(text.substr(0, sign), text.substr(std::min(sign + 1, text.size())));
  }
  return variables;
}

}  // namespace

void ConfigOptions::add_to(CLI::App& command) {
  command.add_option(
      "-c,--config", file,
      "Configuration file: TOML, or the INI of go-delay-queue, delay_queue_callback or DelayQ; "
      "conf/delayq.conf when there is one and this is not given");
  said.reserve(16);  // CLI11 keeps pointers to the elements
  const auto add = [&](const char* flags, const char* key, const char* help) {
    said.emplace_back(key, "");
    command.add_option(flags, said.back().second, help);
  };
  add("-t,--engine", "server.engine", "Where jobs are stored: journal (default), memory, redis or kafka");
  add("--http", "server.http", "Address of the HTTP API, default 127.0.0.1:9277; port 0: any free one");
  add("--resp", "server.resp", "Address for Redis clients, default 127.0.0.1:9278; port 0: any free one");
  add("--redis", "redis.url", "Where the redis engine's Redis is, default redis://127.0.0.1:6379");
  add("--data", "server.data", "The journal's directory, default ./data");
  add("--durability", "journal.durability",
      "commit: a reply means that the change is on disk (default); interval: it will be soon");
  add("--log-level", "log.level", "debug, info, warn, error or off");
  add("--pid-file", "server.pid_file", "A file with the process id, locked while the server runs");
  command.add_option("--set", assignments, "Any other key of the configuration: --set limits.body=4MiB");
}

bool ConfigOptions::search() {
  if (!file.empty() || ::access(kSearched, R_OK) != 0) return false;
  file = kSearched;
  return true;
}

ConfigOutcome read_config(const ConfigOptions& options) {
  ConfigOptions found = options;
  const bool was_searched = found.search();
  ConfigOutcome outcome = found.file.empty() ? ConfigOutcome{} : load_config(found.file);
  outcome.file = found.file;
  if (was_searched)
    outcome.warnings.insert(outcome.warnings.begin(),
                            fmt::format("reading {}: it exists, and -c names no other file", found.file));
  std::vector<std::string>& errors = outcome.errors;
  const auto variable = [](const char* name) { return std::getenv(name); };
  for (std::string& error : apply_environment(outcome.config, variable, &outcome.said)) {
    errors.push_back(std::move(error));
  }
  for (std::string& error : check_environment(environment())) errors.push_back(std::move(error));
  const auto set = [&](const std::string& key, const std::string& value) {
    const Status status = set_option(outcome.config, key, value, &outcome.said);
    if (!status.ok()) errors.push_back(status.error().detail);
  };
  for (const auto& [key, value] : options.said) {
    if (!value.empty()) set(key, value);
  }
  for (const std::string& assignment : options.assignments) {
    const size_t sign = assignment.find('=');
    if (sign == std::string::npos) {
      errors.push_back(fmt::format("--set {}: expected KEY=VALUE", assignment));
    } else {
      set(assignment.substr(0, sign), assignment.substr(sign + 1));
    }
  }
  keep_to_this_machine(outcome);
  tell_engine(outcome);
  for (std::string& error : check_config(outcome.config, errors.empty())) errors.push_back(std::move(error));
  for (std::string& error : check_schedules(outcome.config, net::Loop::now()))
    errors.push_back(std::move(error));
  for (std::string& error : check_intakes(outcome.config)) errors.push_back(std::move(error));
  for (std::string& error : check_redis(outcome.config.redis)) errors.push_back(std::move(error));
  const Config::Webhook& webhook = outcome.config.webhook;
  const auto guard = webhook::AddressGuard::create(webhook.allow, webhook.deny);
  if (!guard.ok()) errors.push_back("webhook." + guard.error().detail);
  const std::string& url = outcome.config.redis_delivery.url;
  const auto where = net::redis::parse_url(url);
  if (!url.empty() && !where.ok()) errors.push_back("redis_delivery.url: " + where.error().detail);
  for (std::string& error : errors) error = with_origin(std::move(error), outcome.said);
  return outcome;
}

// ---- whether a server could start

namespace {

namespace fs = std::filesystem;
using Errors = std::vector<std::string>;

std::string message_of(int problem) { return std::generic_category().message(problem); }

/// Why files cannot be created in this directory, which need not exist yet; nothing when they can.
std::optional<std::string> why_not_below(fs::path directory) {
  if (directory.empty()) directory = ".";
  std::error_code problem;
  // Missing directories will be created, so the nearest existing one must be writable.
  while (!fs::exists(fs::symlink_status(directory, problem)) && directory.has_parent_path() &&
         directory != directory.parent_path()) {
    directory = directory.parent_path();
  }
  if (!fs::exists(directory, problem)) directory = ".";
  if (!fs::is_directory(directory, problem))
    return fmt::format("{} is not a directory: choose another place", directory.string());
  if (::access(directory.c_str(), W_OK | X_OK) == 0) return std::nullopt;
  return fmt::format("{}: {}: let user {} write there, or choose another place", directory.string(),
                     message_of(errno), ::geteuid());
}

void check_file(std::string_view key, const std::string& path, Errors& errors) {
  if (path.empty()) return;
  std::error_code problem;
  const fs::file_status status = fs::status(path, problem);
  if (fs::is_directory(status)) {
    errors.push_back(fmt::format("{}: {} is a directory: name a file in it", key, path));
  } else if (fs::exists(status)) {
    if (::access(path.c_str(), W_OK) == 0) return;
    errors.push_back(fmt::format("{}: {}: {}: let user {} write to it, or choose another file", key, path,
                                 message_of(errno), ::geteuid()));
  } else if (const auto why = why_not_below(fs::path(path).parent_path())) {
    errors.push_back(fmt::format("{}: {} cannot be made: {}", key, path, *why));
  }
}

void check_data(const Config& config, Errors& errors) {
  if (config.server.engine != Config::Engine::kJournal) return;
  if (const Status status = check_not_partial(config.server.data); !status.ok()) {
    errors.push_back("server.data: " + status.error().detail);
  } else if (const auto why = why_not_below(config.server.data)) {
    errors.push_back(fmt::format("server.data: {}", *why));
  }
}

/// Replaces "tls.", which the readers of these files put before the setting, by the section.
void add_tls_error(std::string_view section, const Error& error, Errors& errors) {
  constexpr std::string_view kTheirs = "tls.";
  std::string_view detail = error.detail;
  if (detail.starts_with(kTheirs)) detail.remove_prefix(kTheirs.size());
  errors.push_back(fmt::format("{}.{}", section, detail));
}

void check_certificates(const Config& config, Errors& errors) {
  if (!config.tls.certificate.empty()) {
    const auto tls = net::TlsContext::open({config.tls.certificate, config.tls.key, config.tls.client_ca});
    if (!tls.ok()) add_tls_error("tls", tls.error(), errors);
  }
  if (!config.webhook.ca_file.empty()) {
    const auto tls = net::TlsClient::open({config.webhook.ca_file, {}, {}, false});
    if (!tls.ok()) add_tls_error("webhook", tls.error(), errors);
  }
}

void check_redis_files(const Config& config, Errors& errors) {
  if (!config.server.uses_redis()) return;
  const auto redis = redis_storage_options(config.redis);
  if (!redis.ok()) {
    errors.push_back(redis.error().detail);
    return;
  }
  const auto& said = redis->client.tls;
  if (!said.is_on) return;
  const auto tls = net::TlsClient::open({said.ca_file, said.certificate, said.key, said.skips_check});
  if (!tls.ok()) add_tls_error("redis", tls.error(), errors);
}

void check_addresses(const Config& config, Errors& errors) {
  for (const ProtocolKind kind : kProtocols) {
    const Address& address = config.server.addresses[kind];
    const Status status = net::Listener::check(address.host, address.port);
    if (!status.ok()) errors.push_back(fmt::format("server.{}: {}", name_of(kind), status.error().detail));
  }
}

/// The same as in Server.
RedisOutlet redis_outlet(const Config& config) {
  if (config.server.uses_redis()) return {true, config.redis.prefix + ":"};
  return {!config.redis_delivery.url.empty(), {}};
}

/// Sets them in a queue, which knows the rules.
void check_topics(const Config& config, Errors& errors) {
  MemoryEngine engine;
  QueueConfig said = queue_config(config);
  said.redis = redis_outlet(config);
  said.has_kafka = !config.kafka.brokers.empty();
  Queue queue(engine, said, 0);
  constexpr Moment kNow{};
  queue.start(kNow, [](const Status&) {});
  for (const auto& [name, settings] : config.topics) {
    if (name == kDefaultsName) continue;
    queue.set_settings(kNow, name, settings, [&errors, &topic = name](const Status& status) {
      if (status.ok()) return;
      std::string quoted;
      json::append_string(quoted, topic);
      errors.push_back(fmt::format("topics.{}: {}", quoted, status.error().detail));
    });
  }
  while (queue.poll(kNow)) {
  }
}

}  // namespace

std::vector<std::string> check_start(const Config& config) {
  Errors errors;
  check_addresses(config, errors);
  check_data(config, errors);
  check_file("server.pid_file", config.server.pid_file, errors);
  check_file("log.file", config.log.file, errors);
  check_file("log.access", config.log.access, errors);
  check_certificates(config, errors);
  check_redis_files(config, errors);
  if (std::string error = check_kafka(config.kafka); !error.empty()) errors.push_back(std::move(error));
  if (config.server.engine == Config::Engine::kKafka && config.kafka.brokers.empty())
    errors.emplace_back("server.engine: kafka needs kafka.brokers = \"HOST:PORT\", and a Redis (redis.url)");
  check_topics(config, errors);
  return errors;
}

ConfigOutcome read_config_to_serve(const ConfigOptions& options) {
  ConfigOutcome outcome = read_config(options);
  if (!outcome.ok()) return outcome;  // the same errors would be reported again in other words
  for (std::string& error : check_start(outcome.config))
    outcome.errors.push_back(with_origin(std::move(error), outcome.said));
  return outcome;
}

}  // namespace delayq
