#include "ops/config.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <system_error>

#include <fmt/format.h>

#include "core/limits.h"
#include "core/text.h"
#include "json/writer.h"
#include "ops/config_table.h"
#include "ops/field.h"
#include "ops/seed_config.h"

namespace delayq {

namespace {

constexpr size_t kFileBytes = size_t{16} << 20;
constexpr size_t kMostTokens = 10'000;
constexpr size_t kIntakeNameBytes = 100;

std::string join_path(std::span<const std::string> path) {
  std::string joined;
  for (const std::string& part : path) {
    if (!joined.empty()) joined += '.';
    joined += part;
  }
  return joined;
}

/// Whether a topic's setting has two parts, which are keys of their own: `keep_done.time`.
bool is_retention(std::string_view name) {
  const std::span<const Setting> rows = topic_settings().rows();
  const std::optional<size_t> place = find_setting(rows, name);
  return place && std::holds_alternative<RetentionKind>(rows[*place].kind);
}

/// `unknown_key`, with advice on the most frequent mistake with topics.
std::string unknown_topic_key(std::string_view key) {
  if (key.find('.') != std::string_view::npos && !is_retention(key.substr(0, key.find('.')))) {
    return R"(unknown key: a topic's name with dots needs quotes, as in [topics."order.paid"])";
  }
  return unknown_key(kTopicsSection, key);
}

Status apply_to_topic(Config& config, const std::string& name, std::string_view key, const Given& given) {
  if (name != kDefaultsName) {
    if (Status status = check_topic(name); !status) return status;
  }
  if (key.empty()) {
    if (given.kind != Given::Kind::kTable) return invalid("this is a section: [topics.NAME]");
    config.topics.try_emplace(name);
    return {};
  }
  const ConfigRow* const row = find_row(kTopicsSection, key);
  if (row == nullptr) {
    // An empty `keep_done = {}` sets nothing, and that is allowed.
    const bool is_empty = given.kind == Given::Kind::kTable && is_retention(key);
    return is_empty ? Status{} : invalid(unknown_topic_key(key));
  }
  const auto found = config.topics.find(name);
  SettingValues values = topic_settings().values(found == config.topics.end() ? Settings{} : found->second);
  FieldTarget target{config, &values};
  Status status = read_field(row->field, given, target);
  if (status) config.topics.insert_or_assign(name, topic_settings().own(values));
  return status;
}

/// The row of the table that has this key: "settings" for "settings.linger.ms". Null: none.
const ConfigRow* find_table(std::string_view section, std::string_view key) {
  const ConfigRow* const row = find_row(section, key.substr(0, key.find('.')));
  const bool is_table = row != nullptr && std::holds_alternative<PairsField>(row->field);
  return is_table && key.size() > row->key.size() + 1 ? row : nullptr;
}

Status apply_to_schedule(Config& config, const std::string& name, std::string_view key, const Given& given) {
  if (Status status = check_schedule_name(name); !status) return status;
  if (key.empty() && given.kind != Given::Kind::kTable) return invalid("this is a section: [schedules.NAME]");
  Config::Schedule& schedule = config.schedules[name];
  if (key.empty()) return {};  // check_schedules() reports what is missing
  const ConfigRow* const row = find_row(kSchedulesSection, key);
  const ConfigRow* const table = find_table(kSchedulesSection, key);
  FieldTarget target{.config = config, .schedule = &schedule};
  Status status;
  if (table != nullptr) {
    const std::string pair(key.substr(table->key.size() + 1));
    status = read_pair(std::get<PairsField>(table->field), pair, given, target);
  } else if (row == nullptr && key.find('.') != std::string_view::npos) {
    status = invalid(R"(unknown key: a name with dots needs quotes, as in [schedules."report.daily"])");
  } else if (row == nullptr) {
    status = invalid(unknown_key(kSchedulesSection, key));
  } else {
    status = read_field(row->field, given, target);
  }
  if (!status) schedule.is_incomplete = true;
  return status;
}

/// A plain name, for metrics and messages.
Status check_intake_name(std::string_view name) {
  const auto is_allowed = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  if (!name.empty() && name.size() <= kIntakeNameBytes && std::all_of(name.begin(), name.end(), is_allowed))
    return {};
  return invalid(fmt::format("the name of an intake has 1 to {} letters, digits and _ -", kIntakeNameBytes));
}

/// `path` is what follows the section: a name, and a key.
Status apply_to_intake(Config& config, std::span<const std::string> path, const Given& given) {
  if (Status status = check_intake_name(path[0]); !status) return status;
  const std::string key = join_path(path.subspan(1));
  if (key.empty() && given.kind != Given::Kind::kTable)
    return invalid("this is a section: [kafka.intake.NAME]");
  Config::KafkaIntake& intake = config.kafka_intakes[path[0]];
  if (key.empty() || (key == "headers" && given.kind == Given::Kind::kTable)) return {};
  const ConfigRow* const row = find_row(kIntakeSection, key);
  FieldTarget target{.config = config, .intake = &intake};
  Status status =
      row == nullptr ? invalid(unknown_key(kIntakeSection, key)) : read_field(row->field, given, target);
  if (!status) intake.is_incomplete = true;
  return status;
}

/// `path` is what follows "tokens": a number, and a key.
Status apply_to_token(Config& config, std::span<const std::string> path, const Given& given) {
  size_t index = 0;
  const bool is_number =
      !path.empty() && std::from_chars(path[0].data(), path[0].data() + path[0].size(), index).ptr ==
                           path[0].data() + path[0].size();
  const bool is_empty = path.size() == 1 && given.kind == Given::Kind::kTable;
  if (!is_number || (path.size() < 2 && !is_empty) || index >= kMostTokens)
    return invalid(fmt::format("write [[tokens]] and its keys below, at most {} times", kMostTokens));
  const std::string key = join_path(path.subspan(1));
  const ConfigRow* const row = find_row(kTokensSection, key);
  if (row == nullptr && !is_empty) return invalid(unknown_key(kTokensSection, key));
  if (config.tokens.size() <= index) {
    Token fresh;
    fresh.topics = {"*"};
    config.tokens.resize(index + 1, fresh);
  }
  if (is_empty) return {};  // check_config() reports what is missing
  FieldTarget target{config, nullptr, &config.tokens[index]};
  return read_field(row->field, given, target);
}

/// Finds the row of a path and lets it read the value.
Status apply(Config& config, std::span<const std::string> path, const Given& given) {
  const std::string& section = path.front();
  const auto sections = config_sections();
  const bool known = std::any_of(sections.begin(), sections.end(),
                                 [&](const ConfigSection& each) { return each.name == section; });
  if (!known) return invalid(unknown_section(section));
  if (path.size() == 1) {
    if (given.kind == Given::Kind::kTable) return {};
    return invalid(fmt::format("this is a section: write [{}] and its keys below", section));
  }
  if (section == kTokensSection) return apply_to_token(config, path.subspan(1), given);
  if (section == kTopicsSection) return apply_to_topic(config, path[1], join_path(path.subspan(2)), given);
  if (section == kSchedulesSection)
    return apply_to_schedule(config, path[1], join_path(path.subspan(2)), given);
  if (section == kIntakeSection) return apply_to_intake(config, path.subspan(1), given);
  const std::string key = join_path(path.subspan(1));
  FieldTarget target{config};
  if (const ConfigRow* const table = find_table(section, key))
    return read_pair(std::get<PairsField>(table->field), key.substr(table->key.size() + 1), given, target);
  const ConfigRow* const row = find_row(section, key);
  if (row == nullptr) return invalid(unknown_key(section, key));
  return read_field(row->field, given, target);
}

/// JSON's escapes are TOML's, too.
std::string quoted(std::string_view text) {
  std::string out;
  json::append_string(out, text);
  return out;
}

std::string toml_of(const Given& given) {
  if (given.kind == Given::Kind::kText) return quoted(given.text);
  if (given.kind != Given::Kind::kList) return given.text;
  std::string list;
  for (const std::string& item : given.list) {
    if (!list.empty()) list += ", ";
    list += quoted(item);
  }
  return fmt::format("[{}]", list);
}

/// Secrets are not shown.
std::string shown_value(std::string_view key, const Given& given) {
  if (key.ends_with("secrets") || key.ends_with("callback_headers")) return "[\"(not shown)\"]";
  const bool is_empty = given.kind == Given::Kind::kText && given.text.empty();
  if (names_secret(key) && !is_empty) return "\"(not shown)\"";
  if (given.kind == Given::Kind::kText && !given.text.empty()) {
    if (key == "settings") return "\"(not shown)\"";  // one text with all of them
    if (key == "url") return quoted(without_password(given.text));
  }
  return toml_of(given);
}

void record(std::vector<Said>* said, std::span<const std::string> path, const Given& given,
            std::string origin) {
  if (said == nullptr || path.size() < 2) return;
  const std::string& section = path.front();
  // These have a name, or a number, between section and key.
  const bool is_named = is_repeated(section);
  const bool has_key = !is_named || given.kind != Given::Kind::kTable;
  const std::string key = has_key ? join_path(path.subspan(is_named ? 2 : 1)) : std::string();
  said->push_back({has_names(section) ? fmt::format("{}.{}", section, quoted(path[1])) : section,
                   section == kTokensSection ? path[1] : std::string(), key, shown_value(key, given),
                   std::move(origin), false});
}

/// The path with its section as one word: kafka.intake has a dot.
std::vector<std::string> with_section(const std::vector<std::string>& path) {
  if (path.size() < 2 || fmt::format("{}.{}", path[0], path[1]) != kIntakeSection) return path;
  std::vector<std::string> joined{std::string(kIntakeSection)};
  joined.insert(joined.end(), path.begin() + 2, path.end());
  return joined;
}

/// Section, for topics and the like the name, which may have dots itself, and the key.
std::vector<std::string> split_key(std::string_view key) {
  const bool is_intake =
      key.starts_with(kIntakeSection) && key.substr(kIntakeSection.size()).starts_with('.');
  const size_t first = is_intake ? kIntakeSection.size() : key.find('.');
  if (first == std::string_view::npos) return {std::string(key)};
  const std::string_view section = key.substr(0, first);
  std::string_view rest = key.substr(first + 1);
  if (!has_names(section)) return {std::string(section), std::string(rest)};
  size_t longest = 0;
  for (const ConfigRow& row : config_rows()) {
    const bool ends_so = rest.size() > row.key.size() + 1 && rest.ends_with(row.key) &&
                         rest[rest.size() - row.key.size() - 1] == '.';
    if (row.section == section && ends_so) longest = std::max(longest, row.key.size());
  }
  // If no known key matches, the last word is used as the key, for the message.
  const size_t dot = longest > 0 ? rest.size() - longest - 1 : rest.rfind('.');
  if (dot == std::string_view::npos) return {std::string(section), std::string(rest)};
  return {std::string(section), std::string(rest.substr(0, dot)), std::string(rest.substr(dot + 1))};
}

}  // namespace

ConfigOutcome parse_config(std::string_view text, std::string_view file_name) {
  if (std::optional<ConfigOutcome> foreign = read_seed_config(text, file_name)) return std::move(*foreign);
  ConfigOutcome outcome;
  const auto read = read_toml(text);
  if (const auto* error = std::get_if<TomlError>(&read)) {
    outcome.errors.push_back(fmt::format("{}:{}: this is not TOML: {}", file_name, error->line, error->what));
    return outcome;
  }
  for (const TomlEntry& entry : std::get<std::vector<TomlEntry>>(read)) {
    const std::vector<std::string> path = with_section(entry.path);
    const Status status = apply(outcome.config, path, entry.value);
    std::string origin = fmt::format("{}:{}", file_name, entry.line);
    if (status) {
      record(&outcome.said, path, entry.value, std::move(origin));
    } else {
      outcome.errors.push_back(
          fmt::format("{}: {}: {}", origin, join_path(entry.path), status.error().detail));
    }
  }
  return outcome;
}

ConfigOutcome load_config(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    ConfigOutcome outcome;
    outcome.errors.push_back(
        fmt::format("{}: cannot be opened: {}", path, std::generic_category().message(errno)));
    return outcome;
  }
  std::string text(kFileBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(in.gcount()));
  if (in.bad() || text.size() > kFileBytes) {
    ConfigOutcome outcome;
    outcome.errors.push_back(fmt::format(
        "{}: {}", path,
        in.bad() ? "cannot be read: is it a file?" : "is larger than 16MiB: is it the right file?"));
    return outcome;
  }
  return parse_config(text, path);
}

Status set_option(Config& config, std::string_view key, std::string_view text, std::vector<Said>* said,
                  std::string origin) {
  const Given given{Given::Kind::kText, std::string(text), {}};
  const std::vector<std::string> path = split_key(key);
  Status status = apply(config, path, given);
  if (status) {
    record(said, path, given, std::move(origin));
    return status;
  }
  return invalid(fmt::format("{}: {}", key, status.error().detail));
}

std::vector<std::string> apply_environment(Config& config,
                                           const std::function<const char*(const char*)>& variable,
                                           std::vector<Said>* said) {
  std::vector<std::string> errors;
  for (const ConfigRow& row : config_rows()) {
    if (is_repeated(row.section)) continue;
    const std::string name = variable_of(row);
    const char* const text = variable(name.c_str());
    if (text == nullptr) continue;
    FieldTarget target{config};
    const Given given{Given::Kind::kText, text, {}};
    const Status status = read_field(row.field, given, target);
    if (status) {
      record(said, std::array{std::string(row.section), std::string(row.key)}, given, name);
      continue;
    }
    errors.push_back(fmt::format("{} in the environment: {}", name, status.error().detail));
  }
  return errors;
}

QueueConfig queue_config(const Config& config) {
  QueueConfig queue;
  queue.limits.body_bytes = config.limits.body_bytes;
  queue.limits.topics = config.limits.topics;
  queue.limits.waiters = config.limits.waiters;
  queue.unanswered_bytes = config.limits.unanswered_bytes;
  queue.jobs = config.limits.jobs.value_or(QueueConfig::kUnbounded);
  queue.schedules = config.limits.schedules;
  queue.memory_bytes = config.limits.memory_bytes.value_or(QueueConfig::kUnbounded);
  queue.disk_free_bytes = config.journal.disk_reserve;
  const auto defaults = config.topics.find(std::string(kDefaultsName));
  if (defaults != config.topics.end()) queue.defaults = defaults->second;
  return queue;
}

}  // namespace delayq
