#include "net/redis/client.h"

#include <utility>

#include "net/redis/redis_client.h"

namespace delayq::net::redis {

namespace {

/// `detail` starts with the name of the option that is wrong.
Error wrong_option(std::string detail) { return in_verb("redis", invalid(std::move(detail))); }

Status check(const ClientOptions& options) {
  if (options.addresses.empty()) return wrong_option("addresses: at least one is needed");
  if (options.connections == 0) return wrong_option("connections: at least one is needed");
  if (options.mode == Mode::kSentinel && options.master_name.empty())
    return wrong_option("master_name: Sentinel knows masters by their names");
  if (options.mode == Mode::kCluster && options.database != 0)
    return wrong_option("database: a cluster has only number 0");
  if (options.password.empty() && !options.user.empty()) return wrong_option("password: a user needs one");
  return {};
}

}  // namespace

Result<std::unique_ptr<Client>> open_client(Loop& loop, ClientOptions options) {
  if (Status status = check(options); !status.ok()) return status.error();
  std::shared_ptr<TlsClient> tls;
  if (options.tls.is_on) {
    const Tls& wanted = options.tls;
    auto opened = TlsClient::open({wanted.ca_file, wanted.certificate, wanted.key, wanted.skips_check});
    if (!opened.ok()) return opened.error();
    tls = std::move(*opened);
  }
  auto client = std::make_unique<RedisClient>(loop, std::move(options), std::move(tls));
  client->start();
  return std::unique_ptr<Client>(std::move(client));
}

}  // namespace delayq::net::redis
