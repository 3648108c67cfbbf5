#include "cli/cli.h"

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "cli/connection.h"
#include "cli/verb.h"

namespace delayq::cli {

namespace {

constexpr Millis kConnectPatience = std::chrono::seconds{5};
/// On top of what the command itself may wait for.
constexpr Millis kReplyPatience = std::chrono::seconds{30};

/// Connects at the first command, so that a verb can refuse its arguments without a server, and again at the
/// first one after an error.
class Line {
 public:
  explicit Line(const Result<Server>& server) : server_(server) {}

  Result<std::vector<resp::Value>> ask_all(std::span<const Words> commands, Millis wait) {
    if (!server_) return server_.error();
    if (!connection_) {
      Result<Connection> opened = Connection::open(*server_, kConnectPatience);
      if (!opened) return opened.error();
      connection_.emplace(std::move(*opened));
    }
    Result<std::vector<resp::Value>> replies = connection_->ask_all(commands, wait + kReplyPatience);
    if (!replies) connection_.reset();
    return replies;
  }

  Result<resp::Value> ask(const Words& command, Millis wait) {
    Result<std::vector<resp::Value>> replies = ask_all(std::span(&command, 1), wait);
    if (!replies) return replies.error();
    return std::move(replies->front());
  }

 private:
  Result<Server> server_;
  std::optional<Connection> connection_;
};

Transport transport_over(const std::shared_ptr<Line>& line) {
  return [line](const Words& command, Millis wait) { return line->ask(command, wait); };
}

/// With what to do about it, where the server cannot know that.
Error with_advice(Error error, const Result<Server>& server) {
  // One with an operation is not from the server.
  if (error.code == ErrorCode::kUnauthorized && error.op.empty() && server && server->token.empty()) {
    error.detail += ". Give a token with --token or in DELAYQ_TOKEN";
  }
  return error;
}

}  // namespace

Surroundings process_surroundings() {
  std::ios::sync_with_stdio(false);  // or standard input is read a byte at a time
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
  add_migrate_verb(verbs);
  add_top_verb(verbs);
  add_listen_verb(verbs);
  add_shell_verbs(verbs);
  for (std::unique_ptr<Verb>& verb : verbs) add(app, std::move(verb));
}

Commands::~Commands() = default;

void Commands::add(CLI::App& app, std::unique_ptr<Verb> verb) {
  auto entry = std::make_unique<Entry>();
  CLI::App* const sub = app.add_subcommand(std::string(verb->name()), std::string(verb->help()));
  verb->add_options(*sub);
  if (verb->is_client()) {
    sub->add_flag("--json", entry->json, "JSON, also on a terminal");
    add_server_options(*sub, entry->server);
  }
  if (verb->is_hidden()) sub->group("");
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
  const Result<Server> server = server_of(entry.server, surroundings.variable);
  const auto line = std::make_shared<Line>(server);
  const Session session{
      .transport = transport_over(line),
      .world = surroundings,
      .json = entry.json || !surroundings.out_is_terminal,
      .json_asked = entry.json,
      .batch_transport = [&line](std::span<const Words> commands) { return line->ask_all(commands, {}); },
      .new_transport = [&server] { return transport_over(std::make_shared<Line>(server)); },
      .server_name = server ? to_string(server->address) : std::string()};
  const Status status = entry.verb->run(session);
  surroundings.out.flush();
  if (!status) {
    Error error = with_advice(status.error(), server);
    error.op = entry.verb->name();
    surroundings.err << "delayq " << to_string(error) << "\n";
    return traits_of(error.code).exit_code;
  }
  return surroundings.out ? entry.verb->exit_code() : EXIT_FAILURE;
}

}  // namespace delayq::cli
