#include "cli/cli.h"

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "cli/connection.h"
#include "cli/verb.h"
#include "ops/address.h"

namespace delayq::cli {

namespace {

constexpr std::string_view kDefaultAddress = "127.0.0.1:9278";
constexpr Millis kConnectPatience = std::chrono::seconds{5};
/// On top of what the command itself may wait for.
constexpr Millis kReplyPatience = std::chrono::seconds{30};

/// Connects at the first command, so that a verb can refuse its arguments without a server.
auto transport_to(const std::string& address, std::optional<Connection>& connection) {
  return [&](const Words& command, Millis wait) -> Result<resp::Value> {
    if (!connection) {
      const Result<Address> parsed = parse_address(address);
      if (!parsed) return parsed.error();
      Result<Connection> opened = Connection::open(*parsed, kConnectPatience);
      if (!opened) return opened.error();
      connection.emplace(std::move(*opened));
    }
    const std::vector<std::string_view> views(command.begin(), command.end());
    return connection->ask(views, wait + kReplyPatience);
  };
}

}  // namespace

Surroundings process_surroundings() {
  return {.in = std::cin,
          .out = std::cout,
          .err = std::cerr,
          .in_is_terminal = isatty(STDIN_FILENO) == 1,
          .out_is_terminal = isatty(STDOUT_FILENO) == 1,
          .err_is_terminal = isatty(STDERR_FILENO) == 1,
          .now = [] { return std::chrono::floor<Millis>(std::chrono::system_clock::now()); },
          .variable = [](const char* name) -> const char* { return std::getenv(name); }};
}

Commands::Commands(CLI::App& app) {
  // Or CLI11 would take the topic in `delayq pause stats` for one more verb.
  app.require_subcommand(app.get_require_subcommand_min(), 1);
  Verbs verbs;
  add_producer_verbs(verbs);
  add_consumer_verbs(verbs);
  add_operator_verbs(verbs);
  add_transfer_verbs(verbs);
  for (std::unique_ptr<Verb>& verb : verbs) add(app, std::move(verb));
}

Commands::~Commands() = default;

void Commands::add(CLI::App& app, std::unique_ptr<Verb> verb) {
  auto entry = std::make_unique<Entry>();
  CLI::App* const sub = app.add_subcommand(std::string(verb->name()), std::string(verb->help()));
  verb->add_options(*sub);
  sub->add_option("--resp", entry->resp, "The server; else $DELAYQ_RESP, else 127.0.0.1:9278");
  sub->add_flag("--json", entry->json, "JSON, also on a terminal");
  entry->app = sub;
  entry->verb = std::move(verb);
  entries_.push_back(std::move(entry));
}

std::optional<int> Commands::run(const Surroundings& surroundings) {
  for (const std::unique_ptr<Entry>& entry : entries_) {
    if (entry->app->parsed()) return run(*entry, surroundings);
  }
  return std::nullopt;
}

int Commands::run(Entry& entry, const Surroundings& surroundings) {
  const std::string address = server_address(entry.resp, surroundings.variable("DELAYQ_RESP"));
  std::optional<Connection> connection;
  const Session session{.transport = transport_to(address, connection),
                        .world = surroundings,
                        .json = entry.json || !surroundings.out_is_terminal};
  const Status status = entry.verb->run(session);
  surroundings.out.flush();
  if (!status) {
    Error error = status.error();
    error.op = entry.verb->name();
    surroundings.err << "delayq " << to_string(error) << "\n";
    return traits_of(error.code).exit_code;
  }
  return surroundings.out ? EXIT_SUCCESS : EXIT_FAILURE;
}

std::string server_address(const std::string& given, const char* variable) {
  if (!given.empty()) return given;
  if (variable != nullptr && *variable != '\0') return variable;
  return std::string(kDefaultAddress);
}

}  // namespace delayq::cli
