#include "core/host_names.h"

#include <algorithm>

#include "core/text.h"

namespace delayq {

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
