#include "ops/config_in_force.h"

#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "ops/config_table.h"

namespace delayq {

namespace {

/// The last that was said about each key.
using Keys = std::map<std::string_view, const Said*>;

struct Section {
  std::string_view name;
  Keys keys;
};

/// In the order in which they were first named.
std::vector<Section> by_section(std::span<const Said> said) {
  std::vector<Section> sections;
  std::map<std::pair<std::string_view, std::string_view>, size_t> places;
  for (const Said& each : said) {
    const auto [place, is_new] = places.try_emplace({each.section, each.number}, sections.size());
    if (is_new) sections.push_back({each.section, {}});
    if (!each.key.empty()) sections[place->second].keys[each.key] = &each;
  }
  return sections;
}

std::string line_of(const Said& said) {
  return fmt::format("{} = {}  # {}\n", said.key, said.value, said.origin);
}

std::string line_of(const ConfigRow& row, const Keys& keys) {
  if (const auto found = keys.find(row.key); found != keys.end()) return line_of(*found->second);
  if (row.initial.empty()) return fmt::format("# {}: no limit\n", row.key);
  return fmt::format("{} = {}  # default\n", row.key, row.initial);
}

}  // namespace

std::string config_in_force(std::span<const Said> said) {
  const std::vector<Section> sections = by_section(said);
  std::string text;
  for (const ConfigSection& known : config_sections()) {
    if (known.name == kTopicsSection || known.name == kTokensSection) continue;
    text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", known.name);
    Keys keys;
    for (const Section& section : sections) {
      if (section.name == known.name) keys = section.keys;
    }
    for (const ConfigRow& row : config_rows()) {
      if (row.section == known.name) text += line_of(row, keys);
    }
  }
  for (const Section& section : sections) {
    const bool is_token = section.name == kTokensSection;
    const bool is_topic = section.name.starts_with(fmt::format("{}.", kTopicsSection));
    if (!is_token && !is_topic) continue;
    text += is_token ? fmt::format("\n[[{}]]\n", section.name) : fmt::format("\n[{}]\n", section.name);
    for (const auto& [key, each] : section.keys) text += line_of(*each);
  }
  return text;
}

}  // namespace delayq
