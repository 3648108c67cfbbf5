#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "core/duration.h"
#include "core/limits.h"
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

/// Places in Redis have it as 32 bits of milliseconds.
constexpr Millis kLongestStep = std::chrono::days{49};

Status check_ladder(const std::vector<std::string>& steps) {
  if (steps.empty()) return invalid("at least one step is needed");
  Millis last{0};
  for (const std::string& each : steps) {
    const Result<Millis> step = parse_duration(each);
    if (!step.ok()) return invalid(step.error().detail);
    if (*step <= last) return invalid("the steps must be in ascending order, each above 0");
    if (*step > kLongestStep) return invalid("a step is at most 49d: longer waits take several");
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
                "order. The same on all servers of a deployment. When it is changed, bodies that wait in a "
                "topic that is not in it any more are read when their jobs are due."},
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

namespace {

using namespace std::chrono_literals;
using T = FieldTarget;
using I = Config::KafkaIntake;

constexpr size_t kMostTopics = 100;
constexpr size_t kGroupBytes = 255;
constexpr size_t kHeaderBytes = 200;
constexpr uint64_t kLeastBytes = uint64_t{1} << 20;
constexpr uint64_t kMostBytes = uint64_t{4} << 30;
constexpr uint64_t kMostPrefetch = uint64_t{2} << 30;

/// In the order of the enumerators.
constexpr std::array<std::string_view, 2> kStarts{"earliest", "latest"};
constexpr std::array<std::string_view, 2> kDelaysFrom{"record", "arrival"};
constexpr std::array<std::string_view, 3> kOnConflict{"reject", "replace", "keep"};

/// Jobs have the name in their topics and ids, which are shorter than the names that Kafka allows.
Status check_intake_topics(const std::vector<std::string>& topics) {
  for (const std::string& each : topics) {
    if (const Status status = check_kafka_topic(each); !status) return status;
    if (const Status status = check_topic(each); !status) return status;
  }
  return {};
}

template <class Member>
auto set(Member I::*member) {
  return [member](T& t, auto value) { t.intake->*member = static_cast<Member>(std::move(value)); };
}

template <class Word>
auto set_word(Word I::*member) {
  return [member](T& t, size_t value) { t.intake->*member = static_cast<Word>(value); };
}

ConfigRow intake_row(std::string key, Field field, std::string initial, std::string_view sample,
                     std::string_view help) {
  return {kIntakeSection, std::move(key), std::move(field), std::move(initial), sample, help};
}

void add_reading(std::vector<ConfigRow>& rows) {
  rows.push_back(intake_row("topics", ListField{kMostTopics, "topics", set(&I::topics), check_intake_topics},
                            "", "[\"orders\"]",
                            "The Kafka topics to read, each at most 200 bytes; required."));
  rows.push_back(
      intake_row("group", TextField{0, kGroupBytes, set(&I::group)}, "\"\"", "",
                 "The consumer group; empty means delayq-NAME. Servers with the same group share the "
                 "partitions."));
  rows.push_back(
      intake_row("start", ChoiceField{kStarts, {}, set_word(&I::start)}, "\"earliest\"", "",
                 "Where to begin when the group has no offset: with the earliest record, or with those "
                 "that come from now on."));
  rows.push_back(intake_row("session_timeout", DurationField{1s, 30min, set(&I::session_timeout)}, "\"10s\"",
                            "",
                            "After so long without a sign of life the other servers get its partitions."));
  rows.push_back(
      intake_row("commit_interval", DurationField{10ms, 1min, set(&I::commit_interval)}, "\"200ms\"", "",
                 "How often offsets are committed. After a crash the records since the last commit are "
                 "read again."));
  rows.push_back(intake_row("in_flight", NumberField{1, 1'000'000, set(&I::in_flight)}, "20000", "",
                            "Records in memory that are not yet stored as jobs, at most."));
  rows.push_back(intake_row("in_flight_bytes", SizeField{kLeastBytes, kMostBytes, set(&I::in_flight_bytes)},
                            "\"32MiB\"", "", "The bytes of these records, at most."));
  rows.push_back(intake_row(
      "prefetch_bytes", SizeField{kLeastBytes, kMostPrefetch, set(&I::prefetch_bytes)}, "\"64MiB\"", "",
      "Bytes of records that are fetched in advance, about. Less than is stored in a second "
      "makes the intake slower."));
}

void add_jobs(std::vector<ConfigRow>& rows) {
  rows.push_back(intake_row("topic", TextField{0, Limits::kTopicBytes, set(&I::topic), check_topic}, "\"\"",
                            "", "The topic of the jobs; empty means the name of the Kafka topic."));
  rows.push_back(intake_row("delay", DurationField{0s, Limits::kMaxDelay, set(&I::delay)}, "\"0s\"", "",
                            "The delay of records that name neither a delay nor a moment."));
  rows.push_back(
      intake_row("delay_from", ChoiceField{kDelaysFrom, {}, set_word(&I::delay_from)}, "\"record\"", "",
                 "What a delay counts from: the timestamp of the record, or the moment of its arrival."));
  rows.push_back(
      intake_row("on_conflict", ChoiceField{kOnConflict, {}, set_word(&I::on_conflict)}, "\"keep\"", "",
                 "When a record names an id that waits or runs: keep the job, let the record replace it, "
                 "or reject the record, which goes to the dead-letter topic."));
  rows.push_back(
      intake_row("carry", BooleanField{set(&I::carries)}, "true", "",
                 "Whether the record's key and its other headers travel with the job, and are written "
                 "again when it goes to a Kafka topic."));
  rows.push_back(
      intake_row("retries", NumberField{0, Limits::kMaxAttempts, set(&I::retries)}, "0", "",
                 "For a topic to which consumers send what they failed to process: how often a record "
                 "may come back before it goes to the dead-letter topic. 0 means that it is no such "
                 "topic."));
  rows.push_back(intake_row("backoff", BackoffField{set(&I::backoff)}, "", "[\"10s\", \"1m\", \"10m\"]",
                            "With retries: the delay of a record by how often it has come back."));
  rows.push_back(
      intake_row("dead_letter_topic",
                 TextField{0, kKafkaTopicBytes, set(&I::dead_letter_topic), check_kafka_topic}, "\"\"", "",
                 "The Kafka topic for records that cannot be jobs; empty means the name of the record's "
                 "topic and .delayq-dead."));
}

void add_headers(std::vector<ConfigRow>& rows) {
  const auto add = [&rows](std::string_view name, std::string Config::KafkaHeaders::*member,
                           std::string_view help) {
    const auto put = [member](T& t, std::string value) { t.intake->headers.*member = std::move(value); };
    rows.push_back(intake_row("headers." + std::string(name), TextField{1, kHeaderBytes, put},
                              "\"" + Config::KafkaHeaders{}.*member + "\"", "", help));
  };
  using H = Config::KafkaHeaders;
  add("delay", &H::delay, "The header with the delay, such as 15m.");
  add("at", &H::at, "The header with the moment when the job is due, such as 2030-01-31T08:00:00Z.");
  add("topic", &H::topic, "The header with the topic of the job.");
  add("id", &H::id, "The header with the id of the job. Without it the id is TOPIC-PARTITION-OFFSET.");
  add("target", &H::target,
      "The header with the Kafka topic that the job goes to, if its topic delivers to Kafka.");
  add("group", &H::group, "The header with the group of the job.");
  add("priority", &H::priority, "The header with the priority of the job.");
  add("attempts", &H::attempts, "The header with the number of attempts to deliver the job.");
  add("retries", &H::retries, "The header with how often a record has come back; delayq writes it.");
}

}  // namespace

std::vector<ConfigRow> intake_rows() {
  std::vector<ConfigRow> rows;
  add_reading(rows);
  add_jobs(rows);
  add_headers(rows);
  return rows;
}

}  // namespace delayq
