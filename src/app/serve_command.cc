#include "app/serve_command.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <sys/resource.h>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "app/server.h"
#include "app/version.h"
#include "ops/config.h"
#include "ops/log.h"

namespace delayq {

namespace {

struct ServeOptions {
  std::string file;
  /// Options of the command line that are keys of the configuration, and what was said.
  std::vector<std::pair<std::string, std::string>> said;
  std::vector<std::string> assignments;  ///< key=value
};

/// File, then environment, then command line. Prints everything that is wrong.
bool read_config(const ServeOptions& options, Config& config) {
  std::vector<std::string> errors;
  if (!options.file.empty()) {
    ConfigOutcome outcome = load_config(options.file);
    errors = std::move(outcome.errors);
    config = std::move(outcome.config);
  }
  for (std::string& error : apply_environment(config, [](const char* name) { return std::getenv(name); })) {
    errors.push_back(std::move(error));
  }
  const auto set = [&](const std::string& key, const std::string& value) {
    if (Status status = set_option(config, key, value); !status.ok()) errors.push_back(status.error().detail);
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
  for (const std::string& error : errors) std::cerr << error << "\n";
  return errors.empty();
}

ServerOptions server_options(const Config& config) {
  ServerOptions options;
  options.storage.engine =
      config.server.engine == Config::Engine::kMemory ? EngineKind::kMemory : EngineKind::kJournal;
  options.storage.directory = config.server.data;
  options.storage.backups = config.server.backups;
  options.storage.journal.segment_bytes = config.journal.segment_bytes;
  options.storage.journal.disk_reserve = config.journal.disk_reserve;
  options.storage.journal.sync_interval = config.journal.interval;
  options.storage.journal.durability = config.journal.durability == Config::Durability::kInterval
                                           ? journal::Durability::kInterval
                                           : journal::Durability::kCommit;
  options.queue = queue_config(config);
  options.topics = config.topics;
  options.resp_host = config.server.resp.host;
  options.resp_port = config.server.resp.port;
  options.http_host = config.server.http.host;
  options.http_port = config.server.http.port;
  options.max_connections = config.server.max_connections;
  options.grace = config.server.grace;
  options.tokens = config.tokens;
  options.idempotency = config.server.idempotency;
  return options;
}

/// Each connection is a descriptor, and the usual limit is for programs with few.
void allow_many_descriptors() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

int run(const ServeOptions& options) {
  Config config;
  if (!read_config(options, config)) return traits_of(ErrorCode::kInvalid).exit_code;
  const auto fail = [](const Error& error) {
    std::cerr << "delayq serve: " << to_string(error) << "\n";
    return traits_of(error.code).exit_code;
  };
  for (const Address* address : {&config.server.http, &config.server.resp}) {
    if (is_loopback(*address) || config.server.allow_anonymous || !config.tokens.empty()) continue;
    return fail({ErrorCode::kInvalid,
                 "serve",
                 fmt::format("{} can be reached from other machines, and nobody would be asked who they are; "
                             "configure [[tokens]] (delayq token new), listen on 127.0.0.1, or set "
                             "server.allow_anonymous = true",
                             to_string(*address)),
                 {}});
  }
  if (Status status = start_log(config.log); !status.ok()) return fail(status.error());
  allow_many_descriptors();
  auto server = Server::open(server_options(config));
  if (!server.ok()) return fail(server.error());
  const net::Signals signals((*server)->loop(), {SIGTERM, SIGINT}, [&](int number) {
    spdlog::info("stopping: {}", number == SIGINT ? "SIGINT" : "SIGTERM");
    (*server)->stop();
  });
  spdlog::info("delayq {} listens on {} (HTTP) and {} (RESP), {}", kVersion, (*server)->http_address(),
               (*server)->resp_address(), (*server)->storage().describe());
  std::cout << fmt::format("delayq {} is ready, {}.\n", kVersion, (*server)->storage().describe())
            << fmt::format(
                   "Try it: redis-cli -p {0} PUSH order 5s '{{\"uid\":1}}'   then: redis-cli -p {0} POP "
                   "order WAIT 10s\n",
                   (*server)->resp_port())
            << fmt::format(
                   "Or:     curl http://{}/v1/topics/order/jobs -d '{{\"body\": {{\"uid\": 1}}, \"delay\": "
                   "\"5s\"}}'\n",
                   (*server)->http_address())
            << "Ctrl-C stops it.\n"
            << std::flush;
  (*server)->run();
  spdlog::info("stopped; everything that was answered is on disk");
  return EXIT_SUCCESS;
}

}  // namespace

void add_serve_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ServeOptions>();
  options->said.reserve(8);
  CLI::App* serve =
      app.add_subcommand("serve", "Run the server (this is what delayq does without a command)");
  serve->add_option("-c,--config", options->file, "Configuration file (TOML)");
  const auto add = [&](const char* flags, const char* key, const char* help) {
    options->said.emplace_back(key, "");
    serve->add_option(flags, options->said.back().second, help);
  };
  add("-t,--engine", "server.engine", "Where jobs wait: journal (default) or memory");
  add("--http", "server.http", "Address of the HTTP API, default 127.0.0.1:9277; port 0: any free one");
  add("--resp", "server.resp", "Address for Redis clients, default 127.0.0.1:9278; port 0: any free one");
  add("--data", "server.data", "The journal's directory, default ./data");
  add("--durability", "journal.durability",
      "commit: a reply means it is on disk (default); interval: it will be soon");
  add("--log-level", "log.level", "debug, info, warn, error or off");
  serve->add_option("--set", options->assignments,
                    "Any other key of the configuration: --set limits.body=4MiB");
  serve->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace delayq
