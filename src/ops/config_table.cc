#include "ops/config_table.h"

#include <array>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/address.h"
#include "core/duration.h"
#include "core/limits.h"
#include "core/text.h"
#include "ops/field.h"

namespace delayq {

namespace {

using namespace std::chrono_literals;
using std::string_view;

constexpr uint64_t kKiB = uint64_t{1} << 10;
constexpr uint64_t kMiB = kKiB << 10;
constexpr uint64_t kGiB = kMiB << 10;
constexpr uint64_t kTiB = kGiB << 10;
constexpr uint64_t kMax32 = std::numeric_limits<uint32_t>::max();
constexpr uint64_t kMaxJobs = 10'000'000'000;
constexpr size_t kPathBytes = 4'095;

/// In the order of the enumerators of Config.
constexpr std::array<string_view, 4> kEngines{"journal", "memory", "redis", "kafka"};
constexpr std::array<string_view, 2> kDurabilities{"commit", "interval"};
constexpr std::array<string_view, 5> kLevels{"debug", "info", "warn", "error", "off"};
constexpr std::array<string_view, 2> kFormats{"text", "json"};

constexpr std::array kSections{
    ConfigSection{"server", "Where the server listens and where its jobs are."},
    ConfigSection{"tls", "Encrypted connections, on both ports. The files are reloaded on SIGHUP."},
    ConfigSection{"compat", "The APIs of other delay queues, on the HTTP port."},
    ConfigSection{"journal", "The embedded engine."},
    ConfigSection{"redis", "The engine that several servers share: a Redis, its Sentinels or a Cluster."},
    ConfigSection{"webhook",
                  "Calls that deliver jobs. Reloaded on SIGHUP, except in_flight, allow, deny, ca_file, "
                  "insecure and user_agent."},
    ConfigSection{
        "redis_delivery",
        "The Redis that delivery = \"redis_list\" and \"redis_stream\" write to. Reloaded on SIGHUP."},
    ConfigSection{
        "kafka",
        "The brokers for delivery = \"kafka_topic\". A change needs a restart. [kafka.settings] has "
        "further settings of librdkafka, by their own names: \"linger.ms\" = 20."},
    ConfigSection{"limits", "Limits. A request above one fails with an error that names it."},
    ConfigSection{"log", "The server's log."},
    ConfigSection{"topics",
                  "One section per topic; [topics.\"*\"] sets the defaults of all. Reloaded on SIGHUP."},
    ConfigSection{
        "schedules",
        "One section per recurring job: cron or every, and a topic, are required. Reloaded on SIGHUP. A "
        "schedule that the file no longer names stays: delayq schedule remove NAME."},
    ConfigSection{
        "kafka.intake",
        "One section per intake: records of Kafka topics that become jobs. Needs [kafka]. On SIGHUP how "
        "records become jobs is reloaded (topic, delay, delay_from, on_conflict, carry, retries, backoff, "
        "headers); a new section begins to read, and one that is gone stops."},
    ConfigSection{"tokens",
                  "Access tokens. Without tokens every client that reaches the server may do everything. "
                  "Reloaded on SIGHUP."},
};

using T = FieldTarget;

Status check_host_patterns(const std::vector<std::string>& patterns) {
  for (const std::string& each : patterns) {
    if (const Status status = check_host_pattern(each); !status.ok())
      return invalid(fmt::format("{}: {}", quote(each), status.error().detail));
  }
  return {};
}

const std::array kServer{
    ConfigRow{"server", "resp", AddressField{[](T& t, Address v) {
                t.config.server.addresses[ProtocolKind::kResp] = std::move(v);
              }},
              "\"127.0.0.1:9278\"", "", "Where Redis clients connect."},
    ConfigRow{"server", "http", AddressField{[](T& t, Address v) {
                t.config.server.addresses[ProtocolKind::kHttp] = std::move(v);
              }},
              "\"127.0.0.1:9277\"", "", "Where HTTP clients connect."},
    ConfigRow{"server", "hosts",
              ListField{1'000, "names",
                        [](T& t, std::vector<std::string> v) { t.config.server.hosts = std::move(v); },
                        check_host_patterns},
              "[]", "",
              "Host names that HTTP clients may use when no tokens are configured, besides localhost, "
              "numeric addresses and the name in http; *.example.com allows all names below it, * allows "
              "any. Reloaded on SIGHUP."},
    ConfigRow{
        "server", "engine",
        ChoiceField{
            kEngines, {}, [](T& t, size_t v) { t.config.server.engine = static_cast<Config::Engine>(v); }},
        "\"journal\"", "",
        "Where jobs are stored: journal is durable, memory loses them when the server stops, redis is "
        "shared by several servers, kafka is redis with the bodies of jobs that are due much later in "
        "Kafka."},
    ConfigRow{"server", "data",
              TextField{1, kPathBytes, [](T& t, std::string v) { t.config.server.data = std::move(v); }},
              "\"data\"", "", "The journal's directory; created if it is missing."},
    ConfigRow{"server", "backups",
              TextField{0, kPathBytes, [](T& t, std::string v) { t.config.server.backups = std::move(v); }},
              "\"\"", "",
              "The directory for backups; empty means a directory backups beside the data directory."},
    ConfigRow{"server", "grace", DurationField{0s, 1h, [](T& t, Millis v) { t.config.server.grace = v; }},
              "\"10s\"", "", "How long a stop waits for jobs that consumers still hold."},
    ConfigRow{
        "server", "max_connections",
        NumberField{1, 1'000'000,
                    [](T& t, uint64_t v) { t.config.server.max_connections = static_cast<uint32_t>(v); }},
        "20000", "",
        "Maximum number of clients. When it is reached, a new client replaces one that has sent no request "
        "or has shown no token; if there is none, the new client gets an error and is closed."},
    ConfigRow{"server", "allow_anonymous",
              BooleanField{[](T& t, bool v) { t.config.server.allow_anonymous = v; }}, "false", "",
              "Listen on addresses that other machines can reach even if no tokens are configured."},
    ConfigRow{"server", "dashboard", BooleanField{[](T& t, bool v) { t.config.server.dashboard = v; }},
              "true", "", "Whether the HTTP port shows the dashboard at /."},
    ConfigRow{"server", "request_timeout",
              DurationField{1s, 1h, [](T& t, Millis v) { t.config.server.request_timeout = v; }}, "\"20s\"",
              "", "A request must arrive completely within this time, plus one second for every 16KiB."},
    ConfigRow{
        "server", "write_timeout",
        DurationField{1s, 1h, [](T& t, Millis v) { t.config.server.write_timeout = v; }}, "\"30s\"", "",
        "A client that reads none of its answers for this long, or less than 1KiB per second, is closed."},
    ConfigRow{"server", "first_request_timeout",
              DurationField{1s, 24h, [](T& t, Millis v) { t.config.server.first_request_timeout = v; }},
              "\"5m\"", "",
              "A client that has sent no request yet, or has shown no token where tokens are configured, is "
              "closed after being idle for this long. Other clients may stay idle."},
    ConfigRow{"server", "idempotency",
              DurationField{0s, 30 * 24h, [](T& t, Millis v) { t.config.server.idempotency = v; }}, "\"1d\"",
              "", "How long the answer to a request with an Idempotency-Key is kept, in memory."},
    ConfigRow{"server", "pid_file",
              TextField{0, kPathBytes, [](T& t, std::string v) { t.config.server.pid_file = std::move(v); }},
              "\"\"", "", "A file with the process id, locked while the server runs; empty means none."},
};

const std::array kTls{
    ConfigRow{"tls", "certificate",
              TextField{0, kPathBytes, [](T& t, std::string v) { t.config.tls.certificate = std::move(v); }},
              "\"\"", "",
              "A PEM file: the server's certificate and its intermediate certificates. Empty: no TLS."},
    ConfigRow{"tls", "key",
              TextField{0, kPathBytes, [](T& t, std::string v) { t.config.tls.key = std::move(v); }}, "\"\"",
              "", "A PEM file: the certificate's key."},
    ConfigRow{
        "tls", "client_ca",
        TextField{0, kPathBytes, [](T& t, std::string v) { t.config.tls.client_ca = std::move(v); }}, "\"\"",
        "",
        "A PEM file: clients need a certificate signed by one of these authorities. Empty: they need none."},
};

const std::array kCompat{
    ConfigRow{"compat", "go_delay_queue",
              BooleanField{[](T& t, bool v) { t.config.compat.go_delay_queue = v; }}, "true", "",
              "Whether go-delay-queue's API is served, below /delay-queue."},
    ConfigRow{"compat", "callback", BooleanField{[](T& t, bool v) { t.config.compat.callback = v; }}, "true",
              "", "Whether delay_queue_callback's API is served, at /job."},
    ConfigRow{"compat", "delayq", BooleanField{[](T& t, bool v) { t.config.compat.delayq = v; }}, "true", "",
              "Whether DelayQ's API is served, below /delayq."},
};

const std::array kJournal{
    ConfigRow{
        "journal", "durability",
        ChoiceField{kDurabilities,
                    {},
                    [](T& t, size_t v) { t.config.journal.durability = static_cast<Config::Durability>(v); }},
        "\"commit\"", "",
        "When a request is answered: commit is after fdatasync; interval is faster, but a power loss may "
        "lose the last interval."},
    ConfigRow{"journal", "interval",
              DurationField{1ms, 10s, [](T& t, Millis v) { t.config.journal.interval = v; }}, "\"50ms\"", "",
              "How often durability = \"interval\" syncs."},
    ConfigRow{"journal", "segment",
              SizeField{kMiB, kGiB, [](T& t, uint64_t v) { t.config.journal.segment_bytes = v; }},
              "\"32MiB\"", "", "The size of one file of the journal."},
    ConfigRow{"journal", "disk_reserve",
              SizeField{0, kTiB, [](T& t, uint64_t v) { t.config.journal.disk_reserve = v; }}, "\"128MiB\"",
              "", "Pushes are refused while the disk has less free space than this."},
};

const std::array kRedis{
    ConfigRow{"redis", "url",
              TextField{1, kPathBytes, [](T& t, std::string v) { t.config.redis.url = std::move(v); },
                        nullptr, /*is_secret=*/true},
              "\"redis://127.0.0.1:6379\"", "",
              "redis://HOST:PORT/DATABASE, redis-sentinel://HOST,HOST,HOST/MASTER, or "
              "redis-cluster://HOST,HOST,HOST; with rediss instead of redis for TLS."},
    ConfigRow{"redis", "user",
              TextField{0, 255, [](T& t, std::string v) { t.config.redis.user = std::move(v); }}, "\"\"", "",
              "The ACL user; empty means the one in the URL, or Redis's default user."},
    ConfigRow{"redis", "password",
              TextField{0, 1'024, [](T& t, std::string v) { t.config.redis.password = std::move(v); },
                        nullptr, /*is_secret=*/true},
              "\"\"", "", "Its password; empty means the one in the URL or in password_file, or none."},
    ConfigRow{
        "redis", "password_file",
        TextField{0, kPathBytes, [](T& t, std::string v) { t.config.redis.password_file = std::move(v); }},
        "\"\"", "", "A file with the password in its first line; empty means none."},
    ConfigRow{"redis", "sentinel_user",
              TextField{0, 255, [](T& t, std::string v) { t.config.redis.sentinel_user = std::move(v); }},
              "\"\"", "", "The ACL user for the Sentinels; empty means none."},
    ConfigRow{
        "redis", "sentinel_password",
        TextField{0, 1'024, [](T& t, std::string v) { t.config.redis.sentinel_password = std::move(v); },
                  nullptr, /*is_secret=*/true},
        "\"\"", "", "The password for the Sentinels; empty means none, which is usual."},
    ConfigRow{"redis", "database",
              NumberField{0, 1'000'000,
                          [](T& t, uint64_t v) { t.config.redis.database = static_cast<uint32_t>(v); }},
              "0", "", "The number of the database; 0 means the one in the URL. A Cluster has only 0."},
    ConfigRow{"redis", "prefix",
              TextField{1, 100, [](T& t, std::string v) { t.config.redis.prefix = std::move(v); },
                        check_redis_prefix},
              "\"delayq\"", "", "The prefix of all keys; servers with the same prefix share their jobs."},
    ConfigRow{"redis", "shards",
              NumberField{0, 256, [](T& t, uint64_t v) { t.config.redis.shards = static_cast<uint32_t>(v); }},
              "0", "",
              "The number of parts into which jobs are divided. It is the same for all servers and can never "
              "change; 0 means 1, on a Cluster 16. The order of jobs is kept within each part."},
    ConfigRow{
        "redis", "connections",
        NumberField{1, 64, [](T& t, uint64_t v) { t.config.redis.connections = static_cast<uint32_t>(v); }},
        "1", "", "Connections to each Redis. Commands are pipelined, so one is usually enough."},
    ConfigRow{"redis", "connect_timeout",
              DurationField{10ms, 1min, [](T& t, Millis v) { t.config.redis.connect_timeout = v; }}, "\"2s\"",
              "", "Timeout for connecting, the TLS handshake and the login."},
    ConfigRow{"redis", "timeout",
              DurationField{10ms, 1min, [](T& t, Millis v) { t.config.redis.timeout = v; }}, "\"5s\"", "",
              "If an answer takes longer, the connection is closed and opened again."},
    ConfigRow{"redis", "wait", DurationField{0s, 1min, [](T& t, Millis v) { t.config.redis.wait = v; }},
              "\"0s\"", "",
              "How long a request waits while Redis is unreachable or moves its slot, before it fails with "
              "unavailable."},
    ConfigRow{"redis", "start_wait",
              DurationField{0s, 1h, [](T& t, Millis v) { t.config.redis.start_wait = v; }}, "\"0s\"", "",
              "How long the server waits for Redis when it starts."},
    ConfigRow{"redis", "ca_file",
              TextField{0, kPathBytes, [](T& t, std::string v) { t.config.redis.ca_file = std::move(v); }},
              "\"\"", "", "A PEM file: the trusted authorities, instead of the system's."},
    ConfigRow{
        "redis", "certificate",
        TextField{0, kPathBytes, [](T& t, std::string v) { t.config.redis.certificate = std::move(v); }},
        "\"\"", "", "A PEM file: the client certificate for Redis; empty means none."},
    ConfigRow{"redis", "key",
              TextField{0, kPathBytes, [](T& t, std::string v) { t.config.redis.key = std::move(v); }},
              "\"\"", "", "A PEM file: the key of that certificate."},
    ConfigRow{"redis", "insecure", BooleanField{[](T& t, bool v) { t.config.redis.insecure = v; }}, "false",
              "", "Accept every certificate. The connection can then be read and changed by others."},
};

const std::array kWebhook{
    ConfigRow{"webhook", "connect_timeout",
              DurationField{10ms, 10min, [](T& t, Millis v) { t.config.webhook.connect_timeout = v; }},
              "\"5s\"", "", "Timeout for resolving the name, connecting and the TLS handshake."},
    ConfigRow{"webhook", "timeout",
              DurationField{10ms, 1h, [](T& t, Millis v) { t.config.webhook.timeout = v; }}, "\"30s\"", "",
              "Timeout of a whole call, unless the topic sets callback_timeout."},
    ConfigRow{"webhook", "in_flight",
              NumberField{0, 100'000,
                          [](T& t, uint64_t v) { t.config.webhook.in_flight = static_cast<uint32_t>(v); }},
              "1024", "", "Maximum number of concurrent calls to all hosts; 0 makes no calls."},
    ConfigRow{
        "webhook", "per_host",
        NumberField{1, 100'000,
                    [](T& t, uint64_t v) { t.config.webhook.per_host = static_cast<uint32_t>(v); }},
        "64", "",
        "Maximum number of concurrent calls to one host and port. The limit of a topic is its concurrency."},
    ConfigRow{
        "webhook", "breaker_failures",
        NumberField{0, 1'000'000,
                    [](T& t, uint64_t v) { t.config.webhook.breaker_failures = static_cast<uint32_t>(v); }},
        "10", "",
        "After this many failures in a row (no answer, 502, 503, 504) a host is not called for "
        "breaker_cooldown; 0 means never."},
    ConfigRow{"webhook", "breaker_cooldown",
              DurationField{10ms, 1h, [](T& t, Millis v) { t.config.webhook.breaker_cooldown = v; }},
              "\"30s\"", "", "How long such a host is not called; then one call is made as a test."},
    ConfigRow{
        "webhook", "allow",
        ListField{1'000, "networks",
                  [](T& t, std::vector<std::string> v) { t.config.webhook.allow = std::move(v); }},
        "[]", "",
        "Call only these networks (\"10.0.0.0/8\", \"fd00::/8\"); empty means all that are not refused."},
    ConfigRow{
        "webhook", "deny",
        ListField{1'000, "networks",
                  [](T& t, std::vector<std::string> v) { t.config.webhook.deny = std::move(v); }},
        "[]", "",
        "Never call these networks. Link-local, multicast and unspecified addresses are always refused."},
    ConfigRow{"webhook", "ca_file",
              TextField{0, kPathBytes, [](T& t, std::string v) { t.config.webhook.ca_file = std::move(v); }},
              "\"\"", "", "A PEM file: the trusted authorities, instead of the system's."},
    ConfigRow{"webhook", "insecure", BooleanField{[](T& t, bool v) { t.config.webhook.insecure = v; }},
              "false", "", "Accept every certificate. The calls can then be read and changed by others."},
    ConfigRow{"webhook", "user_agent",
              TextField{1, 200, [](T& t, std::string v) { t.config.webhook.user_agent = std::move(v); }},
              "\"delayq\"", "", "The User-Agent of the calls."},
    ConfigRow{"webhook", "secrets",
              ListField{kMostCallbackSecrets, "secrets",
                        [](T& t, std::vector<std::string> v) { t.config.webhook.secrets = std::move(v); },
                        check_callback_secrets},
              "[]", "",
              "Secrets that sign the calls to callbacks of topics without callback_secrets, never to a job's "
              "own callback. \"whsec_\" and base64."},
};

const std::array kBounds{
    ConfigRow{"limits", "body",
              SizeField{1, Limits::kMaxBodyBytes, [](T& t, uint64_t v) { t.config.limits.body_bytes = v; }},
              "\"1MiB\"", "", "The largest body of a job."},
    ConfigRow{"limits", "topics",
              NumberField{1, 10'000'000,
                          [](T& t, uint64_t v) { t.config.limits.topics = static_cast<uint32_t>(v); }},
              "1000000", "", "Maximum number of topics."},
    ConfigRow{"limits", "waiters",
              NumberField{1, 10'000'000,
                          [](T& t, uint64_t v) { t.config.limits.waiters = static_cast<uint32_t>(v); }},
              "100000", "", "Maximum number of consumers that wait for a job."},
    ConfigRow{
        "limits", "metrics_topics",
        NumberField{0, Limits::kPageJobs,
                    [](T& t, uint64_t v) { t.config.limits.metrics_topics = static_cast<uint32_t>(v); }},
        "200", "",
        "Number of topics with their own labels in /metrics, the first by name; the others are added up."},
    ConfigRow{"limits", "unanswered",
              SizeField{kMiB, kTiB, [](T& t, uint64_t v) { t.config.limits.unanswered_bytes = v; }},
              "\"64MiB\"", "", "Maximum number of bytes of pushes that are not durable yet."},
    ConfigRow{"limits", "unread",
              SizeField{kMiB, 64 * kGiB, [](T& t, uint64_t v) { t.config.limits.unread_bytes = v; }},
              "\"32MiB\"", "",
              "Maximum bytes of answers that one client has not read yet, including those of requests in "
              "progress. Above it, no further request of the client is executed until it reads."},
    ConfigRow{"limits", "unread_total",
              SizeField{kMiB, kTiB, [](T& t, uint64_t v) { t.config.limits.unread_total_bytes = v; }},
              "\"512MiB\"", "",
              "The same for all clients together. Above it, the slow reader with the most unread bytes is "
              "closed. Requests that have not arrived completely have a limit of the same size: above it, "
              "the largest is closed."},
    ConfigRow{"limits", "jobs", NumberField{1, kMaxJobs, [](T& t, uint64_t v) { t.config.limits.jobs = v; }},
              "", "10000000",
              "Maximum number of jobs, including done and dead ones that are kept. When it is reached, a "
              "push can still replace or keep an existing job if it names its id."},
    ConfigRow{"limits", "memory",
              SizeField{kMiB, 64 * kTiB, [](T& t, uint64_t v) { t.config.limits.memory_bytes = v; }}, "",
              "\"4GiB\"", "Maximum RAM of the engine's tables, about 100 bytes per job."},
    ConfigRow{"limits", "schedules",
              NumberField{0, 10'000'000, [](T& t, uint64_t v) { t.config.limits.schedules = v; }}, "100000",
              "", "Maximum number of recurring jobs; 0 allows none."},
};

const std::array kLog{
    ConfigRow{"log", "level",
              ChoiceField{
                  kLevels, {}, [](T& t, size_t v) { t.config.log.level = static_cast<Config::LogLevel>(v); }},
              "\"info\"", "", "The lowest level that is logged."},
    ConfigRow{"log", "file",
              TextField{0, kPathBytes, [](T& t, std::string v) { t.config.log.file = std::move(v); }}, "\"\"",
              "", "A file to append to; empty means standard error, for a daemon syslog."},
    ConfigRow{
        "log", "format",
        ChoiceField{
            kFormats, {}, [](T& t, size_t v) { t.config.log.format = static_cast<Config::LogFormat>(v); }},
        "\"text\"", "", "text for people, or json: one JSON object per line."},
    ConfigRow{"log", "access",
              TextField{0, kPathBytes, [](T& t, std::string v) { t.config.log.access = std::move(v); }},
              "\"\"", "", "A file that gets a line for each request; empty means none."},
    ConfigRow{
        "log", "keep_days",
        NumberField{0, 36'500, [](T& t, uint64_t v) { t.config.log.keep_days = static_cast<uint32_t>(v); }},
        "14", "", "How many days log files are kept, besides the current one; 0 keeps all."},
    ConfigRow{"log", "slow", DurationField{0s, 1h, [](T& t, Millis v) { t.config.log.slow = v; }}, "\"1s\"",
              "", "A request that takes longer is logged as a warning; \"0s\" means never."},
};

const std::array kRedisDelivery{
    ConfigRow{"redis_delivery", "url",
              TextField{0, 1'024, [](T& t, std::string v) { t.config.redis_delivery.url = std::move(v); }},
              "\"\"", "",
              "The Redis for delivery = \"redis_list\" and \"redis_stream\": "
              "redis://[USER:PASSWORD@]HOST:PORT/DATABASE, or rediss:// for TLS. Empty: the redis engine's "
              "own Redis; other engines then have none."},
    ConfigRow{"redis_delivery", "timeout",
              DurationField{100ms, 1min, [](T& t, Millis v) { t.config.redis_delivery.timeout = v; }},
              "\"5s\"", "", "Timeout for connecting and for a write; after it the jobs are written again."},
    ConfigRow{
        "redis_delivery", "in_flight",
        NumberField{1, 1'000'000,
                    [](T& t, uint64_t v) { t.config.redis_delivery.in_flight = static_cast<uint32_t>(v); }},
        "4096", "", "Maximum number of jobs that are being written at the same time."},
};

const std::array kTokens{
    ConfigRow{"tokens", "name",
              TextField{1, kTokenNameBytes, [](T& t, std::string v) { t.token->name = std::move(v); }}, "",
              "\"shop\"", "Its name in logs and messages; required."},
    ConfigRow{"tokens", "sha256", HashField{[](T& t, Sha256 v) { t.token->sha256 = v; }}, "",
              "\"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"",
              "The SHA-256 of its secret; required. `delayq token new` generates both."},
    ConfigRow{"tokens", "scopes", ScopesField{[](T& t, Scopes v) { t.token->scopes = v; }}, "",
              "[\"push\", \"consume\"]",
              "push (and cancel), consume (pop and ack), read (look around), schedule (recurring jobs), "
              "admin (everything); required."},
    ConfigRow{"tokens", "topics",
              PatternsField{[](T& t, std::vector<std::string> v) { t.token->topics = std::move(v); }},
              "[\"*\"]", "", "The topics that it may use."},
    ConfigRow{"tokens", "requests_per_second",
              NumberField{0, kMax32,
                          [](T& t, uint64_t v) { t.token->requests_per_second = static_cast<uint32_t>(v); }},
              "0", "", "Limit for all its connections together; 0 means no limit."},
    ConfigRow{"tokens", "waiters",
              NumberField{0, kMax32, [](T& t, uint64_t v) { t.token->waiters = static_cast<uint32_t>(v); }},
              "0", "", "Maximum number of its waiting pops; 0 means no limit."},
};

/// Makes the field that reads one setting of a topic, by the setting's kind.
class TopicField {
 public:
  explicit TopicField(size_t place) : place_(place) {}

  Field operator()(const NumberKind& kind) const { return NumberField{0, kind.most, put<uint64_t>()}; }
  Field operator()(const DurationKind& kind) const {
    return DurationField{kind.zero_means.empty() ? kind.least : Millis::zero(), kind.most, put<Millis>()};
  }
  Field operator()(const FlagKind& /*kind*/) const { return BooleanField{put<bool>()}; }
  Field operator()(const TextKind& kind) const {
    return TextField{0, kind.most_bytes, put<std::string>(), kind.check};
  }
  Field operator()(const WordKind& kind) const { return ChoiceField{kind.words.names, {}, put<uint64_t>()}; }
  Field operator()(const BackoffKind& /*kind*/) const { return BackoffField{put<Backoff>()}; }
  Field operator()(const RateKind& /*kind*/) const { return RateField{put<Rate>()}; }
  Field operator()(const SecretsKind& kind) const {
    return ListField{kind.most, kind.what, put<std::vector<std::string>>(), kind.check};
  }
  /// The time; the count is a row of its own.
  Field operator()(const RetentionKind& /*kind*/) const {
    return DurationField{0s, Limits::kMaxRetention,
                         [i = place_](T& t, Millis v) { retention(t, i).time = v; }};
  }
  Field retention_count() const {
    return NumberField{0, kMax32,
                       [i = place_](T& t, uint64_t v) { retention(t, i).count = static_cast<uint32_t>(v); }};
  }

 private:
  template <class Value>
  Put<Value> put() const {
    return [i = place_](T& t, Value v) { t.topic->values[i] = SettingValue(std::move(v)); };
  }
  static RetentionSetting& retention(T& t, size_t place) {
    std::optional<SettingValue>& value = t.topic->values[place];
    if (!value) value = RetentionSetting{};
    return std::get<RetentionSetting>(*value);
  }

  size_t place_;
};

std::string toml_text(string_view text) { return fmt::format("\"{}\"", text); }

// A default as TOML writes it.
std::string toml_of(const NumberKind& /*kind*/, uint64_t value) { return fmt::format("{}", value); }
std::string toml_of(const DurationKind& /*kind*/, Millis value) { return toml_text(format_duration(value)); }
std::string toml_of(const FlagKind& /*kind*/, bool value) { return value ? "true" : "false"; }
std::string toml_of(const TextKind& /*kind*/, const std::string& value) { return toml_text(value); }
std::string toml_of(const WordKind& kind, uint64_t value) { return toml_text(kind.words.names[value]); }
std::string toml_of(const BackoffKind& /*kind*/, const Backoff& value) {
  return toml_text(format_backoff(value));
}
std::string toml_of(const RateKind& /*kind*/, const Rate& value) { return toml_text(format_rate(value)); }
std::string toml_of(const RetentionKind& /*kind*/, const RetentionSetting& value) {
  return toml_text(format_duration(value.time.value_or(Millis::zero())));
}
/// No topic has secrets by default.
std::string toml_of(const SecretsKind& /*kind*/, const std::vector<std::string>& /*value*/) { return "[]"; }

template <class... Parts>
std::vector<ConfigRow> joined(const Parts&... parts) {
  std::vector<ConfigRow> rows;
  (rows.insert(rows.end(), parts.begin(), parts.end()), ...);
  return rows;
}

std::string with_suggestion(std::string_view what, std::string_view meant,
                            const std::vector<string_view>& all) {
  if (!meant.empty()) return fmt::format("{}: did you mean {}?", what, meant);
  return fmt::format("{}: known are {}", what, fmt::join(all, ", "));
}

}  // namespace

std::span<const ConfigSection> config_sections() { return kSections; }

std::span<const ConfigRow> config_rows() {
  static const std::vector<ConfigRow> kTopics =
      topic_rows(topic_settings().effective_values(EffectiveSettings{}));
  static const std::vector<ConfigRow> kRows =
      joined(kServer, kTls, kCompat, kJournal, kRedis, kWebhook, kRedisDelivery, kafka_rows(), kBounds, kLog,
             kTopics, schedule_rows(), intake_rows(), kTokens);
  return kRows;
}

std::vector<ConfigRow> topic_rows(const SettingValues& defaults) {
  std::vector<ConfigRow> rows;
  for (size_t i = 0; i < defaults.rows.size(); ++i) {
    const Setting& setting = defaults.rows[i];
    const SettingValue& value = *defaults.values[i];
    const TopicField field(i);
    ConfigRow row{
        kTopicsSection,
        std::string(setting.name),
        std::visit(field, setting.kind),
        visit_setting(setting, value, [](const auto& kind, const auto& v) { return toml_of(kind, v); }),
        "",
        setting.help};
    if (!std::holds_alternative<RetentionKind>(setting.kind)) {
      rows.push_back(std::move(row));
      continue;
    }
    row.key += ".time";
    rows.push_back(std::move(row));
    const uint32_t count = std::get<RetentionSetting>(value).count.value_or(0);
    rows.push_back({kTopicsSection, fmt::format("{}.count", setting.name), field.retention_count(),
                    fmt::format("{}", count), "", "Maximum number of these jobs that are kept."});
  }
  return rows;
}

const ConfigRow* find_row(string_view section, string_view key) {
  for (const ConfigRow& row : config_rows()) {
    if (row.section == section && row.key == key) return &row;
  }
  return nullptr;
}

std::string variable_of(const ConfigRow& row) {
  std::string name = fmt::format("DELAYQ_{}_{}", row.section, row.key);
  for (char& c : name) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return name;
}

std::string unknown_section(string_view section) {
  std::vector<string_view> names;
  for (const ConfigSection& known : kSections) names.push_back(known.name);
  return with_suggestion("unknown section", nearest(section, names), names);
}

std::string unknown_key(string_view section, string_view key) {
  std::vector<string_view> keys;
  for (const ConfigRow& row : config_rows()) {
    if (row.section == section) keys.push_back(row.key);
  }
  const string_view meant = nearest(key, keys);
  if (!meant.empty()) return with_suggestion("unknown key", meant, keys);
  for (const ConfigRow& row : config_rows()) {
    if (row.key == key) return fmt::format("unknown key: {} belongs to [{}]", key, row.section);
  }
  return with_suggestion("unknown key", {}, keys);
}

}  // namespace delayq
