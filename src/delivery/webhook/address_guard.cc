#include "delivery/webhook/address_guard.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <span>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include "core/text.h"

namespace delayq::webhook {

namespace {

constexpr uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr uint8_t kCompatible[12] = {};
constexpr uint8_t kTranslated[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0};
constexpr uint8_t kNat64[12] = {0, 0x64, 0xff, 0x9b};
constexpr uint8_t kLocalNat64[6] = {0, 0x64, 0xff, 0x9b, 0, 1};
constexpr uint8_t k6to4[2] = {0x20, 0x02};

bool starts(const uint8_t* bytes, std::span<const uint8_t> prefix) {
  return std::memcmp(bytes, prefix.data(), prefix.size()) == 0;
}

struct Forbidden {
  std::string_view network;
  std::string_view what;
};
constexpr std::array<Forbidden, 7> kForbidden{{
    {"0.0.0.0/8", "unspecified"},
    {"::/128", "unspecified"},
    {"169.254.0.0/16", "link-local"},
    {"fe80::/10", "link-local"},
    {"224.0.0.0/4", "multicast"},
    {"ff00::/8", "multicast"},
    {"240.0.0.0/4", "broadcast or reserved"},
}};

struct ForbiddenNetwork {
  Network network;
  std::string_view what;
};

const std::vector<ForbiddenNetwork>& forbidden_networks() {
  static const std::vector<ForbiddenNetwork> kNetworks = [] {
    std::vector<ForbiddenNetwork> all;
    for (const Forbidden& row : kForbidden) all.push_back({Network::parse(row.network).value(), row.what});
    return all;
  }();
  return kNetworks;
}

bool is_in(const std::vector<Network>& networks, const IpAddress& address) {
  return std::any_of(networks.begin(), networks.end(),
                     [&](const Network& each) { return each.contains(address); });
}

Result<std::vector<Network>> parse_all(std::string_view list, const std::vector<std::string>& texts) {
  std::vector<Network> networks;
  for (const std::string& text : texts) {
    auto network = Network::parse(text);
    if (!network.ok()) {
      Error error = network.error();
      error.detail = fmt::format("{}: {}", list, error.detail);
      return error;
    }
    networks.push_back(*network);
  }
  return networks;
}

}  // namespace

IpAddress IpAddress::v4(const uint8_t* four_bytes) {
  IpAddress address;
  std::memcpy(address.bytes_.at, kMapped, sizeof(kMapped));
  std::memcpy(address.bytes_.at + sizeof(kMapped), four_bytes, 4);
  return address;
}

std::optional<IpAddress> IpAddress::parse(std::string_view text) {
  const std::string terminated(text);
  if (terminated.find('\0') != std::string::npos) return std::nullopt;
  in_addr four{};
  if (::inet_pton(AF_INET, terminated.c_str(), &four) == 1) {
    return v4(reinterpret_cast<const uint8_t*>(&four.s_addr));
  }
  in6_addr six{};
  if (::inet_pton(AF_INET6, terminated.c_str(), &six) != 1) return std::nullopt;
  IpAddress address;
  std::memcpy(address.bytes_.at, six.s6_addr, sizeof(address.bytes_.at));
  return address;
}

std::optional<IpAddress> IpAddress::from(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    sockaddr_in four{};
    std::memcpy(&four, &address, sizeof(four));
    return v4(reinterpret_cast<const uint8_t*>(&four.sin_addr.s_addr));
  }
  if (address.sa_family != AF_INET6) return std::nullopt;
  sockaddr_in6 six{};
  std::memcpy(&six, &address, sizeof(six));
  IpAddress result;
  std::memcpy(result.bytes_.at, six.sin6_addr.s6_addr, sizeof(result.bytes_.at));
  return result;
}

bool IpAddress::is_v4() const { return starts(bytes_.at, kMapped); }

std::optional<IpAddress> IpAddress::embedded_v4() const {
  if (starts(bytes_.at, k6to4)) return v4(bytes_.at + sizeof(k6to4));
  const bool is_at_end = starts(bytes_.at, kCompatible) || starts(bytes_.at, kTranslated) ||
                         starts(bytes_.at, kNat64) || starts(bytes_.at, kLocalNat64);
  if (!is_at_end) return std::nullopt;
  // The unspecified address and the loopback are not compatible addresses.
  const bool is_own = starts(bytes_.at, kCompatible) && bytes_.at[12] == 0 && bytes_.at[13] == 0 &&
                      bytes_.at[14] == 0 && bytes_.at[15] <= 1;
  return is_own ? std::nullopt : std::optional(v4(bytes_.at + 12));
}

std::string IpAddress::to_string() const {
  char text[INET6_ADDRSTRLEN] = {};
  if (is_v4()) {
    ::inet_ntop(AF_INET, bytes_.at + sizeof(kMapped), text, sizeof(text));
  } else {
    ::inet_ntop(AF_INET6, bytes_.at, text, sizeof(text));
  }
  return text;
}

Result<Network> Network::parse(std::string_view text) {
  const auto wrong = [&](std::string_view what) { return invalid(fmt::format("{} {}", quote(text), what)); };
  const size_t slash = text.find('/');
  const auto base = IpAddress::parse(text.substr(0, slash));
  if (!base) return wrong("is not a network; write 10.0.0.0/8, fd00::/8 or one address");
  Network network;
  network.base_ = *base;
  const int bits = base->is_v4() ? 32 : 128;
  int prefix = bits;
  if (slash != std::string_view::npos) {
    const std::string_view digits = text.substr(slash + 1);
    const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), prefix);
    if (failure != std::errc{} || end != digits.data() + digits.size() || prefix < 0 || prefix > bits) {
      return wrong(fmt::format("needs a number from 0 to {} behind the slash", bits));
    }
  }
  network.prefix_ = prefix + (128 - bits);
  for (int bit = network.prefix_; bit < 128; ++bit) {
    if ((base->bytes_.at[bit / 8] >> (7 - bit % 8) & 1) != 0) {
      return wrong(
          fmt::format("has bits beyond its first {}; set them to zero, or write a longer prefix", prefix));
    }
  }
  return network;
}

bool Network::contains(const IpAddress& address) const {
  if (address.is_v4() != base_.is_v4()) return false;
  const int whole = prefix_ / 8;
  if (std::memcmp(base_.bytes_.at, address.bytes_.at, static_cast<size_t>(whole)) != 0) return false;
  const int rest = prefix_ % 8;
  return rest == 0 || ((base_.bytes_.at[whole] ^ address.bytes_.at[whole]) >> (8 - rest)) == 0;
}

Result<AddressGuard> AddressGuard::create(const std::vector<std::string>& allow,
                                          const std::vector<std::string>& deny) {
  AddressGuard guard;
  auto allowed = parse_all("allow", allow);
  if (!allowed.ok()) return allowed.error();
  auto denied = parse_all("deny", deny);
  if (!denied.ok()) return denied.error();
  guard.allow_ = std::move(*allowed);
  guard.deny_ = std::move(*denied);
  return guard;
}

std::optional<std::string> AddressGuard::refusal(const IpAddress& address) const {
  const auto embedded = address.embedded_v4();
  const IpAddress inner = embedded.value_or(address);
  for (const auto& [network, what] : forbidden_networks()) {
    if (network.contains(address) || network.contains(inner)) {
      return fmt::format("{} is {}", address.to_string(), what);
    }
  }
  if (is_in(deny_, address) || is_in(deny_, inner)) {
    return fmt::format("{} is on the deny list", address.to_string());
  }
  if (!allow_.empty() && !is_in(allow_, address) && !is_in(allow_, inner)) {
    return fmt::format("{} is not on the allow list", address.to_string());
  }
  return std::nullopt;
}

}  // namespace delayq::webhook
