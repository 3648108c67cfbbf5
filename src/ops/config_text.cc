#include "ops/config_text.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "ops/config_table.h"

namespace delayq {

namespace {

/// "[topics.NAME]" for a reader; a file has a real name there.
std::string heading(std::string_view section) {
  if (section == kTokensSection) return "[[tokens]]";
  return section == kTopicsSection ? "[topics.NAME]" : fmt::format("[{}]", section);
}

std::string_view written(const ConfigRow& row) { return row.initial.empty() ? row.sample : row.initial; }

std::string initial_of(const ConfigRow& row) {
  if (!row.initial.empty()) return std::string(row.initial);
  return row.section == kTokensSection ? "none" : "no limit";
}

constexpr std::string_view kExampleEnd = R"(
# A topic of its own: what it leaves unsaid is asked of the defaults above.
#[topics.order]
#attempts = 5
#backoff = ["10s", "1m", "10m"]
#lease = "5m"
#rate = "100/1s"
)";

constexpr std::string_view kReferenceStart = R"(# Configuration
One TOML file, given with `delayq serve -c FILE`; [an example](../../conf/delayq.example.toml) has every setting with its
default. The files of go-delay-queue, delay_queue_callback and DelayQ are taken, too:
[what becomes of their keys](../guide/operations.md#config-files-of-other-systems). This page is written by `ops/config_text.cc` from the table in `ops/config_table.cc`, and a test compares them.

- A bad file is refused with all its errors at once, each with its line, and nothing is started.
- Durations are written "250ms", "30s", "1h30m", "7d"; sizes "64KB" (thousands), "32MiB" (1024s) or as a number of bytes.
- Addresses are "host:port", ":port" (every interface) or "[::1]:port"; port 0 takes a free one.
- The environment goes before the file: `DELAYQ_SERVER_RESP` is `server.resp`. The command line goes before both.
)";

}  // namespace

std::string config_help() {
  std::string help = "Settings of the file, with their defaults:\n";
  size_t width = 0;
  for (const ConfigRow& row : config_rows()) width = std::max(width, row.key.size());
  for (const ConfigSection& section : config_sections()) {
    help += fmt::format("\n{}  {}\n", heading(section.name), section.help);
    for (const ConfigRow& row : config_rows()) {
      if (row.section != section.name) continue;
      help += fmt::format("  {:<{}}  {}\n  {:<{}}  {}; default {}\n", row.key, width, row.help, "", width,
                          describe(row.field), initial_of(row));
    }
  }
  return help;
}

std::string example_config() {
  std::string text =
      "# An example of delayq's configuration: every setting with its default, commented out.\n"
      "# Take the # away where a line starts with one and no space. Made from the table in "
      "src/ops/config_table.cc.\n";
  for (const ConfigSection& section : config_sections()) {
    const bool topics = section.name == kTopicsSection;
    const bool tokens = section.name == kTokensSection;
    // A token without its name would be an error: all of that is commented out.
    text += fmt::format("\n# {}\n{}\n", section.help,
                        tokens ? "#[[tokens]]" : fmt::format("[{}{}]", section.name, topics ? ".\"*\"" : ""));
    for (const ConfigRow& row : config_rows()) {
      if (row.section != section.name) continue;
      text += fmt::format("# {} ({}{})\n#{} = {}\n", row.help, describe(row.field),
                          row.initial.empty() ? fmt::format("; default: {}", initial_of(row)) : "", row.key,
                          written(row));
    }
  }
  text += kExampleEnd;
  return text;
}

std::string config_reference() {
  std::string text{kReferenceStart};
  for (const ConfigSection& section : config_sections()) {
    text += fmt::format(
        "\n## {}\n{}\n\n| key | what may be written | default | what it is |\n|---|---|---|---|\n",
        heading(section.name), section.help);
    for (const ConfigRow& row : config_rows()) {
      if (row.section != section.name) continue;
      text += fmt::format("| `{}` | {} | {} | {} |\n", row.key, describe(row.field),
                          row.initial.empty() ? initial_of(row) : fmt::format("`{}`", row.initial), row.help);
    }
  }
  return text;
}

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
