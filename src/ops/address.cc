#include "ops/address.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "core/text.h"

namespace delayq {

namespace {

constexpr size_t kHostBytes = 255;

Error not_an_address(std::string_view text, std::string_view advice) {
  return invalid(fmt::format("{} is not an address: {}", quote(text), advice));
}

std::optional<uint16_t> parse_port(std::string_view text) {
  uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, port);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return port;
}

bool is_host_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
         c == '_';
}

/// Numeric IPv6, perhaps with a scope ("fe80::1%eth0"); the resolver checks whether it is valid.
bool is_bracketed_character(char c) { return is_host_character(c) || c == ':' || c == '%'; }

}  // namespace

Result<Address> parse_address(std::string_view text) {
  constexpr std::string_view kUse = R"(use "host:port", ":port" or "[::1]:port")";
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return not_an_address(text, kUse);
  const std::optional<uint16_t> port = parse_port(text.substr(colon + 1));
  if (!port) return not_an_address(text, "the port after the last colon must be a number from 0 to 65535");

  std::string_view host = text.substr(0, colon);
  if (host.size() > kHostBytes) return not_an_address(text, "a host has at most 255 bytes");
  const bool bracketed = host.starts_with('[');
  if (bracketed) {
    if (host.size() < 3 || !host.ends_with(']')) return not_an_address(text, kUse);
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return not_an_address(text, R"(IPv6 goes into brackets, as in "[::1]:9278")");
  }
  if (!std::all_of(host.begin(), host.end(), bracketed ? is_bracketed_character : is_host_character)) {
    return not_an_address(text, kUse);
  }
  return Address{std::string(host), *port};
}

std::string to_string(const Address& address) {
  const bool brackets = address.host.find_first_of(":%") != std::string::npos;
  return brackets ? fmt::format("[{}]:{}", address.host, address.port)
                  : fmt::format("{}:{}", address.host, address.port);
}

bool is_loopback(const Address& address) {
  return address.host == "localhost" || address.host == "::1" ||
         (address.host.starts_with("127.") &&
          address.host.find_first_not_of("0123456789.") == std::string::npos);
}

}  // namespace delayq
