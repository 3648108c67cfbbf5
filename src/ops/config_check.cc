#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "core/text.h"
#include "json/writer.h"
#include "ops/config.h"
#include "ops/config_table.h"

namespace delayq {

namespace {

void check_tokens(const std::vector<Token>& tokens, std::vector<std::string>& errors) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    const Token& token = tokens[i];
    const auto miss = [&](std::string_view key) {
      errors.push_back(fmt::format("tokens.{}: {} is missing", i, key));
    };
    if (token.name.empty()) miss("name");
    if (token.sha256 == Sha256{}) miss("sha256");
    if (token.scopes == 0) miss("scopes");
    const auto first = std::find_if(tokens.begin(), tokens.end(),
                                    [&](const Token& other) { return other.name == token.name; });
    if (!token.name.empty() && &*first != &token)
      errors.push_back(fmt::format("tokens.{}: another token has the name {}", i, token.name));
    const auto twin = std::find_if(tokens.begin(), tokens.end(),
                                   [&](const Token& other) { return other.sha256 == token.sha256; });
    if (token.sha256 != Sha256{} && &*twin != &token)
      errors.push_back(fmt::format("tokens.{}: {} has the same sha256: which of them is meant?", i,
                                   twin->name.empty() ? "another token" : twin->name));
  }
}

void check_tls(const Config::Tls& tls, std::vector<std::string>& errors) {
  if (tls.certificate.empty() != tls.key.empty())
    errors.emplace_back("tls: certificate and key are needed together");
  if (!tls.client_ca.empty() && tls.certificate.empty())
    errors.emplace_back("tls.client_ca: needs a certificate and a key of the server, too");
}

void check_addresses(const Config& config, std::vector<std::string>& errors) {
  for (const ProtocolKind kind : kProtocols) {
    const Address& address = config.server.addresses[kind];
    if (is_loopback(address) || config.server.allow_anonymous || !config.tokens.empty()) continue;
    errors.push_back(fmt::format(
        "server.{}: {} can be reached from other machines without authentication; configure "
        "[[tokens]] (delayq token new), listen on 127.0.0.1, or set server.allow_anonymous = true",
        name_of(kind), to_string(address)));
  }
}

void check_same_port(const Config::Server& server, std::vector<std::string>& errors) {
  for (const ProtocolKind kind : kProtocols) {
    const Address& address = server.addresses[kind];
    for (const ProtocolKind other : kProtocols) {
      if (other <= kind || address.port == 0 || address != server.addresses[other]) continue;
      errors.push_back(fmt::format("server.{}: {} is server.{}, too: each protocol needs a port of its own",
                                   name_of(kind), to_string(address), name_of(other)));
    }
  }
}

/// Each partition of the ladder's topics is in a group, and no group has others.
void check_partition_groups(const Config& config, std::vector<std::string>& errors) {
  const Config::Kafka& kafka = config.kafka;
  if (config.server.engine != Config::Engine::kKafka || kafka.partition_groups.empty()) return;
  std::set<int32_t> named;
  for (const std::vector<int32_t>& group : kafka.partition_groups) named.insert(group.begin(), group.end());
  const auto most = *named.rbegin();
  for (int32_t i = 0; i <= std::max(most, static_cast<int32_t>(kafka.partitions) - 1); ++i) {
    const bool is_there = i < static_cast<int32_t>(kafka.partitions);
    if (is_there == named.contains(i)) continue;
    errors.push_back(
        fmt::format("kafka.partition_groups: {} partition {}, and kafka.partitions is {}: {}, or set "
                    "kafka.partitions = {}",
                    is_there ? "no group names" : "a group names", i, kafka.partitions,
                    is_there ? "add it to a group" : "remove it from the group", most + 1));
    return;
  }
}

/// The name of the key in errors.
std::string full_section(const Said& said) {
  return said.number.empty() ? said.section : fmt::format("{}.{}", said.section, said.number);
}

}  // namespace

std::string with_origin(std::string error, std::span<const Said> said) {
  const std::string key = error.substr(0, error.find(": "));
  const auto is_key = [&](const Said& each) {
    return !each.key.empty() && fmt::format("{}.{}", full_section(each), each.key) == key;
  };
  const auto last = std::find_if(said.rbegin(), said.rend(), is_key);
  const auto first =
      std::find_if(said.begin(), said.end(), [&](const Said& each) { return full_section(each) == key; });
  if (last == said.rend() && first == said.end()) return error;
  const std::string& origin = last != said.rend() ? last->origin : first->origin;
  if (origin == kCommandLine) return error;
  const bool is_variable = origin.find(':') == std::string::npos;
  return fmt::format("{}{}: {}", origin, is_variable ? " in the environment" : "", error);
}

std::vector<std::string> check_schedules(const Config& config, Moment now) {
  std::vector<std::string> errors;
  const Limits limits = queue_config(config).limits;
  for (const auto& [name, schedule] : config.schedules) {
    if (schedule.is_incomplete) continue;
    std::string section = fmt::format("{}.", kSchedulesSection);
    json::append_string(section, name);
    const auto miss = [&](std::string_view what) {
      errors.push_back(fmt::format("{}: {} is missing", section, what));
    };
    const bool has_rule = schedule.every || !schedule.cron.empty();
    if (!has_rule) miss("cron or every");
    if (schedule.topic.empty()) miss("topic");
    if (!has_rule || schedule.topic.empty()) continue;
    const Status status = check_schedule(schedule.spec(name), now, limits);
    if (status.ok()) continue;
    const Error& error = status.error();
    errors.push_back(
        fmt::format("{}{}{}: {}", section, error.field.empty() ? "" : ".", error.field, error.detail));
  }
  return errors;
}

namespace {

/// The first thing that is wrong, as "KEY: why" or ": why".
std::string wrong_with(const Config::KafkaIntake& intake, const Config::Kafka& kafka) {
  if (kafka.brokers.empty()) return ": needs kafka.brokers";
  if (intake.topics.empty()) return ": topics is missing";
  if (intake.backoff && intake.retries == 0) return ".backoff: needs retries, too";
  if (intake.retries > 0 && !intake.backoff) return ".retries: needs backoff, too";
  for (const std::string& topic : intake.topics) {
    const bool is_dead = topic == intake.dead_letter_topic ||
                         (intake.dead_letter_topic.empty() && topic.ends_with(kDeadLetterSuffix));
    if (is_dead)
      return fmt::format(".topics: {} is a dead-letter topic: its records would go round for ever", topic);
  }
  const Config::KafkaHeaders& names = intake.headers;
  std::vector<std::string_view> all{names.delay, names.at,       names.topic,    names.id,     names.target,
                                    names.group, names.priority, names.attempts, names.retries};
  std::sort(all.begin(), all.end());
  const auto twin = std::adjacent_find(all.begin(), all.end());
  if (twin != all.end()) return fmt::format(".headers: two of them have the name {}", *twin);
  return {};
}

}  // namespace

std::vector<std::string> check_intakes(const Config& config) {
  std::vector<std::string> errors;
  for (const auto& [name, intake] : config.kafka_intakes) {
    if (intake.is_incomplete) continue;
    std::string section = fmt::format("{}.", kIntakeSection);
    json::append_string(section, name);
    const std::string wrong = wrong_with(intake, config.kafka);
    if (!wrong.empty()) errors.push_back(section + wrong);
  }
  return errors;
}

std::vector<std::string> check_config(const Config& config, bool all_was_read) {
  std::vector<std::string> errors;
  if (all_was_read) {
    check_tokens(config.tokens, errors);
    check_tls(config.tls, errors);
  }
  check_addresses(config, errors);
  check_same_port(config.server, errors);
  check_partition_groups(config, errors);
  return errors;
}

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
    if (!is_repeated(row.section)) names.push_back(variable_of(row));
  }
  return names;
}

/// The section that a name begins with; empty: none.
std::string_view section_of(std::string_view name) {
  const std::string rest = lowered(name.substr(kPrefix.size()));
  std::string_view longest;
  for (const ConfigSection& section : config_sections()) {
    std::string written(section.name);
    std::replace(written.begin(), written.end(), '.', '_');
    const bool begins_so =
        rest.starts_with(written) && rest.size() > section.name.size() && rest[section.name.size()] == '_';
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
    if (is_repeated(section)) {
      errors.push_back(fmt::format(
          "{} in the environment: {} cannot be configured there; use the file or --set", name, section));
      continue;
    }
    const std::string_view meant = nearest(name, views);
    const std::string advice = meant.empty() ? "" : fmt::format("; did you mean {}?", meant);
    if (section.empty() && meant.empty()) continue;  // another program's
    errors.push_back(fmt::format("{} in the environment is not a setting{}", name, advice));
  }
  return errors;
}

}  // namespace delayq
