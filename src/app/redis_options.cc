#include "app/redis_options.h"

#include <fstream>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "net/redis/url.h"

namespace delayq {

namespace {

using net::redis::Mode;

Result<std::string> first_line(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  if (!in || !std::getline(in, line))
    return in_verb("open", invalid(fmt::format("redis.password_file: {} cannot be read, or is empty", path)));
  if (line.ends_with('\r')) line.pop_back();
  return line;
}

/// For the log: without anything secret.
std::string describe(const net::redis::ClientOptions& client) {
  std::vector<std::string> hosts;
  for (const net::redis::Address& address : client.addresses) hosts.push_back(to_string(address));
  const std::string all = fmt::format("{}", fmt::join(hosts, ", "));
  switch (client.mode) {
    case Mode::kStandalone:
      break;
    case Mode::kSentinel:
      return fmt::format("redis {} by Sentinel at {}", client.master_name, all);
    case Mode::kCluster:
      return fmt::format("redis Cluster at {}", all);
  }
  return fmt::format("redis at {}", all);
}

}  // namespace

std::vector<std::string> check_redis(const Config::Redis& said) {
  std::vector<std::string> errors;
  const auto url = net::redis::parse_url(said.url);
  if (!url.ok()) {
    errors.push_back(fmt::format("redis.url: {}", url.error().detail));
    return errors;
  }
  const auto refuse_two = [&](std::string_view key, bool is_said_twice) {
    if (is_said_twice) errors.push_back(fmt::format("redis.{}: redis.url says one, too: leave one out", key));
  };
  refuse_two("user", !said.user.empty() && !url->user.empty());
  refuse_two("password", !said.password.empty() && !url->password.empty());
  refuse_two("password_file", !said.password_file.empty() && !url->password.empty());
  refuse_two("database", said.database != 0 && url->database != 0 && url->database != said.database);
  if (!said.password.empty() && !said.password_file.empty())
    errors.emplace_back("redis.password_file: redis.password is there, too: leave one out");
  if (said.database != 0 && url->mode == Mode::kCluster)
    errors.emplace_back("redis.database: a Cluster has only database 0");
  if (said.certificate.empty() != said.key.empty())
    errors.emplace_back("redis: certificate and key are needed together");
  if (!url->tls.is_on && !(said.ca_file.empty() && said.certificate.empty() && !said.insecure))
    errors.emplace_back("redis: ca_file, certificate and insecure are for TLS: write redis.url with rediss");
  return errors;
}

Result<RedisStorageOptions> redis_storage_options(const Config::Redis& said) {
  auto client = net::redis::parse_url(said.url);
  if (!client.ok()) return client.error();
  if (!said.user.empty()) client->user = said.user;
  if (!said.password.empty()) client->password = said.password;
  if (!said.password_file.empty()) {
    auto password = first_line(said.password_file);
    if (!password.ok()) return password.error();
    client->password = std::move(*password);
  }
  client->sentinel_user = said.sentinel_user;
  client->sentinel_password = said.sentinel_password;
  if (said.database != 0) client->database = said.database;
  client->tls.ca_file = said.ca_file;
  client->tls.certificate = said.certificate;
  client->tls.key = said.key;
  client->tls.skips_check = said.insecure;
  client->connections = said.connections;
  client->connect_timeout = said.connect_timeout;
  client->reply_timeout = said.timeout;
  client->wait = said.wait;
  RedisStorageOptions options;
  options.where = describe(*client);
  options.prefix = said.prefix;
  options.shards = said.shards;
  options.start_wait = said.start_wait;
  options.client = std::move(*client);
  return options;
}

}  // namespace delayq
