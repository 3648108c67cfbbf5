#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/address.h"
#include "core/result.h"
#include "core/served.h"
#include "core/time.h"
#include "core/token.h"
#include "queue/schedule.h"
#include "queue/settings.h"

namespace delayq {

/// Where each protocol listens by default.
inline PerProtocol<Address> default_addresses() {
  PerProtocol<Address> addresses;
  addresses[ProtocolKind::kHttp] = {"127.0.0.1", 9277};
  addresses[ProtocolKind::kResp] = {"127.0.0.1", 9278};
  return addresses;
}

/// All settings of a server. Config{} is the configuration of an empty file. The meaning, range and default
/// of each value are in the table of ops/config_table.h.
struct Config {
  enum class Engine : uint8_t { kJournal, kMemory, kRedis, kKafka };
  enum class Durability : uint8_t { kCommit, kInterval };
  enum class LogLevel : uint8_t { kDebug, kInfo, kWarn, kError, kOff };
  enum class LogFormat : uint8_t { kText, kJson };

  struct Server {
    PerProtocol<Address> addresses = default_addresses();
    std::vector<std::string> hosts{};  ///< patterns as in HostNames
    Engine engine = Engine::kJournal;
    /// The kafka engine is the redis engine with bodies in Kafka.
    bool uses_redis() const { return engine == Engine::kRedis || engine == Engine::kKafka; }
    std::string data = "data";
    std::string backups;  ///< empty: a directory "backups" beside `data`
    Millis grace = std::chrono::seconds{10};
    uint32_t max_connections = 20'000;
    bool allow_anonymous = false;
    Millis request_timeout = std::chrono::seconds{20};
    Millis write_timeout = std::chrono::seconds{30};
    Millis first_request_timeout = std::chrono::minutes{5};
    Millis idempotency = std::chrono::hours{24};
    std::string pid_file{};  ///< empty: none

    bool operator==(const Server&) const = default;
  };

  struct Tls {
    std::string certificate;  ///< empty: no TLS
    std::string key;
    std::string client_ca;  ///< empty: clients need no certificate

    bool operator==(const Tls&) const = default;
  };

  /// Which of the other APIs are served on the HTTP port.
  struct Compat {
    bool go_delay_queue = true;
    bool callback = true;
    bool delayq = true;

    bool operator==(const Compat&) const = default;
  };

  struct Journal {
    Durability durability = Durability::kCommit;
    Millis interval{50};
    uint64_t segment_bytes = uint64_t{32} << 20;
    uint64_t disk_reserve = uint64_t{128} << 20;

    bool operator==(const Journal&) const = default;
  };

  struct Bounds {
    uint64_t body_bytes = uint64_t{1} << 20;
    uint32_t topics = 1'000'000;
    uint32_t waiters = 100'000;
    uint32_t metrics_topics = 200;
    uint64_t unanswered_bytes = uint64_t{64} << 20;
    uint64_t unread_bytes = uint64_t{32} << 20;
    uint64_t unread_total_bytes = uint64_t{512} << 20;
    std::optional<uint64_t> jobs{};
    std::optional<uint64_t> memory_bytes{};
    uint64_t schedules = 100'000;

    bool operator==(const Bounds&) const = default;
  };

  struct Log {
    LogLevel level = LogLevel::kInfo;
    std::string file{};  ///< empty: standard error
    LogFormat format = LogFormat::kText;
    std::string access{};  ///< empty: none
    uint32_t keep_days = 14;
    Millis slow = std::chrono::seconds{1};  ///< zero: nothing is slow

    bool operator==(const Log&) const = default;
  };

  struct Webhook {
    Millis connect_timeout = std::chrono::seconds{5};
    Millis timeout = std::chrono::seconds{30};
    uint32_t in_flight = 1'024;
    uint32_t per_host = 64;
    uint32_t breaker_failures = 10;
    Millis breaker_cooldown = std::chrono::seconds{30};
    std::vector<std::string> allow{};
    std::vector<std::string> deny{};
    std::string ca_file{};  ///< empty: the system's authorities
    bool insecure = false;
    std::string user_agent = "delayq";
    std::vector<std::string> secrets{};

    bool operator==(const Webhook&) const = default;
  };

  /// The redis engine's.
  struct Redis {
    std::string url = "redis://127.0.0.1:6379";
    std::string user{};           ///< empty: the one in the URL
    std::string password{};       ///< empty: the one in the URL, or in the file
    std::string password_file{};  ///< empty: none
    std::string sentinel_user{};
    std::string sentinel_password{};
    uint32_t database = 0;  ///< 0: the one in the URL
    std::string prefix = "delayq";
    uint32_t shards = 0;  ///< 0: 1, and 16 on a Cluster
    uint32_t connections = 1;
    Millis connect_timeout = std::chrono::seconds{2};
    Millis timeout = std::chrono::seconds{5};
    Millis wait{0};
    Millis start_wait{0};
    std::string ca_file{};  ///< empty: the system's authorities
    std::string certificate{};
    std::string key{};
    bool insecure = false;

    bool operator==(const Redis&) const = default;
  };

  struct RedisDelivery {
    std::string url{};  ///< empty: none
    Millis timeout = std::chrono::seconds{5};
    uint32_t in_flight = 4'096;

    bool operator==(const RedisDelivery&) const = default;
  };

  /// The brokers that jobs are written to.
  struct Kafka {
    enum class Sasl : uint8_t { kNone, kPlain, kScramSha256, kScramSha512 };

    std::string brokers{};  ///< empty: none
    std::string client_id = "delayq";
    Sasl sasl = Sasl::kNone;
    std::string user{};
    std::string password{};
    bool tls = false;
    std::string ca_file{};  ///< empty: the system's authorities
    std::string certificate{};
    std::string key{};
    std::string key_password{};
    bool insecure = false;
    Millis timeout = std::chrono::seconds{30};
    uint32_t in_flight = 50'000;
    std::map<std::string, std::string> settings{};  ///< of librdkafka, by name

    // The kafka engine's.
    std::string prefix = "delayq";
    Millis horizon = std::chrono::minutes{5};
    std::vector<Millis> ladder{std::chrono::minutes{5}, std::chrono::minutes{30}, std::chrono::hours{1},
                               std::chrono::hours{6}, std::chrono::days{1}};
    uint32_t partitions = 6;
    uint32_t replication = 0;  ///< 0: as the brokers' default says
    Millis outage = std::chrono::days{3};
    /// Numbers of partitions; empty: the consumer group shares the partitions.
    std::vector<std::vector<int32_t>> partition_groups{};

    bool operator==(const Kafka&) const = default;
  };

  /// The names of headers that say what becomes of a record.
  struct KafkaHeaders {
    std::string delay = "delayq-delay";
    std::string at = "delayq-at";
    std::string topic = "delayq-topic";
    std::string id = "delayq-id";
    std::string target = "delayq-target";
    std::string group = "delayq-group";
    std::string priority = "delayq-priority";
    std::string attempts = "delayq-attempts";
    std::string retries = "delayq-retries";

    bool operator==(const KafkaHeaders&) const = default;
  };

  /// Records of Kafka topics that become jobs.
  struct KafkaIntake {
    enum class Start : uint8_t { kEarliest, kLatest };
    enum class DelayFrom : uint8_t { kRecord, kArrival };

    std::vector<std::string> topics{};
    std::string group{};  ///< empty: delayq-NAME
    Start start = Start::kEarliest;
    Millis session_timeout = std::chrono::seconds{10};
    Millis commit_interval{200};
    uint32_t in_flight = 20'000;
    uint64_t in_flight_bytes = uint64_t{32} << 20;
    uint64_t prefetch_bytes = uint64_t{64} << 20;
    std::string topic{};  ///< empty: that of the record
    Millis delay{};
    DelayFrom delay_from = DelayFrom::kRecord;
    OnConflict on_conflict = OnConflict::kKeep;
    bool carries = true;
    uint32_t retries = 0;
    std::optional<Backoff> backoff{};
    std::string dead_letter_topic{};  ///< empty: by the record's topic
    KafkaHeaders headers{};
    bool is_incomplete = false;  ///< as in Schedule

    bool operator==(const KafkaIntake&) const = default;
  };

  /// A recurring job: ScheduleSpec with texts of its own.
  struct Schedule {
    std::optional<Millis> every{};
    std::string cron{};
    std::string zone{};
    std::optional<Moment> start{};
    std::optional<Moment> end{};
    std::optional<uint64_t> runs{};
    Millis jitter{};
    Overlap overlap = Overlap::kAllow;
    Missed missed = Missed::kOne;
    std::string topic{};
    std::string body{};
    std::optional<uint32_t> priority{};
    std::string group{};
    std::optional<uint32_t> attempts{};
    std::optional<Backoff> backoff{};
    std::optional<Millis> lease{};
    std::string callback{};
    std::string callback_method{};
    std::optional<CallbackFormat> callback_format{};
    /// One of its values could not be read. That is an error already: how the others go together is not
    /// known.
    bool is_incomplete = false;

    bool operator==(const Schedule&) const = default;

    /// The views point into this and into `name`.
    ScheduleSpec spec(std::string_view name) const;
  };

  Server server;
  Redis redis;
  Webhook webhook;
  RedisDelivery redis_delivery;
  Kafka kafka;
  Tls tls;
  Compat compat;
  Journal journal;
  Bounds limits;
  Log log;
  std::map<std::string, Settings> topics;  ///< by name; the defaults of all under kDefaultsName

  std::map<std::string, Schedule> schedules;
  std::map<std::string, KafkaIntake> kafka_intakes;

  std::vector<Token> tokens;

  bool operator==(const Config&) const = default;
};

/// A value that was set, and where: "delayq.toml:7", "DELAYQ_SERVER_RESP", "command line".
struct Said {
  std::string section;  ///< as TOML writes it: "server", `topics."order.paid"`, "tokens"
  std::string number;   ///< which of several such sections; empty: there is only one
  std::string key;      ///< empty: only the section was named
  std::string value;    ///< as TOML writes it
  std::string origin;
  bool is_foreign = false;  ///< set by the file of another system
};

/// A configuration, or everything that is wrong with its values: "delayq.toml:7: server.grace: ...", by line.
/// Whether the values go together is checked by check_config(), when all sources have been read.
struct [[nodiscard]] ConfigOutcome {
  Config config;  ///< to be used only when there are no errors
  std::vector<std::string> errors;
  std::vector<Said> said;
  std::vector<std::string>
      warnings;      ///< what such a file says and is not used: "delayq.conf:8: redis.host: ..."
  std::string form;  ///< the other system whose file it is; empty: it is our own
  std::string file;  ///< that was read; empty: none

  bool ok() const { return errors.empty(); }
};

/// Reads a TOML text, or the file of another system (ops/seed_config.h), which is known by its keys.
/// `file_name` is only for messages.
ConfigOutcome parse_config(std::string_view text, std::string_view file_name);

/// The same for a file, of at most 16 MiB.
ConfigOutcome load_config(const std::string& path);

/// The origin of values from the command line.
inline constexpr std::string_view kCommandLine = "command line";

/// Sets one value by its full key ("server.resp", `topics.order.attempts`), as a command line gives it; lists
/// are written with commas. On an error, whose detail starts with the key, `config` is unchanged. The value
/// is added to `said`, here and below.
Status set_option(Config& config, std::string_view key, std::string_view text,
                  std::vector<Said>* said = nullptr, std::string origin = std::string(kCommandLine));

/// Applies the environment variables: DELAYQ_SERVER_RESP is server.resp. Topics, schedules and tokens cannot
/// be configured there. `variable` returns the value of a name, or null, as getenv() does. Returns all
/// errors.
std::vector<std::string> apply_environment(Config& config,
                                           const std::function<const char*(const char*)>& variable,
                                           std::vector<Said>* said = nullptr);

/// The configuration of the queue, without the Redis for delivery: only the code that opens it knows that.
QueueConfig queue_config(const Config& config);

// ---- checks (config_check.cc)

/// What is wrong with a configuration although each value by itself is right: values that are missing, or
/// that conflict with others. Call it when the file, the environment and the command line have been read,
/// since each may set a part. `all_was_read` is false if some value could not be read; then missing values
/// are not reported, since that one may have been among them.
std::vector<std::string> check_config(const Config& config, bool all_was_read = true);

/// What is wrong with the schedules, for each the first field: as the queue would refuse it.
std::vector<std::string> check_schedules(const Config& config, Moment now);

/// What is wrong with [kafka.intake.NAME].
std::vector<std::string> check_intakes(const Config& config);

/// Puts in front of the error where its key was set, when its text begins with a key ("tls.key: ..."), a
/// section ("tls: ...") or a token ("tokens.0: ...") that was set: "delayq.toml:7: tls.key: ...". For a
/// section that is the place of its first key.
std::string with_origin(std::string error, std::span<const Said> said);

/// Errors for environment variables that begin with DELAYQ_, are no settings, and were probably meant to be
/// one: a mistyped name, whose setting would silently keep its default, and names for topics and tokens,
/// which cannot be configured there. Not reported are the names that clients and commands of `pop --exec`
/// use, those that Kubernetes makes for a service whose name begins with "delayq", and those that resemble no
/// setting.
///
/// `variables` are names and values.
std::vector<std::string> check_environment(std::span<const std::pair<std::string, std::string>> variables);

// ---- texts that are made from the configuration table (config_text.cc)

/// For `delayq serve --help`: every key with what may be written and its default.
std::string config_help();

/// conf/delayq.example.toml: every setting, commented out with its default. A line that starts with "#" and
/// no space becomes a setting when the "#" is removed.
std::string example_config();

/// docs/reference/configuration.md.
std::string config_reference();

/// The configuration in force, as a file that sets the same: each value with its origin behind it. Of several
/// values for a key the last one counts. Of topics, only their own values.
std::string config_in_force(std::span<const Said> said);

}  // namespace delayq
