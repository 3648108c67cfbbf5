#include "app/commands.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <sys/random.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/access.h"
#include "app/config_options.h"
#include "core/encoding.h"
#include "core/text.h"
#include "core/token.h"
#include "engine/journal/check.h"
#include "engine/journal/posix_disk.h"
#include "json/writer.h"
#include "ops/config.h"

namespace delayq {

namespace {

struct JournalCheckOptions {
  std::string directory = "data";
  bool repair = false;
  bool yes = false;
};

int check_failed(const Error& error) {
  std::cerr << to_string(in_verb("delayq check", error)) << "\n";
  return traits_of(error.code).exit_code;
}

bool is_confirmed(const JournalCheckOptions& options) {
  if (options.yes) return true;
  if (isatty(STDIN_FILENO) == 0) {
    std::cerr << "delayq check: nothing was changed; --repair --yes discards what is listed above\n";
    return false;
  }
  std::cout << "Give up what is listed above? Type yes: " << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "yes";
}

int run(const JournalCheckOptions& options) {
  if (::access(options.directory.c_str(), F_OK) != 0) {
    return check_failed(
        {ErrorCode::kNotFound, "check", fmt::format("there is no directory {}", options.directory), {}});
  }
  // A check without --repair needs no write access: the directory may be one that must not change.
  auto disk = journal::PosixDisk::open_to_read(options.directory);
  if (!disk.ok()) return check_failed(disk.error());
  const Result<journal::CheckReport> report = journal::check(**disk);
  if (!report.ok()) return check_failed(report.error());
  std::cout << to_string(*report);
  if (report->is_clean()) return 0;
  if (!options.repair) {
    std::cerr << "delayq check: damaged; --repair discards what is listed above, and only that\n";
    return traits_of(ErrorCode::kCorrupt).exit_code;
  }
  if (!is_confirmed(options)) return traits_of(ErrorCode::kCorrupt).exit_code;
  disk = journal::PosixDisk::open(options.directory);
  if (!disk.ok()) return check_failed(disk.error());
  const Result<journal::CheckReport> repaired = journal::repair(**disk);
  if (!repaired.ok()) return check_failed(repaired.error());
  std::cout << "Repaired. The server can be started again.\n";
  return 0;
}

}  // namespace

void add_check_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<JournalCheckOptions>();
  CLI::App* check =
      app.add_subcommand("check", "Read every record of a data directory and report what is damaged");
  check->add_option("directory", options->directory, "The journal's directory")->capture_default_str();
  check->add_flag("--repair", options->repair, "Discard what is damaged, after reporting it");
  check->add_flag("--yes", options->yes, "Do not ask");
  check->callback([options, &exit_code] { exit_code = run(*options); });
}

namespace {

struct ConfigCheckOptions {
  ConfigOptions config;
  bool print = false;
};

/// Of a file of another system.
std::string as_what(const ConfigOutcome& outcome) {
  if (outcome.form.empty()) return {};
  const size_t warnings = outcome.warnings.size();
  return fmt::format(", as a file of {}; {} warning{}", outcome.form, warnings, warnings == 1 ? "" : "s");
}

int check(const ConfigCheckOptions& options) {
  const ConfigOutcome outcome = read_config_to_serve(options.config);
  for (const std::string& warning : outcome.warnings) std::cerr << "warning: " << warning << "\n";
  for (const std::string& error : outcome.errors) std::cerr << error << "\n";
  if (!outcome.ok()) return traits_of(ErrorCode::kInvalid).exit_code;
  if (options.print) {
    std::cout << config_in_force(outcome.said);
  } else {
    std::cout << (outcome.file.empty() ? "The configuration" : outcome.file) << " is right"
              << as_what(outcome) << ".\n";
  }
  return EXIT_SUCCESS;
}

}  // namespace

void add_config_command(CLI::App& app, int& exit_code) {
  CLI::App* config = app.add_subcommand("config", "Check a configuration, or print an example");
  config->require_subcommand(1);
  auto options = std::make_shared<ConfigCheckOptions>();
  CLI::App* checking = config->add_subcommand(
      "check",
      "Report everything that is wrong with the file, the environment and the options, and start nothing");
  options->config.add_to(*checking);
  checking->add_flag("--print", options->print, "Print the values in use, and where each comes from");
  checking->callback([options, &exit_code] { exit_code = check(*options); });
  config->add_subcommand("example", "Print a file with every setting, commented out with its default")
      ->callback([&exit_code] {
        std::cout << example_config();
        exit_code = EXIT_SUCCESS;
      });
}

namespace {

constexpr std::string_view kPrefix = "dq_";
constexpr size_t kRandomBytes = 32;

/// Base64 for URLs and shell words, without padding.
std::string base64url(std::string_view bytes) {
  std::string text = to_base64(bytes);
  std::replace(text.begin(), text.end(), '+', '-');
  std::replace(text.begin(), text.end(), '/', '_');
  text.resize(text.find_last_not_of('=') + 1);
  return text;
}

/// Printable, so that it needs no escapes in a TOML string.
bool is_plain(std::string_view text) {
  if (!is_utf8(text)) return false;
  return std::none_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '"' || c == '\\';
  });
}

Status check(const TokenOptions& options) {
  if (options.name.empty() || options.name.size() > kTokenNameBytes || !is_plain(options.name))
    return invalid(fmt::format("--name: {} is not a valid name: use 1 to {} printable bytes",
                               quote(options.name), kTokenNameBytes));
  if (options.scopes.empty())
    return invalid(fmt::format("--scopes: expected some of {}", fmt::join(kScopeNames, ", ")));
  for (const std::string& scope : options.scopes) {
    if (!parse_scope(scope))
      return invalid(fmt::format("--scopes: {} is none of {}", quote(scope), fmt::join(kScopeNames, ", ")));
  }
  if (options.topics.empty()) return invalid("--topics: expected topics, or patterns such as order.*");
  for (const std::string& topic : options.topics) {
    if (const Status status = check_topic_pattern(topic); !status)
      return invalid(fmt::format("--topics: {}", status.error().detail));
  }
  return {};
}

/// ["a", "b"]
std::string toml_list(const std::vector<std::string>& texts) {
  std::vector<std::string> quoted;
  for (const std::string& text : texts) quoted.push_back(fmt::format("\"{}\"", text));
  return fmt::format("[{}]", fmt::join(quoted, ", "));
}

Result<std::string> random_bytes() {
  std::string bytes(kRandomBytes, '\0');
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t got = getrandom(bytes.data() + at, bytes.size() - at, 0);
    if (got < 0 && errno != EINTR)
      return Error{ErrorCode::kInternal, {}, "the system provides no random bytes"};
    at += static_cast<size_t>(std::max<ssize_t>(got, 0));
  }
  return bytes;
}

int run(const TokenOptions& options, bool json) {
  const Result<std::string> random = random_bytes();
  const Result<NewToken> token = random ? make_token(options, *random) : Result<NewToken>(random.error());
  if (!token) {
    std::cerr << to_string(in_verb("delayq token new", token.error())) << "\n";
    return traits_of(token.error().code).exit_code;
  }
  if (json) {
    std::cout << json::Object().text("secret", token->secret).text("toml", token->toml).finish() << "\n";
  } else {
    std::cout << "The secret, which is shown only now; clients send it, for instance from DELAYQ_TOKEN:\n\n"
              << token->secret << "\n\nFor the server's configuration file:\n\n"
              << token->toml;
  }
  return std::cout.flush() ? 0 : 1;
}

}  // namespace

Result<NewToken> make_token(const TokenOptions& options, std::string_view random) {
  if (Status status = check(options); !status) return status.error();
  NewToken token;
  token.secret = std::string(kPrefix) + base64url(random);
  const Sha256 hash = api::hash_secret(token.secret);
  token.toml = fmt::format("[[tokens]]\nname = \"{}\"\nsha256 = \"{}\"\nscopes = {}\ntopics = {}\n",
                           options.name, to_hex({reinterpret_cast<const char*>(hash.data()), hash.size()}),
                           toml_list(options.scopes), toml_list(options.topics));
  return token;
}

void add_token_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<TokenOptions>();
  auto json = std::make_shared<bool>(false);
  CLI::App* const token = app.add_subcommand("token", "Make access tokens for clients");
  token->require_subcommand(1);
  CLI::App* const make =
      token->add_subcommand("new", "Print a new secret, once, and the lines of the configuration for it");
  make->add_option("--name", options->name, "Whose it is, for logs")->capture_default_str();
  make->add_option("--scopes", options->scopes,
                   fmt::format("What it allows: {}; default push,consume", fmt::join(kScopeNames, ", ")))
      ->delimiter(',')
      ->allow_extra_args(false);
  make->add_option("--topics", options->topics, "Where: topics and patterns such as order.*; default all")
      ->delimiter(',')
      ->allow_extra_args(false);
  make->add_flag("--json", *json, "JSON");
  make->callback([options, json, &exit_code] { exit_code = run(*options, *json); });
}

}  // namespace delayq
