#include "ops/config_check.h"

#include <algorithm>

#include <fmt/format.h>

namespace delayq {

namespace {

void check_tokens(const std::vector<Token>& tokens, std::vector<std::string>& errors) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    const Token& token = tokens[i];
    const auto miss = [&](std::string_view key) {
      errors.push_back(fmt::format("tokens.{}: {} is missing", i, key));
    };
    if (token.name.empty()) miss("name");
    if (token.sha256 == Sha256{}) miss("sha256");
    if (token.scopes == 0) miss("scopes");
    const auto first = std::find_if(tokens.begin(), tokens.end(),
                                    [&](const Token& other) { return other.name == token.name; });
    if (!token.name.empty() && &*first != &token)
      errors.push_back(fmt::format("tokens.{}: another token has the name {}", i, token.name));
    const auto twin = std::find_if(tokens.begin(), tokens.end(),
                                   [&](const Token& other) { return other.sha256 == token.sha256; });
    if (token.sha256 != Sha256{} && &*twin != &token)
      errors.push_back(fmt::format("tokens.{}: {} has the same sha256: which of them is meant?", i,
                                   twin->name.empty() ? "another token" : twin->name));
  }
}

void check_tls(const Config::Tls& tls, std::vector<std::string>& errors) {
  if (tls.certificate.empty() != tls.key.empty())
    errors.emplace_back("tls: certificate and key are needed together");
  if (!tls.client_ca.empty() && tls.certificate.empty())
    errors.emplace_back("tls.client_ca: needs a certificate and a key of the server, too");
}

void check_addresses(const Config& config, std::vector<std::string>& errors) {
  for (const auto& [key, address] : {std::pair{"http", &config.server.http}, {"resp", &config.server.resp}}) {
    if (is_loopback(*address) || config.server.allow_anonymous || !config.tokens.empty()) continue;
    errors.push_back(fmt::format(
        "server.{}: {} can be reached from other machines, and nobody would be asked who they are; configure "
        "[[tokens]] (delayq token new), listen on 127.0.0.1, or set server.allow_anonymous = true",
        key, to_string(*address)));
  }
}

void check_same_port(const Config::Server& server, std::vector<std::string>& errors) {
  if (server.http.port != 0 && server.http == server.resp)
    errors.push_back(fmt::format("server.http: {} is server.resp, too: each protocol needs a port of its own",
                                 to_string(server.http)));
}

/// As errors name it.
std::string full_section(const Said& said) {
  return said.number.empty() ? said.section : fmt::format("{}.{}", said.section, said.number);
}

}  // namespace

std::string with_origin(std::string error, std::span<const Said> said) {
  const std::string key = error.substr(0, error.find(": "));
  const auto is_key = [&](const Said& each) {
    return !each.key.empty() && fmt::format("{}.{}", full_section(each), each.key) == key;
  };
  const auto last = std::find_if(said.rbegin(), said.rend(), is_key);
  const auto first =
      std::find_if(said.begin(), said.end(), [&](const Said& each) { return full_section(each) == key; });
  if (last == said.rend() && first == said.end()) return error;
  const std::string& origin = last != said.rend() ? last->origin : first->origin;
  if (origin == kCommandLine) return error;
  const bool is_variable = origin.find(':') == std::string::npos;
  return fmt::format("{}{}: {}", origin, is_variable ? " in the environment" : "", error);
}

std::vector<std::string> check_config(const Config& config, bool all_was_read) {
  std::vector<std::string> errors;
  if (all_was_read) {
    check_tokens(config.tokens, errors);
    check_tls(config.tls, errors);
  }
  check_addresses(config, errors);
  check_same_port(config.server, errors);
  return errors;
}

}  // namespace delayq
