#include "ops/environment_check.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "core/ascii.h"
#include "core/nearest.h"
#include "ops/config_table.h"

namespace delayq {

namespace {

constexpr std::string_view kPrefix = "DELAYQ_";

/// Read by clients, or set for the commands that `pop --exec` runs.
constexpr std::array<std::string_view, 8> kOthers{"DELAYQ_RESP",  "DELAYQ_TOKEN", "DELAYQ_CA",
                                                  "DELAYQ_TOPIC", "DELAYQ_ID",    "DELAYQ_ATTEMPT",
                                                  "DELAYQ_LEASE", "DELAYQ_DUE_AT"};

/// DELAYQ_SERVICE_HOST, DELAYQ_PORT = tcp://10.0.0.1:9277, DELAYQ_PORT_9277_TCP_ADDR and the like.
bool is_of_kubernetes(std::string_view name, std::string_view value) {
  if (name.ends_with("_SERVICE_HOST") || name.find("_SERVICE_PORT") != std::string_view::npos) return true;
  const size_t port = name.find("_PORT");
  if (port == std::string_view::npos) return false;
  const std::string_view behind = name.substr(port + 5);
  if (behind.size() > 1 && behind[0] == '_' && behind[1] >= '0' && behind[1] <= '9') return true;
  return value.starts_with("tcp://") || value.starts_with("udp://") || value.starts_with("sctp://");
}

std::vector<std::string> setting_names() {
  std::vector<std::string> names;
  for (const ConfigRow& row : config_rows()) {
    if (row.section != kTopicsSection && row.section != kTokensSection) names.push_back(variable_of(row));
  }
  return names;
}

/// The section that a name begins with; empty: none.
std::string_view section_of(std::string_view name) {
  const std::string rest = lowered(name.substr(kPrefix.size()));
  std::string_view longest;
  for (const ConfigSection& section : config_sections()) {
    const bool begins_so = rest.starts_with(section.name) && rest.size() > section.name.size() &&
                           rest[section.name.size()] == '_';
    if (begins_so && section.name.size() > longest.size()) longest = section.name;
  }
  return longest;
}

}  // namespace

std::vector<std::string> check_environment(std::span<const std::pair<std::string, std::string>> variables) {
  std::vector<std::string> errors;
  const std::vector<std::string> known = setting_names();
  const std::vector<std::string_view> views(known.begin(), known.end());
  for (const auto& [name, value] : variables) {
    const bool is_ours = name.starts_with(kPrefix);
    const bool is_known = std::find(known.begin(), known.end(), name) != known.end() ||
                          std::find(kOthers.begin(), kOthers.end(), name) != kOthers.end();
    if (!is_ours || is_known || is_of_kubernetes(name, value)) continue;
    const std::string_view section = section_of(name);
    if (section == kTopicsSection || section == kTokensSection) {
      errors.push_back(fmt::format(
          "{} in the environment: {} cannot be configured there; use the file or --set", name, section));
      continue;
    }
    const std::string_view meant = nearest(name, views);
    const std::string advice = meant.empty() ? "" : fmt::format("; did you mean {}?", meant);
    if (section.empty() && meant.empty()) continue;  // somebody else's
    errors.push_back(fmt::format("{} in the environment is not a setting{}", name, advice));
  }
  return errors;
}

}  // namespace delayq
