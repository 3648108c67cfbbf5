#include "app/preflight.h"

#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>

#include "app/redis_storage.h"
#include "app/storage.h"
#include "engine/memory/memory_engine.h"
#include "json/writer.h"
#include "net/listener.h"
#include "net/tls.h"
#include "queue/queue.h"

namespace delayq {

namespace {

namespace fs = std::filesystem;
using Errors = std::vector<std::string>;

std::string told(int problem) { return std::generic_category().message(problem); }

/// Why nothing can be made in this directory, which need not be there yet; nothing when it can.
std::optional<std::string> why_not_below(fs::path directory) {
  if (directory.empty()) directory = ".";
  std::error_code problem;
  // What is missing is made, in the first directory on the way that is there.
  while (!fs::exists(fs::symlink_status(directory, problem)) && directory.has_parent_path() &&
         directory != directory.parent_path()) {
    directory = directory.parent_path();
  }
  if (!fs::exists(directory, problem)) directory = ".";
  if (!fs::is_directory(directory, problem))
    return fmt::format("{} is not a directory: choose another place", directory.string());
  if (::access(directory.c_str(), W_OK | X_OK) == 0) return std::nullopt;
  return fmt::format("{}: {}: let user {} write there, or choose another place", directory.string(),
                     told(errno), ::geteuid());
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
                                 told(errno), ::geteuid()));
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

/// The text behind "tls.", which is what the readers of these files call their settings.
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
  if (config.server.engine != Config::Engine::kRedis) return;
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
  for (const auto& [key, address] :
       {std::pair{"server.http", &config.server.http}, {"server.resp", &config.server.resp}}) {
    const Status status = net::Listener::check(address->host, address->port);
    if (!status.ok()) errors.push_back(fmt::format("{}: {}", key, status.error().detail));
  }
}

/// As Server has it.
RedisOutlet redis_outlet(const Config& config) {
  if (config.server.engine == Config::Engine::kRedis) return {true, config.redis.prefix + ":"};
  return {!config.redis_delivery.url.empty(), {}};
}

/// As a queue takes them, which knows the rules.
void check_topics(const Config& config, Errors& errors) {
  MemoryEngine engine;
  QueueConfig said = queue_config(config);
  said.redis = redis_outlet(config);
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
  check_topics(config, errors);
  return errors;
}

}  // namespace delayq
