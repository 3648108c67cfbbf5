#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "core/duration.h"
#include "core/text.h"
#include "json/reader.h"
#include "ops/config_table.h"
#include "ops/field.h"

namespace delayq {

namespace {

using namespace std::chrono_literals;
using T = FieldTarget;

/// In the order of the enumerators of Config::Kafka::Sasl.
constexpr std::array<std::string_view, 4> kSaslNames{"none", "plain", "scram-sha-256", "scram-sha-512"};

constexpr size_t kFileNameBytes = 4'095;

std::map<std::string, std::string>& settings_of(T& t) { return t.config.kafka.settings; }

Status check_prefix(std::string_view prefix) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  if (prefix.find_first_not_of(kAllowed) == std::string_view::npos) return {};
  return invalid("names of topics have only letters, digits, dots, underscores and hyphens");
}

Status check_ladder(const std::vector<std::string>& steps) {
  if (steps.empty()) return invalid("at least one step is needed");
  Millis last{0};
  for (const std::string& each : steps) {
    const Result<Millis> step = parse_duration(each);
    if (!step.ok()) return invalid(step.error().detail);
    if (*step <= last) return invalid("the steps must be in ascending order, each above 0");
    last = *step;
  }
  return {};
}

constexpr size_t kMostPartitions = 10'000;

/// Reads "[[0,1],[2,3]]".
Result<std::vector<std::vector<int32_t>>> parse_groups(std::string_view text) {
  const Error malformed =
      invalid(fmt::format("{} is not allowed: write groups of partitions, as [[0,1],[2,3]]", quote(text)));
  std::vector<std::vector<int32_t>> groups;
  if (text.empty()) return groups;
  const Result<json::Slice> all = json::parse(text);
  if (!all.ok() || all->type != json::Type::kArray) return malformed;
  std::set<uint64_t> named;
  for (const json::Slice& each : json::items_of(*all)) {
    if (each.type != json::Type::kArray) return malformed;
    std::vector<int32_t>& group = groups.emplace_back();
    for (const json::Slice& item : json::items_of(each)) {
      const auto number = item.type == json::Type::kNumber ? json::whole_number_of(item) : malformed;
      if (!number.ok()) return malformed;
      if (*number >= kMostPartitions)
        return invalid(fmt::format("partition {} is not allowed: use 0 to {}", *number, kMostPartitions - 1));
      if (!named.insert(*number).second)
        return invalid(
            fmt::format("partition {} is named twice: two servers would read it; remove one", *number));
      group.push_back(static_cast<int32_t>(*number));
    }
    if (group.empty()) return invalid("a group has no partitions: remove it");
  }
  return groups;
}

Status check_groups(std::string_view text) {
  const auto groups = parse_groups(text);
  return groups.ok() ? Status{} : Status{groups.error()};
}

/// Of server.engine = "kafka".
std::vector<ConfigRow> kafka_engine_rows() {
  return {
      ConfigRow{
          "kafka", "prefix",
          TextField{1, 200, [](T& t, std::string v) { t.config.kafka.prefix = std::move(v); }, check_prefix},
          "\"delayq\"", "",
          "With server.engine = \"kafka\": the topics with bodies are PREFIX.delay.5m and so on. The same on "
          "all servers of a deployment, and never changed."},
      ConfigRow{
          "kafka", "horizon", DurationField{0s, 24h * 30, [](T& t, Millis v) { t.config.kafka.horizon = v; }},
          "\"5m\"", "",
          "With server.engine = \"kafka\": bodies are back in Redis so long before their jobs are due."},
      ConfigRow{"kafka", "ladder",
                ListField{32, "durations",
                          [](T& t, std::vector<std::string> v) {
                            t.config.kafka.ladder.clear();
                            for (const std::string& each : v)
                              t.config.kafka.ladder.push_back(*parse_duration(each));
                          },
                          check_ladder},
                "[\"5m\", \"30m\", \"1h\", \"6h\", \"1d\"]", "",
                "With server.engine = \"kafka\": how long bodies wait in each of its topics, in ascending "
                "order. The "
                "same on all servers of a deployment; steps may be added at the end."},
      ConfigRow{"kafka", "partitions",
                NumberField{1, kMostPartitions,
                            [](T& t, uint64_t v) { t.config.kafka.partitions = static_cast<uint32_t>(v); }},
                "6", "", "The partitions of these topics, if they do not exist yet."},
      ConfigRow{
          "kafka", "partition_groups",
          TextField{0, 65'536,
                    [](T& t, const std::string& v) { t.config.kafka.partition_groups = *parse_groups(v); },
                    check_groups},
          "\"\"", "",
          "Groups of partitions, as \"[[0,1,2],[3,4,5]]\": each server claims its share of the groups in "
          "Redis, and takes over those of a server that has died. The same on all servers. Empty: the "
          "servers share the partitions as a consumer group."},
      ConfigRow{
          "kafka", "replication",
          NumberField{0, 32, [](T& t, uint64_t v) { t.config.kafka.replication = static_cast<uint32_t>(v); }},
          "0", "", "Their replicas; 0 means the default of the brokers."},
      ConfigRow{"kafka", "outage",
                DurationField{1h, 24h * 365, [](T& t, Millis v) { t.config.kafka.outage = v; }}, "\"3d\"", "",
                "For so long all servers may be down without losing a body: these topics keep records for "
                "their step "
                "and this time, and a topic that does not is refused at the start."},
  };
}

}  // namespace

std::vector<ConfigRow> kafka_rows() {
  std::vector<ConfigRow> rows{
      ConfigRow{"kafka", "brokers",
                TextField{0, 4'096, [](T& t, std::string v) { t.config.kafka.brokers = std::move(v); }},
                "\"\"", "", "HOST:PORT,HOST:PORT of some brokers; they name the others. Empty: no Kafka."},
      ConfigRow{"kafka", "client_id",
                TextField{1, 255, [](T& t, std::string v) { t.config.kafka.client_id = std::move(v); }},
                "\"delayq\"", "", "The name of this client in the brokers' logs and quotas."},
      ConfigRow{
          "kafka", "sasl",
          ChoiceField{kSaslNames,
                      {},
                      [](T& t, size_t v) { t.config.kafka.sasl = static_cast<Config::Kafka::Sasl>(v); }},
          "\"none\"", "", "How to log in. plain sends the password, so use it with tls only."},
      ConfigRow{"kafka", "user",
                TextField{0, 255, [](T& t, std::string v) { t.config.kafka.user = std::move(v); }}, "\"\"",
                "", "The user's name for sasl."},
      ConfigRow{"kafka", "password",
                TextField{0, 4'096, [](T& t, std::string v) { t.config.kafka.password = std::move(v); },
                          nullptr, true},
                "\"\"", "", "The user's password. It is never logged or shown."},
      ConfigRow{"kafka", "tls", BooleanField{[](T& t, bool v) { t.config.kafka.tls = v; }}, "false", "",
                "Encrypt the connections."},
      ConfigRow{
          "kafka", "ca_file",
          TextField{0, kFileNameBytes, [](T& t, std::string v) { t.config.kafka.ca_file = std::move(v); }},
          "\"\"", "", "A PEM file: the trusted authorities, instead of the system's."},
      ConfigRow{"kafka", "certificate",
                TextField{0, kFileNameBytes,
                          [](T& t, std::string v) { t.config.kafka.certificate = std::move(v); }},
                "\"\"", "", "A PEM file: the certificate of this client, if the brokers want one."},
      ConfigRow{"kafka", "key",
                TextField{0, kFileNameBytes, [](T& t, std::string v) { t.config.kafka.key = std::move(v); }},
                "\"\"", "", "A PEM file: its private key."},
      ConfigRow{"kafka", "key_password",
                TextField{0, 4'096, [](T& t, std::string v) { t.config.kafka.key_password = std::move(v); },
                          nullptr, true},
                "\"\"", "", "The password of the private key, if it has one."},
      ConfigRow{"kafka", "insecure", BooleanField{[](T& t, bool v) { t.config.kafka.insecure = v; }}, "false",
                "", "Accept every certificate. The connections can then be read and changed by others."},
      ConfigRow{"kafka", "timeout",
                DurationField{1s, 10min, [](T& t, Millis v) { t.config.kafka.timeout = v; }}, "\"30s\"", "",
                "How long a record may wait for its confirmation; after it the job is written again later."},
      ConfigRow{"kafka", "in_flight",
                NumberField{1, 1'000'000,
                            [](T& t, uint64_t v) { t.config.kafka.in_flight = static_cast<uint32_t>(v); }},
                "50000", "", "Maximum number of jobs that are being written at the same time."},
      ConfigRow{
          "kafka", "settings", PairsField{200, "settings of librdkafka", settings_of}, "{}", "",
          "Settings of librdkafka for all its clients, such as \"compression.codec\" = \"lz4\". Those that "
          "delayq needs itself are refused."},
  };
  std::ranges::move(kafka_engine_rows(), std::back_inserter(rows));
  return rows;
}

}  // namespace delayq
