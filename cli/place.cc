#include "cli/place.h"

#include <memory>
#include <optional>
#include <random>

#include <fmt/format.h>

#include "cli/connection.h"

namespace delayq::cli {

namespace {

constexpr Millis kPlaceConnectPatience = std::chrono::seconds{5};
constexpr Millis kPlaceReplyPatience = std::chrono::minutes{1};

Result<Server> server_of_url(std::string_view option, std::string_view text, bool is_encrypted) {
  Server server;
  if (const size_t sign = text.rfind('@'); sign != std::string_view::npos) {
    server.token = text.substr(0, sign);
    text.remove_prefix(sign + 1);
  }
  while (!text.empty() && text.back() == '/') text.remove_suffix(1);
  const Result<Address> address = parse_address(std::string(text));
  if (!address) return invalid(fmt::format("{}: {}", option, address.error().detail));
  server.address = *address;
  if (is_encrypted) server.tls = Server::Tls{};
  return server;
}

/// A data directory, or a Redis, used without a server.
Result<Place> without_server(const Surroundings& world, const Surroundings::StorageName& storage,
                             std::string name, bool is_exclusive) {
  Result<Surroundings::Storage> opened = open_storage(world, storage);
  if (!opened) return opened.error();
  Place place;
  place.name = std::move(name);
  place.option = storage.option;
  place.is_exclusive = is_exclusive;
  place.is_new = opened->is_new;
  place.shards = opened->shards;
  place.ask = one_by_one(opened->ask);
  place.ask_all = std::move(opened->ask);
  return place;
}

/// A connection that is opened again after an error.
class ServerLine {
 public:
  explicit ServerLine(Server server) : server_(std::move(server)) {}

  Result<std::vector<resp::Value>> ask_all(std::span<const Words> commands) {
    if (commands.empty()) return std::vector<resp::Value>{};
    if (!connection_) {
      Result<Connection> opened = Connection::open(server_, kPlaceConnectPatience);
      if (!opened) return opened.error();
      connection_.emplace(std::move(*opened));
    }
    Result<std::vector<resp::Value>> replies = connection_->ask_all(commands, kPlaceReplyPatience);
    if (!replies) connection_.reset();
    return replies;
  }

 private:
  Server server_;
  std::optional<Connection> connection_;
};

Place open_server(const Server& server, const std::string& option) {
  auto line = std::make_shared<ServerLine>(server);
  Place place;
  place.name = to_string(server.address);
  place.option = option;
  place.ask_all = [line](std::span<const Words> commands) { return line->ask_all(commands); };
  place.ask = one_by_one(place.ask_all);
  return place;
}

Error not_a_place(std::string_view option, const std::string& text, std::string_view scheme) {
  const bool is_http = scheme == "http" || scheme == "https";
  if (scheme.empty() && text.find_first_of(":@") == std::string::npos && !text.empty()) {
    return invalid(
        fmt::format("{}: a directory is written with a /: ./{} is right, if it is one; servers and Redises "
                    "are delayq://HOST:PORT and redis://HOST:PORT",
                    option, text));
  }
  return invalid(
      fmt::format("{}: {}expected delayq://HOST:PORT, a server's port for RESP (delayqs:// over TLS), "
                  "redis://HOST:PORT, the redis engine's Redis, or a data directory with a / in it",
                  option,
                  is_http ? "a server is reached at its port for RESP, 9278 unless server.resp says "
                            "otherwise, not over HTTP; "
                          : ""));
}

/// The URL without user, password and query.
std::string without_secrets(std::string_view url) {
  const size_t begin = url.find("://") + 3;
  const size_t sign = url.rfind('@');
  std::string shown(url.substr(0, begin));
  shown += url.substr(sign == std::string_view::npos ? begin : sign + 1);
  return shown;
}

/// Errors of connections give advice about options of other verbs; here these are parts of a URL.
void in_words_of_a_url(std::string& detail) {
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"leave --tls out, or name", "begin with delayq://, or name"},
      {"If it speaks TLS there, use --tls", "If it speaks TLS there, begin with delayqs://"},
      {"the token (--token, $DELAYQ_TOKEN)", "the token of delayq://TOKEN@HOST:PORT"},
  };
  for (const auto& [options, url] : kWords) {
    if (const size_t place = detail.find(options); place != std::string::npos)
      detail.replace(place, options.size(), url);
  }
}

}  // namespace

Error in_place(const Place& place, Error error) {
  std::string& detail = error.detail;
  in_words_of_a_url(detail);
  const auto has = [&detail](std::string_view part) { return detail.find(part) != std::string::npos; };
  if (detail.starts_with("unknown command 'TOPICS'")) {
    detail = fmt::format("{0} is no delayq but a Redis, as it seems: redis://{0} names the redis engine's",
                         place.name);
  } else if (has("does not speak RESP")) {
    detail += "; a server is reached at its port for RESP, 9278 unless server.resp says otherwise";
  }
  if (error.code == ErrorCode::kUnauthorized) {
    error.op = "place";  // so that no advice about options is added to a server's error
    if (!has("TOKEN@")) detail += "; use delayq://TOKEN@HOST:PORT to authenticate";
  }
  if (!has(place.name)) detail = fmt::format("{}: {}", place.name, detail);
  if (!place.option.empty()) detail = fmt::format("{}: {}", place.option, detail);
  return error;
}

Result<Place> open_place(const Surroundings& world, const std::string& option, const std::string& text,
                         Surroundings::Access access) {
  const Surroundings::StorageName storage{text, option, access};
  const size_t colon = text.find("://");
  const std::string scheme = colon == std::string::npos ? std::string() : text.substr(0, colon);
  if (scheme.empty() && text.find('/') != std::string::npos)
    return without_server(world, storage, text, true);
  if (scheme.starts_with("redis")) return without_server(world, storage, without_secrets(text), false);
  if (scheme != "delayq" && scheme != "delayqs") return not_a_place(option, text, scheme);
  const Result<Server> server =
      server_of_url(option, std::string_view(text).substr(colon + 3), scheme == "delayqs");
  if (!server) return server.error();
  return open_server(*server, option);
}

Status check_apart(const Place& from, const Place& to, const std::string& topic) {
  std::random_device random;
  const std::string id = fmt::format("delayq-migrate-{:08x}{:08x}", random(), random());
  // Due far in the future: if this program is killed here, no consumer gets the job.
  const Result<resp::Value> stored = to.ask({"PUSH", topic, "36500d", "", "ID", id});
  if (!stored) return in_place(to, stored.error());
  const Result<resp::Value> found = from.ask({"GET", topic, id});
  const Result<resp::Value> removed = to.ask({"CANCEL", topic, id});
  if (!found) return in_place(from, found.error());
  if (!removed) return in_place(to, removed.error());
  if (found->find("body") == nullptr) return {};
  return invalid(fmt::format("--to: {} has the same jobs as {}: it is the same place", to.name, from.name));
}

}  // namespace delayq::cli
