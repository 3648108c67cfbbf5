#include "cli/cli.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string_view>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/connection.h"
#include "cli/terminal.h"
#include "cli/verb.h"
#include "core/text.h"

namespace delayq::cli {

namespace {

constexpr Millis kConnectPatience = std::chrono::seconds{5};
/// Added to the time that the command itself may wait.
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

/// The option or argument of that name as a person types it; one that was given takes precedence.
std::string option_named(const CLI::App& command, const std::string& name) {
  std::string found;
  for (const CLI::Option* const option : command.get_options()) {
    std::string typed;
    if (option->get_positional() && lowered(option->get_name(true)) == name) typed = option->get_name(true);
    for (const std::string& each : option->get_lnames()) {
      if (each == name) typed = "--" + each;
    }
    if (typed.empty()) continue;
    if (option->count() > 0) return typed;
    found = typed;
  }
  return found;
}

/// The option or argument that a person types for a field of the server: "--priority" for PRI, "DELAY" for
/// delay. Empty when the command has none of that name.
std::string typed_name(const CLI::App& command, std::string_view field) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kOthers{{
      {"pri", "priority"},
      {"method", "callback-method"},
      {"format", "callback-format"},
      {"headers", "header"},
      {"outcome", "error"},
      {"limit", "count"},
  }};
  std::string name = lowered(field.substr(0, field.find('.')));
  std::replace(name.begin(), name.end(), '_', '-');
  const auto* const other =
      std::find_if(kOthers.begin(), kOthers.end(), [&](const auto& each) { return each.first == name; });
  const std::string also = other == kOthers.end() ? name : std::string(other->second);
  const std::string exact = option_named(command, name);
  return exact.empty() && also != name ? option_named(command, also) : exact;
}

/// The error in the words of the command line: a detail begins with the name of the field that is wrong.
Error in_typed_words(Error error, const CLI::App& command) {
  const bool is_about_a_field = error.code == ErrorCode::kInvalid || error.code == ErrorCode::kTooLarge ||
                                error.code == ErrorCode::kConflict;
  if (!is_about_a_field) return error;
  const size_t end = error.detail.find_first_of(": ");
  if (end == std::string::npos || error.detail.starts_with("--")) return error;
  const std::string typed = typed_name(command, std::string_view(error.detail).substr(0, end));
  if (!typed.empty()) error.detail.replace(0, end, typed);
  return error;
}

/// Adds advice that the server cannot give.
Error with_advice(Error error, const Result<Server>& server) {
  // An error with an `op` is not from the server.
  if (error.code == ErrorCode::kUnauthorized && error.op.empty() && server && server->token.empty()) {
    error.detail += ". Give a token with --token or in DELAYQ_TOKEN";
  }
  return error;
}

}  // namespace

Surroundings process_surroundings() {
  std::ios::sync_with_stdio(false);  // otherwise standard input is read a byte at a time
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
  // Otherwise CLI11 would take the topic in `delayq pause stats` for another verb.
  app.require_subcommand(app.get_require_subcommand_min(), 1);
  Verbs verbs;
  add_producer_verbs(verbs);
  add_consumer_verbs(verbs);
  add_operator_verbs(verbs);
  add_settings_verbs(verbs);
  add_schedule_verbs(verbs);
  add_transfer_verbs(verbs);
  add_migrate_verb(verbs);
  add_top_verb(verbs);
  add_list_verb(verbs);
  add_forecast_verb(verbs);
  add_events_verb(verbs);
  add_doctor_verb(verbs);
  add_listen_verb(verbs);
  add_shell_verbs(verbs);
  for (std::unique_ptr<Verb>& verb : verbs) add(app, std::move(verb));
}

Commands::~Commands() = default;

void Commands::add(CLI::App& app, std::unique_ptr<Verb> verb) {
  auto entry = std::make_unique<Entry>();
  CLI::App* const sub = &add_subcommand(app, *verb);
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
    // `topics rm` has parsed `topics`, too.
    if (entry->app->parsed() && entry->app->get_subcommands().empty()) return run(*entry, surroundings);
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
      .server_name = server ? to_string(server->address) : std::string(),
      .server = server};
  const Status status = entry.verb->run(session);
  surroundings.out.flush();
  if (!status) {
    Error error = in_typed_words(with_advice(status.error(), server), *entry.app);
    error.op = entry.verb->name();
    surroundings.err << "delayq " << to_string(error) << "\n";
    return traits_of(error.code).exit_code;
  }
  return surroundings.out ? entry.verb->exit_code() : EXIT_FAILURE;
}

namespace {

/// A mark in front of a value that must stay as it is. Users do not type it; a value that has it gets a
/// second one.
constexpr char kMark = '\x02';

/// "-5s" is a value, which its reader calls negative: no option begins with a digit.
bool is_negative(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && ((word[1] >= '0' && word[1] <= '9') || word[1] == '.');
}

/// Puts the mark in front of a value that CLI11 might split, or take for an option.
std::string marked(const std::string& word) {
  if (is_negative(word)) return kMark + word;
  const size_t sign = word.starts_with("--") ? word.find('=') : std::string::npos;
  const size_t value = sign == std::string::npos ? 0 : sign + 1;
  if (value >= word.size() || (word[value] != '[' && word[value] != kMark)) return word;
  return fmt::format("{}{}{}", word.substr(0, value), kMark, word.substr(value));
}

std::string unmarked(std::string text) {
  std::erase(text, kMark);
  return text;
}

void unmark_options(CLI::App& app) {
  const auto unmark = [](const std::string& text) { return text.starts_with(kMark) ? text.substr(1) : text; };
  for (CLI::Option* const option : app.get_options()) {
    if (option->get_items_expected_max() > 0) option->transform(unmark);
  }
  for (CLI::App* const command : app.get_subcommands([](CLI::App*) { return true; }))
    unmark_options(*command);
}

bool runs_commands(std::string_view verb) { return verb == "pop" || verb == "bpop"; }

std::string meant(std::string_view word, const std::vector<std::string>& known) {
  const std::vector<std::string_view> views(known.begin(), known.end());
  const std::string_view near = nearest(word, views);
  return near.empty() ? std::string() : fmt::format(" Did you mean {}?", near);
}

const CLI::App* command_named(const CLI::App& app, const std::string& name) {
  const auto found = app.get_subcommands([&](const CLI::App* each) { return each->get_name() == name; });
  return found.empty() ? nullptr : found.front();
}

/// Without the hidden ones.
std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* const command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!command->get_group().empty()) names.push_back(command->get_name());
  }
  return names;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* const option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

/// The first word that looks like an option and is not one of the command's.
std::string unknown_option(const CLI::App& command, const std::vector<std::string>& arguments) {
  const std::vector<std::string> known = option_names(command);
  for (const std::string& argument : arguments) {
    if (argument == "--") break;
    std::string name = argument.substr(0, argument.find('='));
    const bool is_known = std::find(known.begin(), known.end(), name) != known.end();
    if (name.starts_with("--") && !is_known) return name;
  }
  return {};
}

/// The first word after `help` that is not a command, and the command in which it was searched.
struct Unknown {
  std::string word;  ///< empty: all of them are commands
  const CLI::App* within = nullptr;
};

Unknown unknown_topic_of_help(const CLI::App& app, const std::vector<std::string>& arguments) {
  const CLI::App* within = &app;
  for (size_t i = 1; i < arguments.size() && !arguments[i].starts_with('-'); ++i) {
    const CLI::App* const command = command_named(*within, arguments[i]);
    if (command == nullptr) return {arguments[i], within};
    within = command;
  }
  return {};
}

/// What was typed is in it, and may have been copied from anywhere.
constexpr size_t kShownProblem = 2'000;

/// `name` is the program's, or that of a group of commands.
std::string no_such_command(std::string_view word, const CLI::App& within, std::string_view name = "delayq") {
  return fmt::format("{0}: there is no command {1}.{2}\n{0} --help lists them\n", name,
                     printable(quote(word), kShownProblem), meant(word, command_names(within)));
}

/// What CLI11 says, as the rest of the program would say it.
std::string in_plain_words(const std::string& what, const CLI::App& command) {
  constexpr std::string_view kUnexpected = "The following argument was not expected: ";
  constexpr std::string_view kUnexpectedOnes = "The following arguments were not expected: ";
  constexpr std::string_view kNotConverted = "Could not convert: ";
  for (const std::string_view start : {kUnexpected, kUnexpectedOnes}) {
    if (what.starts_with(start)) return fmt::format("too many arguments: {}", what.substr(start.size()));
  }
  if (what == "A subcommand is required")
    return fmt::format("one of these is needed: {}", fmt::join(command_names(command), ", "));
  if (what.starts_with(kNotConverted)) {
    const size_t sign = std::min(what.find(" = "), what.size());
    return fmt::format("{}: {} is not a number",
                       what.substr(kNotConverted.size(), sign - kNotConverted.size()),
                       quote(std::string_view(what).substr(std::min(sign + 3, what.size()))));
  }
  const size_t required = what.find(": 1 required ");
  if (required != std::string::npos && what.ends_with(" missing"))
    return what.substr(0, required) + ": a value is missing behind it";
  return what;
}

}  // namespace

void parse(CLI::App& app, const std::vector<std::string>& arguments) {
  unmark_options(app);
  if (!arguments.empty() && arguments[0] == "help") {
    if (const Unknown unknown = unknown_topic_of_help(app, arguments); !unknown.word.empty())
      throw CLI::ExtrasError(std::vector<std::string>{unknown.word});
    std::vector<std::string> words{"--help"};
    words.insert(words.end(), arguments.rbegin(), arguments.rend() - 1);
    return app.parse(words);
  }
  std::vector<std::string> words;
  auto rest = arguments.begin();
  for (; rest != arguments.end(); ++rest) {
    if (*rest == "--" && runs_commands(arguments[0])) break;
    words.push_back(marked(*rest));
  }
  if (rest != arguments.end()) {
    while (++rest != arguments.end()) words.push_back(fmt::format("{}={}{}", kExecWord, kMark, *rest));
  }
  std::reverse(words.begin(), words.end());  // CLI11 expects them in reverse
  app.parse(words);
}

std::string explain(const CLI::App& app, const CLI::ParseError& error,
                    const std::vector<std::string>& arguments) {
  const std::string first = arguments.empty() ? std::string() : arguments[0];
  if (first == "help") {
    if (const Unknown unknown = unknown_topic_of_help(app, arguments); !unknown.word.empty())
      return no_such_command(unknown.word, *unknown.within);
  }
  const CLI::App* command = command_named(app, first);
  if (command == nullptr) {
    if (first.empty() || first.starts_with('-'))
      return fmt::format("delayq: {}\ndelayq --help lists all options\n",
                         printable(unmarked(error.what()), kShownProblem));
    return no_such_command(first, app);
  }
  std::string name = first;
  const bool is_group = !command_names(*command).empty();
  if (is_group && arguments.size() > 1 && !arguments[1].starts_with('-') &&
      command_named(*command, arguments[1]) == nullptr)
    return no_such_command(arguments[1], *command, "delayq " + first);
  if (const CLI::App* const inner = arguments.size() > 1 ? command_named(*command, arguments[1]) : nullptr) {
    command = inner;
    name += " " + arguments[1];
  }
  std::string what = in_plain_words(unmarked(error.what()), *command);
  if (const std::string option = unknown_option(*command, arguments); !option.empty()) {
    what = fmt::format("there is no option {}.{}", option, meant(option, option_names(*command)));
  }
  return fmt::format("delayq {0}: {1}\ndelayq {0} --help lists all options\n", name,
                     printable(what, kShownProblem));
}

namespace {

constexpr std::string_view kDefaultAddress = "127.0.0.1:9278";
constexpr uint16_t kDefaultPort = 9278;

struct NamedServer {
  Address address;
  bool tls = false;
};

/// "host:port", "host", or one of them behind redis:// or rediss://.
Result<NamedServer> parse_server(std::string_view text, std::string_view source) {
  NamedServer server;
  std::string_view rest = text;
  const size_t scheme_end = rest.find("://");
  if (scheme_end != std::string_view::npos) {
    const std::string scheme = lowered(rest.substr(0, scheme_end));
    rest.remove_prefix(scheme_end + 3);
    if (rest.ends_with('/')) rest.remove_suffix(1);
    const bool is_http = scheme == "http" || scheme == "https";
    if (is_http) {
      const std::string_view host = rest.substr(0, rest.find_first_of(rest.starts_with('[') ? "]" : ":/"));
      return invalid(fmt::format(
          "{}: {} is the address of HTTP; commands go to the port of RESP, which is {} unless server.resp "
          "says another one: --server {}{}:{}{}",
          source, quote(text), kDefaultPort, host, rest.starts_with('[') ? "]" : "", kDefaultPort,
          scheme == "https" ? " --tls" : ""));
    }
    if (scheme != "redis" && scheme != "rediss" && scheme != "resp")
      return invalid(fmt::format("{}: {} has an unknown scheme: use HOST:PORT", source, quote(text)));
    server.tls = scheme == "rediss";
  }
  const size_t after_host = rest.starts_with('[') ? rest.find(']') : 0;
  const bool has_port =
      after_host == std::string_view::npos || rest.find(':', after_host) != std::string_view::npos;
  const Result<Address> address =
      parse_address(has_port ? std::string(rest) : fmt::format("{}:{}", rest, kDefaultPort));
  if (!address) return invalid(fmt::format("{}: {}", source, address.error().detail));
  server.address = *address;
  return server;
}

/// The option's value, else the environment variable's.
std::string first_of(const std::string& given, const char* variable) {
  if (!given.empty() || variable == nullptr) return given;
  return variable;
}

}  // namespace

void add_server_options(CLI::App& app, ServerOptions& options) {
  constexpr const char* kGroup = "Server";
  app.add_option("--server,--resp", options.address,
                 "Where it listens for RESP, default port 9278; else $DELAYQ_RESP, else 127.0.0.1:9278")
      ->type_name("HOST:PORT")
      ->group(kGroup);
  app.add_option("--token", options.token, "The token; prefer $DELAYQ_TOKEN, which other users cannot see")
      ->type_name("SECRET")
      ->group(kGroup);
  app.add_flag("--tls", options.tls, "Use TLS; the other TLS options imply it")->group(kGroup);
  app.add_option("--ca", options.ca, "Trust these certificates; else $DELAYQ_CA, else the system's")
      ->type_name("FILE")
      ->group(kGroup);
  CLI::Option* const certificate =
      app.add_option("--cert", options.certificate, "Our own certificate, for a server that asks for one")
          ->type_name("FILE")
          ->group(kGroup);
  app.add_option("--key", options.key, "Its key, if it is in a separate file")
      ->type_name("FILE")
      ->needs(certificate)
      ->group(kGroup);
  app.add_flag("--insecure", options.insecure, "Accept any certificate of the server")->group(kGroup);
}

Result<Server> server_of(const ServerOptions& options,
                         const std::function<const char*(const char*)>& variable) {
  std::string text = first_of(options.address, variable("DELAYQ_RESP"));
  if (text.empty()) text = kDefaultAddress;
  const Result<NamedServer> named = parse_server(text, options.address.empty() ? "$DELAYQ_RESP" : "--server");
  if (!named) return named.error();
  Server server{
      .address = named->address, .token = first_of(options.token, variable("DELAYQ_TOKEN")), .tls = {}};
  const std::string ca = first_of(options.ca, variable("DELAYQ_CA"));
  if (options.tls || named->tls || options.insecure || !ca.empty() || !options.certificate.empty()) {
    server.tls = Server::Tls{.ca = ca,
                             .certificate = options.certificate,
                             .key = options.key.empty() ? options.certificate : options.key,
                             .verify = !options.insecure};
  }
  return server;
}

}  // namespace delayq::cli
