#include "core/address.h"

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

namespace {

constexpr size_t kLongestName = 253;

bool is_decimal(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool is_name(std::string_view text) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789-_.";
  return !text.empty() && text.size() <= kLongestName && !text.starts_with('.') &&
         lowered(text).find_first_not_of(kLetters) == std::string_view::npos;
}

/// "127.0.0.1". Browsers write every IPv4 address like this, however it was typed.
bool is_ipv4(std::string_view text) {
  constexpr size_t kParts = 4;
  constexpr size_t kLongestPart = 3;
  constexpr std::string_view kLargestPart = "255";
  size_t parts = 0;
  for (; !text.empty(); ++parts) {
    const size_t end = std::min(text.find('.'), text.size());
    const std::string_view part = text.substr(0, end);
    if (part.empty() || part.size() > kLongestPart) return false;
    if (!is_decimal(part)) return false;
    if (part.size() == kLongestPart && part > kLargestPart) return false;
    if (end + 1 == text.size()) return false;  // a dot at the end
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts == kParts;
}

/// "[::1]"
bool is_bracketed_ipv6(std::string_view text) {
  if (text.size() < 4 || text.front() != '[' || text.back() != ']') return false;
  text = text.substr(1, text.size() - 2);
  return text.find(':') != std::string_view::npos &&
         text.find_first_not_of("0123456789abcdefABCDEF:.") == std::string_view::npos;
}

/// Removes ":9277" from the end. Returns false when there is anything else.
bool take_port(std::string_view& host) {
  constexpr size_t kLongestPort = 5;
  const size_t bracket = host.rfind(']');
  const size_t colon = host.find(':', bracket == std::string_view::npos ? 0 : bracket);
  if (colon == std::string_view::npos) return true;
  const std::string_view port = host.substr(colon + 1);
  host = host.substr(0, colon);
  return port.size() <= kLongestPort && is_decimal(port);
}

bool matches(std::string_view pattern, std::string_view name) {
  if (pattern == "*") return true;
  if (!pattern.starts_with("*.")) return pattern == name;
  pattern.remove_prefix(1);
  return name.size() > pattern.size() && name.ends_with(pattern);
}

}  // namespace

Status check_host_pattern(std::string_view pattern) {
  if (pattern == "*" || is_name(pattern.starts_with("*.") ? pattern.substr(2) : pattern)) return {};
  return invalid("expected a name without scheme and port, like delayq.example.com or *.example.com");
}

HostNames::HostNames(const std::vector<std::string>& patterns) {
  for (const std::string& pattern : patterns) {
    patterns_.push_back(lowered(pattern));
    accepts_all_ |= pattern == "*";
  }
}

bool HostNames::accepts(std::string_view host) const {
  if (accepts_all_) return true;
  if (!take_port(host)) return false;
  if (is_ipv4(host) || is_bracketed_ipv6(host)) return true;
  if (host.ends_with('.')) host.remove_suffix(1);  // the same name, written to its root
  const std::string name = lowered(host);
  return name == "localhost" || std::any_of(patterns_.begin(), patterns_.end(),
                                            [&](const std::string& each) { return matches(each, name); });
}

}  // namespace delayq
