#include "cli/place.h"

#include <memory>
#include <optional>

#include <fmt/format.h>

#include "cli/connection.h"

namespace delayq::cli {

namespace {

constexpr Millis kConnectPatience = std::chrono::seconds{5};
constexpr Millis kReplyPatience = std::chrono::minutes{1};

Result<Server> server_of_url(std::string_view option, std::string_view text, bool is_encrypted) {
  Server server;
  if (const size_t sign = text.rfind('@'); sign != std::string_view::npos) {
    server.token = text.substr(0, sign);
    text.remove_prefix(sign + 1);
  }
  while (!text.empty() && text.back() == '/') text.remove_suffix(1);
  const Result<Address> address = parse_address(std::string(text));
  if (!address) return Error{ErrorCode::kInvalid, {}, fmt::format("{}: {}", option, address.error().detail)};
  server.address = *address;
  if (is_encrypted) server.tls = Server::Tls{};
  return server;
}

}  // namespace

Result<Place> open_place(const Surroundings& world, std::string_view option, const std::string& text) {
  const size_t colon = text.find("://");
  const std::string scheme = colon == std::string::npos ? std::string() : text.substr(0, colon);
  if (scheme.empty() && text.find('/') != std::string::npos) {
    Result<Ask> ask = ask_directory(world, text);
    if (!ask) return ask.error();
    return Place{std::move(*ask), text};
  }
  if (scheme != "delayq" && scheme != "delayqs") {
    return Error{
        ErrorCode::kInvalid,
        {},
        fmt::format("{}: expected delayq://HOST:PORT, a server's port for RESP (delayqs:// over TLS), or a "
                    "data directory",
                    option)};
  }
  const Result<Server> server =
      server_of_url(option, std::string_view(text).substr(colon + 3), scheme == "delayqs");
  if (!server) return server.error();
  auto connection = std::make_shared<std::optional<Connection>>();
  Ask ask = [connection, server = *server](const Words& command) -> Result<resp::Value> {
    if (!*connection) {
      Result<Connection> opened = Connection::open(server, kConnectPatience);
      if (!opened) return opened.error();
      connection->emplace(std::move(*opened));
    }
    const std::vector<std::string_view> words(command.begin(), command.end());
    Result<resp::Value> reply = (*connection)->ask(words, kReplyPatience);
    if (!reply) connection->reset();
    if (reply && reply->is_error()) return error_of_reply(reply->text);
    return reply;
  };
  return Place{std::move(ask), to_string(server->address)};
}

}  // namespace delayq::cli
