#include "net/redis/options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "core/encoding.h"
#include "core/text.h"

namespace delayq::net::redis {

std::string to_string(const Address& address) {
  if (address.host.find(':') != std::string::npos) return fmt::format("[{}]:{}", address.host, address.port);
  return fmt::format("{}:{}", address.host, address.port);
}

namespace {

Error wrong(std::string detail) { return in_verb("redis url", invalid(std::move(detail))); }

struct Scheme {
  std::string_view name;
  Mode mode;
  bool is_encrypted;
};
constexpr std::array kSchemes{
    Scheme{"redis", Mode::kStandalone, false},        Scheme{"rediss", Mode::kStandalone, true},
    Scheme{"redis-sentinel", Mode::kSentinel, false}, Scheme{"rediss-sentinel", Mode::kSentinel, true},
    Scheme{"redis-cluster", Mode::kCluster, false},   Scheme{"rediss-cluster", Mode::kCluster, true},
};

/// Removes from `text`, and returns, what is before the first `end`, which is removed too; all of `text` when
/// there is no `end`.
std::string_view take(std::string_view& text, char end) {
  const size_t place = std::min(text.find(end), text.size());
  const std::string_view taken = text.substr(0, place);
  text.remove_prefix(std::min(place + 1, text.size()));
  return taken;
}

Result<std::string> decode(std::string_view text, std::string_view field) {
  std::string bytes;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      bytes += text[i];
      continue;
    }
    const auto byte = i + 2 < text.size() ? from_hex(text.substr(i + 1, 2)) : std::nullopt;
    if (!byte) return wrong(fmt::format("{}: a % is followed by two hexadecimal digits", field));
    bytes += *byte;
    i += 2;
  }
  return bytes;
}

template <class Number>
std::optional<Number> number(std::string_view text) {
  Number value = 0;
  const auto [stop, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

Result<Address> parse_address(std::string_view text, uint16_t default_port) {
  Address address{{}, default_port};
  std::string_view port;
  bool has_port = false;
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    if (end == std::string_view::npos) return wrong(fmt::format("host: {} has no ]", quote(text)));
    address.host = text.substr(1, end - 1);
    const std::string_view rest = text.substr(end + 1);
    has_port = rest.starts_with(':');
    if (!rest.empty() && !has_port)
      return wrong(fmt::format("host: {} after an address in brackets; a port begins with :", quote(rest)));
    if (has_port) port = rest.substr(1);
  } else {
    const size_t colon = text.find(':');
    has_port = colon != std::string_view::npos;
    address.host = text.substr(0, colon);
    if (has_port) port = text.substr(colon + 1);
  }
  const auto is_odd = [](char c) { return c <= ' ' || c == 127 || c == '@' || c == '[' || c == ']'; };
  if (address.host.empty()) return wrong("host: it is empty; redis://host:port is right");
  if (std::any_of(address.host.begin(), address.host.end(), is_odd))
    return wrong(fmt::format("host: {} is not a host name", quote(address.host)));
  if (!has_port) return address;
  const auto value = number<uint16_t>(port);
  if (!value || *value == 0) return wrong(fmt::format("port: {} is not from 1 to 65535", quote(port)));
  address.port = *value;
  return address;
}

Status parse_credentials(std::string_view text, ClientOptions& options) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos)
    return wrong("password: user:password@ or :password@ is right, with the colon");
  Result<std::string> user = decode(text.substr(0, colon), "user");
  if (!user.ok()) return user.error();
  Result<std::string> password = decode(text.substr(colon + 1), "password");
  if (!password.ok()) return password.error();
  if (password->empty()) return wrong("password: it is empty; leave out what is before @");
  options.user = std::move(*user);
  options.password = std::move(*password);
  return {};
}

Status parse_database(std::string_view text, ClientOptions& options) {
  if (text.empty()) return {};
  const auto value = number<uint32_t>(text);
  if (!value) return wrong(fmt::format("database: {} is not a number", quote(text)));
  if (options.mode == Mode::kCluster && *value != 0)
    return wrong(fmt::format("database: {} in a cluster, which has only 0", *value));
  options.database = *value;
  return {};
}

Status parse_path(std::string_view path, ClientOptions& options) {
  if (options.mode == Mode::kSentinel) {
    options.master_name = take(path, '/');
    if (options.master_name.empty())
      return wrong("master: its name is missing; redis-sentinel://host:26379/name is right");
  }
  return parse_database(path, options);
}

}  // namespace

Result<ClientOptions> parse_url(std::string_view text) {
  const size_t end = text.find("://");
  const std::string_view name = text.substr(0, end == std::string_view::npos ? 0 : end);
  const auto* const scheme =
      std::find_if(kSchemes.begin(), kSchemes.end(), [&](const Scheme& each) { return each.name == name; });
  if (scheme == kSchemes.end())
    return wrong("scheme: redis://, redis-sentinel:// or redis-cluster:// is right, with rediss for TLS");
  std::string_view rest = text.substr(end + 3);
  ClientOptions options;
  options.mode = scheme->mode;
  options.tls.is_on = scheme->is_encrypted;
  // A password may have an @ or a / in it that is not encoded: the last @ ends it.
  if (const size_t at = rest.rfind('@'); at != std::string_view::npos) {
    if (const Status read = parse_credentials(rest.substr(0, at), options); !read.ok()) return read.error();
    rest.remove_prefix(at + 1);
  }
  std::string_view hosts = take(rest, '/');
  const uint16_t port = options.mode == Mode::kSentinel ? 26379 : 6379;
  bool is_last = false;
  do {
    is_last = hosts.find(',') == std::string_view::npos;
    Result<Address> address = parse_address(take(hosts, ','), port);
    if (!address.ok()) return address.error();
    options.addresses.push_back(std::move(*address));
  } while (!is_last);
  if (const Status read = parse_path(rest, options); !read.ok()) return read.error();
  return options;
}

}  // namespace delayq::net::redis
