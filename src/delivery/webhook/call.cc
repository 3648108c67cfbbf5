#include "delivery/webhook/call.h"

#include <algorithm>
#include <array>

namespace delayq::webhook {

namespace {

bool has_control_character(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f; });
}

}  // namespace

void HeaderLines::add(std::string_view name, std::string_view value) {
  if (value.empty()) return;
  // A colon in a name would be the end of it.
  if (name.empty() || name.find_first_of(": ;") != std::string_view::npos || has_control_character(name) ||
      has_control_character(value)) {
    is_valid_ = false;
    return;
  }
  lines_.append(name).append(": ").append(value);
  lines_ += '\0';
}

std::optional<std::string_view> HeaderLines::find(std::string_view name) const {
  std::string_view rest = lines_;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\0'));
    if (line.starts_with(name) && line.substr(name.size()).starts_with(": "))
      return line.substr(name.size() + 2);
    rest.remove_prefix(line.size() + 1);
  }
  return std::nullopt;
}

std::string_view name_of(CallError error) {
  constexpr std::array<std::string_view, 9> kNames{
      "none", "bad_call", "refused_address", "resolve", "connect", "tls", "timeout", "broken", "no_room"};
  return kNames[static_cast<size_t>(error)];
}

Millis RetryAfter::from(Moment now) const {
  if (delay) return *delay;
  return at ? std::max(*at - now, Millis::zero()) : Millis::zero();
}

}  // namespace delayq::webhook
