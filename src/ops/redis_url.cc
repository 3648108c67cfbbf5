#include "ops/redis_url.h"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/ascii.h"
#include "core/quote.h"

namespace delayq {

namespace {

constexpr std::string_view kUse =
    "use redis://HOST:PORT/DATABASE, redis-sentinel://HOST,HOST/MASTER or redis-cluster://HOST,HOST "
    "(rediss... "
    "for TLS)";
constexpr uint16_t kPort = 6379;
constexpr uint16_t kSentinelPort = 26379;
constexpr std::string_view kMaster = "mymaster";

struct Scheme {
  std::string_view name;
  RedisUrl::Mode mode;
  bool has_tls;
};
constexpr std::array kSchemes{
    Scheme{"redis", RedisUrl::Mode::kOne, false},
    Scheme{"rediss", RedisUrl::Mode::kOne, true},
    Scheme{"redis-sentinel", RedisUrl::Mode::kSentinel, false},
    Scheme{"rediss-sentinel", RedisUrl::Mode::kSentinel, true},
    Scheme{"redis-cluster", RedisUrl::Mode::kCluster, false},
    Scheme{"rediss-cluster", RedisUrl::Mode::kCluster, true},
};

Error invalid(std::string detail) { return {ErrorCode::kInvalid, {}, std::move(detail)}; }

std::optional<unsigned> hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

/// Nothing when a % has no two digits behind it.
std::optional<std::string> decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const auto high = hex_digit(text[i + 1]);
    const auto low = hex_digit(text[i + 2]);
    if (!high || !low) return std::nullopt;
    out += static_cast<char>(*high * 16 + *low);
    i += 2;
  }
  return out;
}

/// The part before the first `sign`, which is taken off with it.
std::string_view cut(std::string_view& rest, char sign) {
  const size_t end = std::min(rest.find(sign), rest.size());
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(std::min(rest.size(), end + 1));
  return part;
}

Status take_login(std::string_view login, RedisUrl& url) {
  const size_t colon = login.find(':');
  if (colon == std::string_view::npos)
    return invalid("before the @ there is a user or nothing, a colon and the password");
  const auto user = decoded(login.substr(0, colon));
  const auto password = decoded(login.substr(colon + 1));
  if (!user || !password) return invalid("a % in the user or the password is written %25");
  url.user = *user;
  url.password = *password;
  return {};
}

Status take_hosts(std::string_view hosts, RedisUrl& url) {
  const uint16_t port = url.mode == RedisUrl::Mode::kSentinel ? kSentinelPort : kPort;
  while (!hosts.empty()) {
    const std::string_view host = cut(hosts, ',');
    const bool has_port = host.rfind(':') != std::string_view::npos && !host.ends_with(']');
    auto address = parse_address(has_port ? std::string(host) : fmt::format("{}:{}", host, port));
    if (!address.ok()) return invalid(std::move(address.error().detail));
    if (address->host.empty() || address->port == 0)
      return invalid(
          fmt::format("{} is not where a Redis can be: a host and a port are needed", quote(host)));
    url.hosts.push_back(std::move(*address));
  }
  if (url.hosts.empty()) return invalid(fmt::format("there is no host in it: {}", kUse));
  return {};
}

Status take_database(std::string_view text, RedisUrl& url) {
  if (text.empty()) return {};
  uint32_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, number);
  if (problem != std::errc{} || stop != end)
    return invalid(fmt::format("the database behind the last / is a number, not {}", quote(text)));
  if (url.mode == RedisUrl::Mode::kCluster && number != 0) return invalid("a Cluster has only database 0");
  url.database = number;
  return {};
}

}  // namespace

Result<RedisUrl> parse_redis_url(std::string_view text) {
  const size_t end = text.find("://");
  if (end == std::string_view::npos) return invalid(fmt::format("it is not a URL: {}", kUse));
  const std::string name = lowered(text.substr(0, end));
  const auto* const scheme =
      std::find_if(kSchemes.begin(), kSchemes.end(), [&](const Scheme& each) { return each.name == name; });
  if (scheme == kSchemes.end())
    return invalid(fmt::format("{} is not a kind of Redis: {}", quote(name + "://"), kUse));
  RedisUrl url;
  url.mode = scheme->mode;
  url.has_tls = scheme->has_tls;
  std::string_view rest = text.substr(end + 3);
  if (rest.find_first_of("?#") != std::string_view::npos)
    return invalid("nothing goes behind ? or #; in a password they are written %3F and %23");
  if (const size_t at = rest.rfind('@'); at != std::string_view::npos) {
    if (Status status = take_login(rest.substr(0, at), url); !status) return status.error();
    rest.remove_prefix(at + 1);
  }
  if (Status status = take_hosts(cut(rest, '/'), url); !status) return status.error();
  if (url.mode == RedisUrl::Mode::kSentinel) {
    url.master = cut(rest, '/');
    if (url.master.empty()) url.master = kMaster;
  }
  if (Status status = take_database(rest, url); !status) return status.error();
  return url;
}

Status check_redis_url(std::string_view text) {
  const auto url = parse_redis_url(text);
  return url.ok() ? Status{} : Status(url.error());
}

Status check_redis_prefix(std::string_view text) {
  const bool is_right = std::all_of(text.begin(), text.end(),
                                    [](char c) { return c > ' ' && c < '\x7f' && c != '{' && c != '}'; });
  return is_right ? Status{} : Status(invalid("a prefix has visible ASCII characters, without { and }"));
}

std::string without_password(std::string_view url) {
  const size_t begin = url.find("://");
  const size_t at = url.rfind('@');
  if (begin == std::string_view::npos || at == std::string_view::npos || at < begin) return std::string(url);
  const size_t colon = url.find(':', begin + 3);
  // Without a colon the whole of it may be a password that somebody put there.
  const size_t from = colon < at ? colon + 1 : begin + 3;
  return fmt::format("{}***{}", url.substr(0, from), url.substr(at));
}

std::string describe(const RedisUrl& url) {
  std::vector<std::string> hosts;
  for (const Address& host : url.hosts) hosts.push_back(to_string(host));
  const std::string all = fmt::format("{}", fmt::join(hosts, ", "));
  switch (url.mode) {
    case RedisUrl::Mode::kOne:
      break;
    case RedisUrl::Mode::kSentinel:
      return fmt::format("redis {} by Sentinel at {}", url.master, all);
    case RedisUrl::Mode::kCluster:
      return fmt::format("redis Cluster at {}", all);
  }
  return fmt::format("redis at {}", all);
}

}  // namespace delayq
