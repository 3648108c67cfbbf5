#include "app/redis_advice.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace delayq {

namespace {

using net::redis::Mode;

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

bool is_password_problem(std::string_view problem) {
  constexpr std::array kSigns{"WRONGPASS", "NOAUTH", "invalid password", "without any password configured"};
  return std::any_of(kSigns.begin(), kSigns.end(),
                     [problem](std::string_view sign) { return has(problem, sign); });
}

/// Of a command, or of one in a script.
bool is_rights_problem(std::string_view problem) {
  return has(problem, "NOPERM") || has(problem, "The user executing the script");
}

/// What an ACL user needs, as ACL SETUSER takes it.
std::string needed_rights(const RedisStorageOptions& options) {
  constexpr std::array kByMode{"", " +role", " +cluster"};
  return fmt::format("~{0}:* &{0}:news +@read +@write +@scripting +@pubsub +@connection +info +time{1}",
                     options.prefix, kByMode[static_cast<size_t>(options.client.mode)]);
}

}  // namespace

bool is_login_problem(std::string_view problem) {
  return is_password_problem(problem) || is_rights_problem(problem);
}

std::string advice_on(std::string_view problem, const RedisStorageOptions& options) {
  if (is_password_problem(problem)) return "look at redis.user and redis.password (or password_file)";
  if (is_rights_problem(problem))
    return fmt::format("the user of redis.url or redis.user needs {}", needed_rights(options));
  if (has(problem, "WRONGTYPE"))
    return fmt::format("another program has keys that begin with {}: choose another redis.prefix",
                       options.prefix);
  if (problem.starts_with("OOM ")) return "its memory is full: raise its maxmemory";
  if (options.client.mode != Mode::kCluster && (has(problem, "MOVED ") || has(problem, "CLUSTERDOWN")))
    return "it is a member of a Cluster: redis.url is redis-cluster://HOST,HOST then";
  if (options.client.mode == Mode::kCluster && has(problem, "cluster support disabled"))
    return "it is no Cluster: redis.url is redis://HOST:PORT then";
  if (has(problem, "DB index")) return "look at the database in redis.url or redis.database";
  if (has(problem, "no master but a sentinel")) return "redis.url is redis-sentinel://HOST,HOST/MASTER then";
  if (has(problem, "no master but a ")) return "name its master in redis.url, or its Sentinels";
  if (has(problem, "no Sentinel")) return "name the Sentinels in redis.url, whose port is 26379 as a rule";
  if (has(problem, "certificate is not believed"))
    return "redis.ca_file names who is to be believed, and the host in redis.url is one of the certificate";
  return {};
}

}  // namespace delayq
