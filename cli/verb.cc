#include "cli/verb.h"

#include <charconv>
#include <ostream>

#include <CLI/CLI.hpp>

#include "cli/terminal.h"

namespace delayq::cli {

CLI::App& add_subcommand(CLI::App& app, Verb& verb) {
  const std::string name(verb.name());
  const size_t space = name.find(' ');
  CLI::App* group = &app;
  if (space != std::string::npos) {
    const std::string first = name.substr(0, space);
    const auto found = app.get_subcommands([&](const CLI::App* each) { return each->get_name() == first; });
    group = found.empty() ? nullptr : found.front();
    if (group == nullptr) {
      group = app.add_subcommand(first, "Recurring jobs: every so often, or by cron in a time zone");
      group->require_subcommand(1);
    }
  }
  CLI::App* const command = group->add_subcommand(name.substr(space == std::string::npos ? 0 : space + 1),
                                                  std::string(verb.help()));
  verb.add_options(*command);
  return *command;
}

Result<resp::Value> Session::ask(const Words& command, Millis wait) const {
  return cli::ask(transport, command, wait);
}

Result<std::vector<resp::Value>> Session::ask_all(std::span<const Words> commands) const {
  return batch_transport(commands);
}

Result<resp::Value> ask(const Transport& transport, const Words& command, Millis wait) {
  Result<resp::Value> reply = transport(command, wait);
  if (reply && reply->is_error()) return error_of_reply(reply->text);
  return reply;
}

void Session::say(std::string_view human, std::string_view machine) const {
  if (json) return say_json(machine);
  world.out << human << "\n";
}

void Session::say_json(std::string_view line) const { world.out << printable_json(line) << "\n"; }

std::string Session::when(int64_t unix_ms) const { return relative(world.now(), from_unix_ms(unix_ms)); }

void append_option(Words& command, std::string_view word, const std::optional<std::string>& value) {
  if (!value) return;
  command.emplace_back(word);
  command.push_back(*value);
}

Error error_of_reply(std::string_view reply) {
  constexpr size_t kMostShown = 4'096;
  const std::string text = printable(reply, kMostShown);  // a terminal will show it
  const size_t space = text.find(' ');
  const std::string_view prefix = std::string_view(text).substr(0, space);
  const std::string_view rest =
      space == std::string::npos ? std::string_view() : std::string_view(text).substr(space + 1);
  for (const ErrorTraits& traits : kErrorTable) {
    if (traits.resp_prefix == prefix) return {traits.code, {}, std::string(rest)};
  }
  // Redis's own error for an unknown command.
  if (prefix == "ERR") return invalid(std::string(rest));
  return {ErrorCode::kInternal, {}, text};
}

Error unexpected_reply() {
  return {ErrorCode::kInternal, {}, "the reply is not from delayq: is this the right server?"};
}

std::optional<int64_t> number_in(const resp::Value& value) {
  if (value.type == resp::Value::Type::kInteger || value.type == resp::Value::Type::kBoolean) {
    return value.integer;
  }
  if (value.type != resp::Value::Type::kBulk) return std::nullopt;
  int64_t number = 0;
  const char* const end = value.text.data() + value.text.size();
  const auto [stop, error] = std::from_chars(value.text.data(), end, number);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return number;
}

}  // namespace delayq::cli
