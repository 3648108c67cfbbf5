#include "ops/seed_keys.h"

#include <array>

namespace delayq {

namespace {

using std::string_view;
using Kind = SeedKey::Kind;

constexpr uint8_t bit(SeedForm form) { return static_cast<uint8_t>(1u << static_cast<unsigned>(form)); }
constexpr uint8_t kGo = bit(SeedForm::kGoDelayQueue);
constexpr uint8_t kBack = bit(SeedForm::kCallback);
constexpr uint8_t kDelayQ = bit(SeedForm::kDelayQ);

constexpr uint32_t kPorts = 65'535;

constexpr string_view kNames = "not used: redis.prefix says what the keys of all jobs begin with";
constexpr string_view kPool =
    "not needed: commands are pipelined over redis.connections, which stay open for as long as the server "
    "runs";
constexpr string_view kSend = "not needed: redis.timeout is for sending and for the answer together";
constexpr string_view kKafka = "not used: it is for the kafka engine, which is not yet in this version";
constexpr string_view kBuckets = "not needed: all jobs wait in one timing wheel, however many they are";
constexpr string_view kTimer = "not needed: a job is handed over at its time, not at the next scan";
constexpr string_view kBlock = "not needed: each pop says itself how long it waits";
constexpr string_view kClients = "not used: consumers connect to this server, not to Redis";

constexpr std::array kKeys{
    // Listening.
    SeedKey{"server.bind_address", kGo, Kind::kText, "server.http"},
    SeedKey{"bind_address", kGo, Kind::kText, "server.http"},
    SeedKey{"listen", kBack, Kind::kText, "server.http"},
    SeedKey{"server.read_timeout", kGo, Kind::kSeconds, "server.request_timeout"},
    SeedKey{"server.write_timeout", kGo, Kind::kSeconds, "server.write_timeout"},
    // The process and its logs.
    SeedKey{"delayq.pid", kDelayQ, Kind::kText, "server.pid_file"},
    SeedKey{"delayq.pid_file", kDelayQ, Kind::kText, "server.pid_file"},
    SeedKey{"delayq.access_log", kDelayQ, Kind::kText, "log.access"},
    SeedKey{"delayq.error_log", kDelayQ, Kind::kText, "log.file"},
    SeedKey{"logpath", kBack, Kind::kText, "log.file"},
    SeedKey{"log.log_path", kGo, Kind::kLogFolder, "log.file"},
    SeedKey{"log.log_name", kGo, Kind::kLogName, "log.file"},
    SeedKey{"log.log_level", kGo, Kind::kLevel, "log.level"},  // so in its example,
    SeedKey{"log.level", kGo, Kind::kLevel, "log.level"},      // and so in its program
    // Callbacks.
    SeedKey{"max_tries", kBack, Kind::kTries, "topics.*.attempts"},
    SeedKey{"timeout", kBack, Kind::kSeconds, "topics.*.callback_timeout"},
    // How they wait for the time.
    SeedKey{"delayq.timer_interval", kDelayQ, Kind::kNumber, {}, kTimer},
    SeedKey{"bucket_size", kGo, Kind::kNumber, {}, kBuckets},
    SeedKey{"bucket_name", kGo, Kind::kText, {}, kNames},
    SeedKey{"queue_name", kGo, Kind::kText, {}, kNames},
    SeedKey{"queue_block_timeout", kGo, Kind::kNumber, {}, kBlock},
    SeedKey{"redisqueue.bucket_size", kGo, Kind::kNumber, {}, kBuckets},
    SeedKey{"redisqueue.bucket_name", kGo, Kind::kText, {}, kNames},
    SeedKey{"bucket.size", kBack, Kind::kNumber, {}, kBuckets},
    SeedKey{"bucket.name", kBack, Kind::kText, {}, kNames},
    SeedKey{"job.extent_ttl", kGo, Kind::kSeconds, "topics.*.keep_done.time"},
    SeedKey{"job.key", kGo, Kind::kText, {}, kNames},
    // Redis.
    SeedKey{"redis.host", kGo | kBack | kDelayQ, Kind::kRedisHost, "redis.url"},
    SeedKey{"redis.port", kDelayQ, Kind::kRedisPort, "redis.url", {}, kPorts},
    SeedKey{"redis.db", kGo | kBack, Kind::kNumber, "redis.database"},
    SeedKey{"redis.database", kDelayQ, Kind::kNumber, "redis.database"},
    SeedKey{"redis.password", kGo | kBack | kDelayQ, Kind::kText, "redis.password"},
    SeedKey{"redis.passwd", kBack, Kind::kText, "redis.password"},
    SeedKey{"redis.max_idle", kGo | kDelayQ, Kind::kNumber, {}, kPool},
    SeedKey{"redis.max_active", kGo | kDelayQ, Kind::kNumber, {}, kPool},
    SeedKey{"redis.idle_timeout", kGo | kDelayQ, Kind::kNumber, {}, kPool},
    SeedKey{"redis.conn_max_lifetime", kDelayQ, Kind::kNumber, {}, kPool},
    SeedKey{"redis.connect_timeout", kGo, Kind::kMillis, "redis.connect_timeout"},
    SeedKey{"redis.read_timeout", kGo, Kind::kMillis, "redis.timeout"},
    SeedKey{"redis.write_timeout", kGo, Kind::kMillis, {}, kSend},
    SeedKey{"delayqcli.host", kDelayQ, Kind::kText, {}, kClients},
    SeedKey{"delayqcli.port", kDelayQ, Kind::kNumber, {}, kClients, kPorts},
    SeedKey{"delayqcli.database", kDelayQ, Kind::kNumber, {}, kClients},
    SeedKey{"delayqcli.password", kDelayQ, Kind::kText, {}, kClients},
    SeedKey{"delayqcli.max_idle", kDelayQ, Kind::kNumber, {}, kClients},
    SeedKey{"delayqcli.max_active", kDelayQ, Kind::kNumber, {}, kClients},
    SeedKey{"delayqcli.idle_timeout", kDelayQ, Kind::kNumber, {}, kClients},
    SeedKey{"delayqcli.conn_max_lifetime", kDelayQ, Kind::kNumber, {}, kClients},
    // Kafka.
    SeedKey{"kafka.group_id", kGo, Kind::kText, {}, kKafka},
    SeedKey{"kafka.bootstrap_servers", kGo, Kind::kText, {}, kKafka},
    SeedKey{"kafka.security_protocol", kGo, Kind::kText, {}, kKafka},
    SeedKey{"kafka.sasl_mechanism", kGo, Kind::kText, {}, kKafka},
    SeedKey{"kafka.sasl_username", kGo, Kind::kText, {}, kKafka},
    SeedKey{"kafka.sasl_password", kGo, Kind::kText, {}, kKafka},
    SeedKey{"kafkaqueue.delay_durations", kGo, Kind::kText, {}, kKafka},
    SeedKey{"kafkaqueue.delay_topic", kGo, Kind::kText, {}, kKafka},
    SeedKey{"kafkaqueue.delay_partition_groups", kGo, Kind::kText, {}, kKafka},
};

}  // namespace

string_view name_of(SeedForm form) {
  constexpr std::array<string_view, kSeedFormCount> kFormNames{"go-delay-queue", "delay_queue_callback",
                                                               "DelayQ"};
  return kFormNames[static_cast<size_t>(form)];
}

std::span<const SeedKey> seed_keys() { return kKeys; }

const SeedKey* find_seed_key(SeedForm form, string_view name) {
  for (const SeedKey& key : kKeys) {
    if (key.name == name && key.is_of(form)) return &key;
  }
  return nullptr;
}

}  // namespace delayq
