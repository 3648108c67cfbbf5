#include "app/config_options.h"

#include <algorithm>
#include <cstdlib>
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "app/preflight.h"
#include "app/redis_storage.h"
#include "delivery/webhook/address_guard.h"
#include "net/redis/options.h"
#include "ops/config_check.h"
#include "ops/seed_config.h"

namespace delayq {

namespace {

/// Where DelayQ looks when it is told no file.
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
  said.reserve(16);  // what CLI11 points to must stay where it is
  const auto add = [&](const char* flags, const char* key, const char* help) {
    said.emplace_back(key, "");
    command.add_option(flags, said.back().second, help);
  };
  add("-t,--engine", "server.engine", "Where jobs wait: journal (default), memory or redis");
  add("--http", "server.http", "Address of the HTTP API, default 127.0.0.1:9277; port 0: any free one");
  add("--resp", "server.resp", "Address for Redis clients, default 127.0.0.1:9278; port 0: any free one");
  add("--redis", "redis.url", "Where the redis engine's Redis is, default redis://127.0.0.1:6379");
  add("--data", "server.data", "The journal's directory, default ./data");
  add("--durability", "journal.durability",
      "commit: a reply means it is on disk (default); interval: it will be soon");
  add("--log-level", "log.level", "debug, info, warn, error or off");
  add("--pid-file", "server.pid_file", "A file with the process's number, held while the server runs");
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
    outcome.warnings.insert(
        outcome.warnings.begin(),
        fmt::format("{} is read, since there is one and -c names no other file", found.file));
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

ConfigOutcome read_config_to_serve(const ConfigOptions& options) {
  ConfigOutcome outcome = read_config(options);
  if (!outcome.ok()) return outcome;  // what is wrong there would be told again in other words
  for (std::string& error : check_start(outcome.config))
    outcome.errors.push_back(with_origin(std::move(error), outcome.said));
  return outcome;
}

}  // namespace delayq
