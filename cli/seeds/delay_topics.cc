#include "cli/seeds/delay_topics.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/text.h"
#include "kafka/scan.h"
#include "ops/seed_config.h"

namespace delayq::cli::seeds {

namespace {

constexpr Millis kPatience = std::chrono::seconds{30};
// As in its example.
constexpr std::string_view kDelays = "5s,10s,1m,5m,1h";
constexpr std::string_view kTopic = "delay_topic_%s";

/// What the file says, by the names of its keys.
class Said {
 public:
  explicit Said(std::string_view file) {
    for (const IniEntry& entry : read_ini(file).entries) values_[entry.name()] = entry.value;
  }
  std::string of(const std::string& key, std::string_view otherwise = {}) const {
    const auto found = values_.find(key);
    return found == values_.end() || found->second.empty() ? std::string(otherwise) : found->second;
  }

 private:
  std::map<std::string, std::string> values_;
};

Status read_security(const Said& said, kafka::ClientOptions& client) {
  const std::string protocol = said.of("kafka.security_protocol", "PLAINTEXT");
  const bool has_sasl = protocol.starts_with("SASL_");
  client.uses_tls = protocol == "SSL" || protocol == "SASL_SSL";
  if (!has_sasl && !client.uses_tls && protocol != "PLAINTEXT")
    return invalid(fmt::format("--kafka-file: kafka.security_protocol: {} is not known", quote(protocol)));
  if (!has_sasl) return {};
  const std::string mechanism = said.of("kafka.sasl_mechanism", "PLAIN");
  if (mechanism == "PLAIN") client.sasl = kafka::Sasl::kPlain;
  if (mechanism == "SCRAM-SHA-256") client.sasl = kafka::Sasl::kScramSha256;
  if (mechanism == "SCRAM-SHA-512") client.sasl = kafka::Sasl::kScramSha512;
  if (client.sasl == kafka::Sasl::kNone)
    return invalid(fmt::format("--kafka-file: kafka.sasl_mechanism: {} is not known", quote(mechanism)));
  client.user = said.of("kafka.sasl_username");
  client.password = said.of("kafka.sasl_password");
  return {};
}

/// One for each delay: the name has %s in its place, or ends before it.
std::vector<std::string> topics_of(std::string_view name, std::string_view delays) {
  const size_t place = std::min(name.find("%s"), name.size());
  const std::string_view rest = place < name.size() ? name.substr(place + 2) : std::string_view();
  std::vector<std::string> topics;
  while (!delays.empty()) {
    const size_t comma = std::min(delays.find(','), delays.size());
    const std::string_view delay = trimmed(delays.substr(0, comma));
    if (!delay.empty()) topics.push_back(fmt::format("{}{}{}", name.substr(0, place), delay, rest));
    delays.remove_prefix(std::min(delays.size(), comma + 1));
  }
  return topics;
}

Error of_kafka(Error error) {
  error.detail = fmt::format("--kafka: {}", error.detail);
  return error;
}

}  // namespace

Result<DelayTopics> delay_topics(std::string brokers, std::string group, std::string_view file) {
  const Said said(file);
  DelayTopics from;
  from.client.brokers = brokers.empty() ? said.of("kafka.bootstrap_servers") : std::move(brokers);
  if (from.client.brokers.empty())
    return invalid("--kafka-file: kafka.bootstrap_servers is missing in it: name the brokers with --kafka");
  if (Status status = read_security(said, from.client); !status.ok()) return status.error();
  from.group = group.empty() ? said.of("kafka.group_id") : std::move(group);
  from.topics =
      topics_of(said.of("kafkaqueue.delay_topic", kTopic), said.of("kafkaqueue.delay_durations", kDelays));
  if (Status status = kafka::check_options(from.client); !status.ok()) return of_kafka(status.error());
  return from;
}

Status find_group(DelayTopics& from) {
  if (!from.group.empty()) return {};
  auto groups = kafka::groups_of(from.client, from.topics, kPatience);
  if (!groups.ok()) return of_kafka(groups.error());
  if (groups->size() > 1)
    return invalid(
        fmt::format("--kafka-group: several groups have read {}: say which one is that of "
                    "go-delay-queue (kafka.group_id in its file): {}",
                    from.topics.front(), fmt::join(*groups, ", ")));
  if (!groups->empty()) from.group = std::move(groups->front());
  return {};
}

DelayRecords records_in(DelayTopics from, uint64_t& count) {
  return [from = std::move(from), &count](const std::function<Status(const DelayRecord&)>& take) -> Status {
    const kafka::ScanOptions options{from.client, from.topics, from.group, kPatience};
    const auto report = kafka::scan(options, [&](const kafka::InputRecord& record) {
      ++count;
      return take({fmt::format("{}[{}]@{}", record.topic, record.partition, record.offset),
                   std::string(record.value.value_or(std::string_view())), record.timestamp});
    });
    if (!report.ok()) return of_kafka(report.error());
    if (report->missing.size() < from.topics.size()) return {};
    return Error{ErrorCode::kNotFound,
                 {},
                 fmt::format("--kafka: there is no topic {} at {}; --kafka-file reads other names from "
                             "go-delay-queue's own file",
                             fmt::join(from.topics, ", "), from.client.brokers)};
  };
}

}  // namespace delayq::cli::seeds
