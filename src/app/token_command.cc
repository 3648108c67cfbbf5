#include "app/token_command.h"

#include <algorithm>
#include <cerrno>
#include <iostream>
#include <memory>
#include <sys/random.h>

#include <CLI/App.hpp>
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/access.h"
#include "core/base64.h"
#include "core/hex.h"
#include "core/quote.h"
#include "core/token.h"
#include "core/utf8.h"
#include "json/writer.h"

namespace delayq {

namespace {

constexpr std::string_view kPrefix = "dq_";
constexpr size_t kRandomBytes = 32;

/// Base64 that may stand in a URL or a shell word, without padding.
std::string base64url(std::string_view bytes) {
  std::string text = to_base64(bytes);
  std::replace(text.begin(), text.end(), '+', '-');
  std::replace(text.begin(), text.end(), '/', '_');
  text.resize(text.find_last_not_of('=') + 1);
  return text;
}

/// Printable, so that it can stand between quotes of TOML without an escape.
bool is_plain(std::string_view text) {
  if (!is_utf8(text)) return false;
  return std::none_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '"' || c == '\\';
  });
}

Status check(const TokenOptions& options) {
  if (options.name.empty() || options.name.size() > kTokenNameBytes || !is_plain(options.name))
    return invalid(fmt::format("--name: {} is no name: expected 1 to {} printable bytes", quote(options.name),
                               kTokenNameBytes));
  if (options.scopes.empty()) return invalid("--scopes: expected some of push, consume, read, admin");
  for (const std::string& scope : options.scopes) {
    if (!parse_scope(scope))
      return invalid(fmt::format("--scopes: {} is none of push, consume, read, admin", quote(scope)));
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
    if (got < 0 && errno != EINTR) return Error{ErrorCode::kInternal, {}, "the system gives no random bytes"};
    at += static_cast<size_t>(std::max<ssize_t>(got, 0));
  }
  return bytes;
}

int run(const TokenOptions& options, bool json) {
  const Result<std::string> random = random_bytes();
  const Result<NewToken> token = random ? make_token(options, *random) : Result<NewToken>(random.error());
  if (!token) {
    std::cerr << "delayq token new: " << to_string(token.error()) << "\n";
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
  CLI::App* const token = app.add_subcommand("token", "Make tokens, by which clients say who they are");
  token->require_subcommand(1);
  CLI::App* const make =
      token->add_subcommand("new", "Print a new secret, once, and the lines of the configuration for it");
  make->add_option("--name", options->name, "Whose it is, for logs")->capture_default_str();
  make->add_option("--scopes", options->scopes,
                   "What it allows: push, consume, read, admin; push,consume when left out")
      ->delimiter(',')
      ->allow_extra_args(false);
  make->add_option("--topics", options->topics,
                   "Where: topics and patterns such as order.*; all when left out")
      ->delimiter(',')
      ->allow_extra_args(false);
  make->add_flag("--json", *json, "JSON");
  make->callback([options, json, &exit_code] { exit_code = run(*options, *json); });
}

}  // namespace delayq
