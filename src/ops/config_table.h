#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ops/field.h"

namespace delayq {

/// One thing that can be configured. Parser, defaults, ranges, --help, the example file and the reference
/// page are all made from these rows. To add a setting, add a row and a member of Config. The rows of
/// [topics.NAME] are made from the table of a topic's settings (queue/settings_table.h).
struct ConfigRow {
  std::string_view section;  ///< "topics" stands for every [topics.NAME], "schedules" likewise
  std::string key;           ///< within the section; may have dots
  Field field;
  std::string initial;      ///< the default as TOML writes it; empty: there is none
  std::string_view sample;  ///< for the example file when there is no default
  std::string_view help;    ///< one sentence
};

struct ConfigSection {
  std::string_view name;
  std::string_view help;
};

inline constexpr std::string_view kTopicsSection = "topics";
inline constexpr std::string_view kSchedulesSection = "schedules";
inline constexpr std::string_view kIntakeSection = "kafka.intake";
/// [[tokens]], any number of them.
inline constexpr std::string_view kTokensSection = "tokens";

/// Whether there is one section for each name: [topics.NAME].
constexpr bool has_names(std::string_view section) {
  return section == kTopicsSection || section == kSchedulesSection || section == kIntakeSection;
}
/// Whether the section can be there several times. The environment cannot say which is meant.
constexpr bool is_repeated(std::string_view section) {
  return has_names(section) || section == kTokensSection;
}

/// In the order in which they are shown.
std::span<const ConfigSection> config_sections();
/// By section, in the order of config_sections().
std::span<const ConfigRow> config_rows();

/// The rows of [topics.NAME], with these defaults.
std::vector<ConfigRow> topic_rows(const SettingValues& defaults);

/// The rows of [schedules.NAME] (schedule_rows.cc).
std::vector<ConfigRow> schedule_rows();

/// The rows of [kafka] (kafka_rows.cc).
std::vector<ConfigRow> kafka_rows();

/// The rows of [kafka.intake.NAME] (kafka_rows.cc).
std::vector<ConfigRow> intake_rows();

/// The row of a key, or null.
const ConfigRow* find_row(std::string_view section, std::string_view key);

/// The environment variable that sets it: DELAYQ_SERVER_RESP is server.resp.
std::string variable_of(const ConfigRow& row);

/// The message for an unknown section or key; it names the most similar known one.
std::string unknown_section(std::string_view section);
std::string unknown_key(std::string_view section, std::string_view key);

}  // namespace delayq
