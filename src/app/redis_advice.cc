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

bool is_version_problem(std::string_view problem) { return has(problem, "or later is needed"); }

std::string advice_on_reaching(std::string_view problem, Mode mode, const RedisNames& names) {
  const std::string& url = names.url;
  if (is_password_problem(problem)) {
    return names.is_all_in_url
               ? fmt::format("look at user and password: redis://USER:PASSWORD@HOST:PORT in {}", url)
               : "look at redis.user and redis.password (or password_file)";
  }
  if (mode != Mode::kCluster && (has(problem, "MOVED ") || has(problem, "CLUSTERDOWN")))
    return fmt::format("it is a member of a Cluster: {} is redis-cluster://HOST,HOST then", url);
  if (mode == Mode::kCluster && has(problem, "cluster support disabled"))
    return fmt::format("it is no Cluster: {} is redis://HOST:PORT then", url);
  if (has(problem, "DB index"))
    return fmt::format("look at the database in {}{}", url, names.is_all_in_url ? "" : " or redis.database");
  if (has(problem, "no master but a sentinel"))
    return fmt::format("{} is redis-sentinel://HOST,HOST/MASTER then", url);
  if (has(problem, "no master but a ")) return fmt::format("name its master in {}, or its Sentinels", url);
  if (has(problem, "no Sentinel"))
    return fmt::format("name the Sentinels in {}, whose port is 26379 as a rule", url);
  if (has(problem, "certificate is not believed")) {
    return fmt::format("{} names who is to be believed, and the host in {} is one of the certificate",
                       names.is_all_in_url ? "SSL_CERT_FILE in the environment" : "redis.ca_file", url);
  }
  return {};
}

std::string advice_on(std::string_view problem, const RedisStorageOptions& options) {
  const RedisNames& names = options.names;
  if (is_rights_problem(problem)) {
    return fmt::format("the user of {}{} needs {}", names.url, names.is_all_in_url ? "" : " or redis.user",
                       needed_rights(options));
  }
  if (has(problem, "WRONGTYPE")) {
    return fmt::format(
        "another program has keys that begin with {}: choose another {}", options.prefix,
        names.is_all_in_url ? fmt::format("one, ?prefix=NAME in {}", names.url) : "redis.prefix");
  }
  if (is_version_problem(problem))
    return "earlier ones do not tell a script that memory is full or that replicas are missing";
  if (problem.starts_with("OOM ")) return "its memory is full: raise its maxmemory";
  return advice_on_reaching(problem, options.client.mode, names);
}

}  // namespace delayq
