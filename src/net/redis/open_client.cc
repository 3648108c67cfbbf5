#include "net/redis/open_client.h"

#include <utility>

#include "net/redis/redis_client.h"

namespace delayq::net::redis {

namespace {

Error invalid(std::string detail) { return {ErrorCode::kInvalid, "redis", std::move(detail), {}}; }

Status check(const ClientOptions& options) {
  if (options.addresses.empty()) return invalid("addresses: at least one is needed");
  if (options.connections == 0) return invalid("connections: at least one is needed");
  if (options.mode == Mode::kSentinel && options.master_name.empty())
    return invalid("master_name: Sentinel knows masters by their names");
  if (options.mode == Mode::kCluster && options.database != 0)
    return invalid("database: a cluster has only number 0");
  if (options.password.empty() && !options.user.empty()) return invalid("password: a user needs one");
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
