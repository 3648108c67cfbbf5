#include "cli/redis_connection.h"

#include <memory>
#include <utility>

#include <fmt/format.h>

#include "net/redis/url.h"

namespace delayq::cli {

namespace {

constexpr Millis kConnectPatience = std::chrono::seconds{5};
constexpr Millis kReplyPatience = std::chrono::minutes{1};

Status tell(Connection& connection, const std::vector<std::string_view>& command, ErrorCode code) {
  const Result<resp::Value> reply = connection.ask(command, kReplyPatience);
  if (!reply) return reply.error();
  if (reply->is_error()) return Error{code, {}, fmt::format("Redis says: {}", reply->text)};
  return {};
}

Status greet(Connection& connection, const net::redis::ClientOptions& said) {
  if (!said.password.empty()) {
    std::vector<std::string_view> command{"AUTH"};
    if (!said.user.empty()) command.emplace_back(said.user);
    command.emplace_back(said.password);
    if (Status status = tell(connection, command, ErrorCode::kUnauthorized); !status) return status;
  }
  if (said.database == 0) return {};
  const std::string database = std::to_string(said.database);
  return tell(connection, {"SELECT", database}, ErrorCode::kInvalid);
}

}  // namespace

Result<RedisPlace> open_redis(const std::string& url) {
  const Result<net::redis::ClientOptions> said = net::redis::parse_url(url);
  if (!said) return Error{ErrorCode::kInvalid, {}, "URL: " + said.error().detail};
  if (said->mode != net::redis::Mode::kStandalone || said->addresses.size() != 1)
    return Error{
        ErrorCode::kInvalid, {}, "URL: name the one server that has the jobs: redis://host:port/database"};
  const net::redis::Address& address = said->addresses.front();
  Server server{.address = {address.host, address.port}, .token = {}, .tls = {}};
  if (said->tls.is_on) server.tls = Server::Tls{};
  Result<Connection> opened = Connection::open(server, kConnectPatience);
  if (!opened) return opened.error();
  auto connection = std::make_shared<Connection>(std::move(*opened));
  if (Status status = greet(*connection, *said); !status) return status.error();
  return RedisPlace{seeds::RedisReader([connection](std::span<const seeds::Words> commands) {
                      return connection->ask_all(commands, kReplyPatience);
                    }),
                    fmt::format("{}/{}", net::redis::to_string(address), said->database)};
}

}  // namespace delayq::cli
