#include "cli/redis_connection.h"

#include <memory>
#include <utility>

#include <fmt/format.h>

#include "net/redis/url.h"
#include "resp/info.h"

namespace delayq::cli {

namespace {

constexpr Millis kConnectPatience = std::chrono::seconds{5};
constexpr Millis kReplyPatience = std::chrono::minutes{1};

/// What a connection says is meant for a server of ours; what can be done about a Redis stands in its URL.
Error of_redis(const net::redis::Address& address, Error error) {
  std::string_view what = error.detail;
  const bool may_want_tls = what.find("--tls") != std::string_view::npos;
  what = what.substr(0, what.find(". "));
  const std::string_view advice = may_want_tls ? "; if it speaks TLS there, the URL begins with rediss" : "";
  error.detail = fmt::format("URL: Redis at {}: {}{}", net::redis::to_string(address), what, advice);
  error.op = "redis";
  return error;
}

Status tell(Connection& connection, const std::vector<std::string_view>& command, ErrorCode code) {
  const Result<resp::Value> reply = connection.ask(command, kReplyPatience);
  if (!reply) return reply.error();
  if (!reply->is_error()) return {};
  std::string said = fmt::format("it says: {}", reply->text);
  while (said.ends_with('.')) said.pop_back();
  if (code == ErrorCode::kUnauthorized)
    said += "; redis://USER:PASSWORD@HOST or redis://:PASSWORD@HOST is right";
  return Error{code, {}, std::move(said)};
}

Status greet(Connection& connection, const net::redis::ClientOptions& said) {
  if (!said.password.empty()) {
    std::vector<std::string_view> command{"AUTH"};
    if (!said.user.empty()) command.emplace_back(said.user);
    command.emplace_back(said.password);
    if (Status status = tell(connection, command, ErrorCode::kUnauthorized); !status) return status;
  }
  // Refused without a password where one is needed.
  const ErrorCode code = said.password.empty() ? ErrorCode::kUnauthorized : ErrorCode::kUnavailable;
  if (Status status = tell(connection, {"PING"}, code); !status) return status;
  if (said.database == 0) return {};
  const std::string database = std::to_string(said.database);
  return tell(connection, {"SELECT", database}, ErrorCode::kInvalid);
}

/// No, also when it may not be asked.
bool is_member(Connection& connection) {
  const Result<resp::Value> info =
      connection.ask(std::vector<std::string_view>{"INFO", "cluster"}, kReplyPatience);
  return info && resp::info_line(info->text, "cluster_enabled") == "1";
}

}  // namespace

Result<RedisPlace> open_redis(const std::string& url) {
  const Result<net::redis::ClientOptions> said = net::redis::parse_url(url);
  if (!said) return invalid("URL: " + said.error().detail);
  if (said->mode != net::redis::Mode::kStandalone || said->addresses.size() != 1)
    return invalid("URL: name the one server that has the jobs: redis://host:port/database");
  const net::redis::Address& address = said->addresses.front();
  Server server{.address = {address.host, address.port}, .token = {}, .tls = {}};
  if (said->tls.is_on) server.tls = Server::Tls{};
  Result<Connection> opened = Connection::open(server, kConnectPatience);
  if (!opened) return of_redis(address, opened.error());
  auto connection = std::make_shared<Connection>(std::move(*opened));
  if (Status status = greet(*connection, *said); !status) return of_redis(address, status.error());
  return RedisPlace{seeds::RedisReader([connection](std::span<const seeds::Words> commands) {
                      return connection->ask_all(commands, kReplyPatience);
                    }),
                    fmt::format("{}/{}", net::redis::to_string(address), said->database),
                    is_member(*connection)};
}

}  // namespace delayq::cli
