#include <algorithm>
#include <array>
#include <fstream>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/kafka.h"
#include "app/storage.h"
#include "core/duration.h"
#include "engine/redis/keys.h"
#include "engine/redis/redis_engine.h"
#include "net/redis/client.h"
#include "net/redis/options.h"
#include "resp/value.h"

namespace delayq {

namespace {

using net::redis::Mode;

Result<std::string> first_line(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  if (!in || !std::getline(in, line))
    return in_verb("open", invalid(fmt::format("redis.password_file: {} cannot be read, or is empty", path)));
  if (line.ends_with('\r')) line.pop_back();
  return line;
}

/// For the log: without anything secret.
std::string describe(const net::redis::ClientOptions& client) {
  std::vector<std::string> hosts;
  for (const net::redis::Address& address : client.addresses) hosts.push_back(to_string(address));
  const std::string all = fmt::format("{}", fmt::join(hosts, ", "));
  switch (client.mode) {
    case Mode::kStandalone:
      break;
    case Mode::kSentinel:
      return fmt::format("redis {} by Sentinel at {}", client.master_name, all);
    case Mode::kCluster:
      return fmt::format("redis Cluster at {}", all);
  }
  return fmt::format("redis at {}", all);
}

}  // namespace

std::vector<std::string> check_redis(const Config::Redis& said) {
  std::vector<std::string> errors;
  const auto url = net::redis::parse_url(said.url);
  if (!url.ok()) {
    errors.push_back(fmt::format("redis.url: {}", url.error().detail));
    return errors;
  }
  const auto refuse_two = [&](std::string_view key, bool is_said_twice) {
    if (is_said_twice)
      errors.push_back(fmt::format("redis.{}: also set in redis.url: remove one of them", key));
  };
  refuse_two("user", !said.user.empty() && !url->user.empty());
  refuse_two("password", !said.password.empty() && !url->password.empty());
  refuse_two("password_file", !said.password_file.empty() && !url->password.empty());
  refuse_two("database", said.database != 0 && url->database != 0 && url->database != said.database);
  if (!said.password.empty() && !said.password_file.empty())
    errors.emplace_back("redis.password_file: redis.password is also set: remove one of them");
  if (said.database != 0 && url->mode == Mode::kCluster)
    errors.emplace_back("redis.database: a Cluster has only database 0");
  if (said.certificate.empty() != said.key.empty())
    errors.emplace_back("redis: certificate and key are needed together");
  if (!url->tls.is_on && !(said.ca_file.empty() && said.certificate.empty() && !said.insecure))
    errors.emplace_back("redis: ca_file, certificate and insecure are for TLS: write redis.url with rediss");
  return errors;
}

Result<RedisStorageOptions> redis_storage_options(const Config::Redis& said) {
  auto client = net::redis::parse_url(said.url);
  if (!client.ok()) return client.error();
  if (!said.user.empty()) client->user = said.user;
  if (!said.password.empty()) client->password = said.password;
  if (!said.password_file.empty()) {
    auto password = first_line(said.password_file);
    if (!password.ok()) return password.error();
    client->password = std::move(*password);
  }
  client->sentinel_user = said.sentinel_user;
  client->sentinel_password = said.sentinel_password;
  if (said.database != 0) client->database = said.database;
  client->tls.ca_file = said.ca_file;
  client->tls.certificate = said.certificate;
  client->tls.key = said.key;
  client->tls.skips_check = said.insecure;
  client->connections = said.connections;
  client->connect_timeout = said.connect_timeout;
  client->reply_timeout = said.timeout;
  client->wait = said.wait;
  RedisStorageOptions options;
  options.where = describe(*client);
  options.prefix = said.prefix;
  options.shards = said.shards;
  options.start_wait = said.start_wait;
  options.client = std::move(*client);
  return options;
}

namespace {

using net::redis::Mode;

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

bool is_password_problem(std::string_view problem) {
  constexpr std::array kSigns{"WRONGPASS", "NOAUTH", "invalid password", "without any password configured"};
  return std::any_of(kSigns.begin(), kSigns.end(),
                     [problem](std::string_view sign) { return has(problem, sign); });
}

/// Of a command, or of one in a script.
bool is_rights_problem(std::string_view problem) {
  return has(problem, "NOPERM") || has(problem, "The user executing the script");
}

/// What an ACL user needs, as ACL SETUSER takes it.
std::string needed_rights(const RedisStorageOptions& options) {
  constexpr std::array kByMode{"", " +role", " +cluster"};
  return fmt::format("~{0}:* &{0}:news +@read +@write +@scripting +@pubsub +@connection +info +time{1}",
                     options.prefix, kByMode[static_cast<size_t>(options.client.mode)]);
}

}  // namespace

bool is_login_problem(std::string_view problem) {
  return is_password_problem(problem) || is_rights_problem(problem);
}

bool is_version_problem(std::string_view problem) { return has(problem, "or later is needed"); }

std::string advice_on_reaching(std::string_view problem, Mode mode, const RedisNames& names) {
  const std::string& url = names.url;
  if (is_password_problem(problem)) {
    return names.is_all_in_url
               ? fmt::format("look at user and password: redis://USER:PASSWORD@HOST:PORT in {}", url)
               : "look at redis.user and redis.password (or password_file)";
  }
  if (mode != Mode::kCluster && (has(problem, "MOVED ") || has(problem, "CLUSTERDOWN")))
    return fmt::format("it is a member of a Cluster: set {} to redis-cluster://HOST,HOST", url);
  if (mode == Mode::kCluster && has(problem, "cluster support disabled"))
    return fmt::format("it is not a Cluster: set {} to redis://HOST:PORT", url);
  if (has(problem, "DB index"))
    return fmt::format("look at the database in {}{}", url, names.is_all_in_url ? "" : " or redis.database");
  if (has(problem, "it is a sentinel, not a master"))
    return fmt::format("set {} to redis-sentinel://HOST,HOST/MASTER", url);
  if (has(problem, ", not a master")) return fmt::format("name its master in {}, or its Sentinels", url);
  if (has(problem, "not a Sentinel"))
    return fmt::format("name the Sentinels in {}; their port is usually 26379", url);
  if (has(problem, "certificate is not trusted")) {
    return fmt::format("set {} to the trusted authorities, and use a host name of the certificate in {}",
                       names.is_all_in_url ? "SSL_CERT_FILE in the environment" : "redis.ca_file", url);
  }
  return {};
}

std::string advice_on(std::string_view problem, const RedisStorageOptions& options) {
  const RedisNames& names = options.names;
  if (is_rights_problem(problem)) {
    return fmt::format("the user of {}{} needs {}", names.url, names.is_all_in_url ? "" : " or redis.user",
                       needed_rights(options));
  }
  if (has(problem, "WRONGTYPE")) {
    return fmt::format(
        "another program has keys that begin with {}: choose another {}", options.prefix,
        names.is_all_in_url ? fmt::format("one, ?prefix=NAME in {}", names.url) : "redis.prefix");
  }
  if (is_version_problem(problem))
    return "earlier ones do not tell a script that memory is full or that replicas are missing";
  if (problem.starts_with("OOM ")) return "its memory is full: raise its maxmemory";
  return advice_on_reaching(problem, options.client.mode, names);
}

namespace {

using net::redis::Client;
using net::redis::Mode;

constexpr uint32_t kClusterShards = 16;
/// Since this version a script's error has the code of Redis (OOM, READONLY, MISCONF), and
/// min-replicas-to-write applies to scripts as well.
constexpr net::redis::Version kOldest{7, 0};
/// A start waits this long for a Redis that restarts, or for a failover.
constexpr Millis kLeastPatience = std::chrono::seconds{1};
/// A stop waits so long until the consumer has left its group.
constexpr Millis kLeave = std::chrono::seconds{3};
/// A start waits so long for the brokers.
constexpr Millis kBrokersWait = std::chrono::seconds{30};
/// Problems that alternate are logged at most this often.
constexpr Millis kProblemPause = std::chrono::seconds{10};

class RedisStorage final : public Storage {
 public:
  RedisStorage(const StorageOptions& options, net::Loop& loop)
      : options_(options.redis),
        only_looks_(options.only_looks),
        must_exist_(options.must_exist),
        loop_(loop),
        tell_(options.tell) {}

  /// The engine signs off, so that another server need not wait until this one's claims expire.
  ~RedisStorage() override {
    engine_.reset();
    loop_.finish_turn();
    if (cold_ == nullptr) return;
    // The others get its partitions at once.
    kafka::Ladder& ladder = cold_->ladder();
    ladder.close();
    const auto begin = net::Loop::steady_now();
    while (!ladder.is_closed() && net::Loop::steady_now() - begin < kLeave) {
      ladder.poll();
      turn();
    }
  }
  RedisStorage(const RedisStorage&) = delete;
  RedisStorage& operator=(const RedisStorage&) = delete;

  Status open();

  Engine& engine() override { return *engine_; }
  std::string describe() override {
    return fmt::format("{}, {} shard{}, {} jobs{}", options_.where, options_.shards,
                       options_.shards == 1 ? "" : "s", engine_->usage().jobs,
                       cold_ == nullptr ? "" : "; " + cold_->describe());
  }
  bool is_new() const override { return is_new_; }
  uint32_t shards() const override { return options_.shards; }
  Moment now() const override { return client_->now(); }
  Millis clock_offset() const override { return client_->clock_offset(); }
  void look() override;
  void tell_problems();
  std::optional<http::RedisFigures> redis_figures() const override;
  std::optional<http::LadderFigures> ladder_figures() const override;

 private:
  Status connect();
  Millis waited() const { return std::chrono::duration_cast<Millis>(net::Loop::steady_now() - begin_); }
  Millis patience() const { return std::max(options_.start_wait, kLeastPatience); }
  Status look_at_server();
  Status check_rights();
  /// Reads an existing deployment, without creating one.
  Status find_shards();
  Status settle_shards();
  /// All servers of a deployment keep bodies in the same topics, or none does.
  Status settle_cold();
  Status open_cold();
  /// The message has the stored number of shards and the configured one.
  Status check_shards(const redis::Layout& layout);
  /// Waits for the result of the command that `send` sends, and sends it again as long as a start waits for
  /// Redis. Blocks: call it only before clients are served.
  Result<resp::Value> ask(const std::function<void(net::redis::Answer)>& send);
  void turn();
  /// Those of a new deployment.
  redis::Shards initial_shards() const {
    const uint32_t usual = options_.client.mode == Mode::kCluster ? kClusterShards : 1;
    const uint32_t shards = options_.shards != 0 ? options_.shards : usual;
    return redis::new_shards(options_.prefix, shards);
  }
  Error not_a_layout() const {
    return refused(fmt::format("{}:meta has an unexpected format", options_.prefix));
  }
  /// Adds what an operator can do about it.
  Error refused(std::string_view detail) const {
    detail = detail.substr(0, detail.find(" script: "));  // cuts off the script's hash and line
    const std::string advice = advice_on(detail, options_);
    return {ErrorCode::kUnavailable,
            "open",
            fmt::format("{}: {}{}{}", options_.where, detail, advice.empty() ? "" : "; ", advice),
            {}};
  }

  RedisStorageOptions options_;
  bool only_looks_;
  bool must_exist_;
  bool is_new_ = false;
  redis::Shards shards_;
  net::Loop& loop_;
  std::function<void(bool, std::string_view)> tell_;
  std::unique_ptr<Client> client_;
  std::unique_ptr<ColdStorage> cold_;  ///< null: all bodies are in Redis
  std::unique_ptr<RedisEngine> engine_;
  bool was_connected_ = true;
  bool was_deaf_ = false;
  std::string told_problem_;
  std::chrono::steady_clock::time_point told_at_{};  ///< when it was logged last
  uint64_t told_mended_ = 0;
  uint64_t told_mended_schedules_ = 0;
  std::chrono::steady_clock::time_point begin_ = net::Loop::steady_now();
};

Status RedisStorage::open() {
  options_.client.seed = random_seed();
  options_.client.oldest = kOldest;
  auto client = net::redis::open_client(loop_, options_.client);
  if (!client.ok()) {
    // The only files that are read here are those of TLS.
    Error error = client.error();
    if (error.detail.starts_with("tls.")) error.detail.replace(0, 3, "redis");
    return error;
  }
  client_ = std::move(*client);
  for (const auto step : {&RedisStorage::connect, &RedisStorage::look_at_server, &RedisStorage::find_shards,
                          &RedisStorage::check_rights, &RedisStorage::settle_shards,
                          &RedisStorage::settle_cold, &RedisStorage::open_cold}) {
    if (Status status = (this->*step)(); !status.ok()) return status;
  }
  RedisEngineOptions engine;
  engine.prefix = options_.prefix;
  engine.shards = shards_;
  engine.server = fmt::format("{:016x}", random_seed());
  engine.only_looks = only_looks_;
  engine.cold_store = cold_ == nullptr ? nullptr : &cold_->ladder();
  if (options_.names.is_all_in_url)
    engine.prefix_name = fmt::format("?prefix=NAME in {}", options_.names.url);
  engine_ = std::make_unique<RedisEngine>(*client_, std::move(engine));
  return {};
}

void RedisStorage::turn() {
  loop_.wait_until(net::Loop::now() + Millis{10});
  client_->poll();
  loop_.finish_turn();
}

Status RedisStorage::connect() {
  while (!client_->is_connected()) {
    turn();
    const std::string_view problem = client_->last_error();
    if (is_login_problem(problem) || is_version_problem(problem)) return refused(problem);
    if (!problem.empty() ? waited() <= patience() : waited() <= patience() + options_.client.connect_timeout)
      continue;
    const std::string detail = fmt::format("cannot be reached: {}", problem.empty() ? "no answer" : problem);
    if (!advice_on(problem, options_).empty()) return refused(detail);
    if (detail.ends_with('?')) return refused(detail);
    return refused(fmt::format("{}; is {} right?{}", detail, options_.names.url,
                               options_.names.is_all_in_url
                                   ? ""
                                   : " redis.start_wait lets a server wait for a Redis that starts later, "
                                     "and -t journal needs none"));
  }
  return {};
}

Result<resp::Value> RedisStorage::ask(const std::function<void(net::redis::Answer)>& send) {
  for (;;) {
    std::optional<Result<resp::Value>> answer;
    send([&answer](Result<resp::Value> value) { answer = std::move(value); });
    while (!answer) turn();
    // During a failover, or while replicas are missing, Redis accepts it after a moment.
    const bool may_be_taken_later = !answer->ok() && answer->error().code == ErrorCode::kUnavailable &&
                                    !is_login_problem(answer->error().detail);
    if (!may_be_taken_later || waited() > patience()) return *std::move(answer);
    turn();
  }
}

Status RedisStorage::look_at_server() {
  auto info = ask([this](net::redis::Answer answer) { client_->call({}, {"INFO"}, std::move(answer)); });
  if (!info.ok()) return refused(info.error().detail);
  const std::string_view policy = resp::info_line(info->text, "maxmemory_policy");
  if (resp::info_line(info->text, "maxmemory") != "0" && policy != "noeviction") {
    tell_(true, fmt::format("{} evicts keys when its memory is full (maxmemory-policy {}): jobs may be lost; "
                            "set noeviction, so that pushes are refused instead",
                            options_.where, policy));
  }
  if (resp::info_line(info->text, "aof_enabled") == "0") {
    tell_(true, fmt::format("{} keeps no append-only file: a crash of it loses the jobs since its last "
                            "snapshot; set appendonly yes",
                            options_.where));
  }
  return {};
}

Status RedisStorage::check_rights() {
  if (only_looks_) return {};
  const std::string name = fmt::format("rights-{:016x}", random_seed());
  const Result<resp::Value> answer = ask([this, &name](net::redis::Answer told) {
    redis::try_rights(*client_, options_.prefix, name, std::move(told));
  });
  if (!answer.ok()) return refused(answer.error().detail);
  const std::string commands = redis::refused_commands(*answer);
  if (commands.empty()) return {};
  return refused(fmt::format("NOPERM the user may not call {}", commands));
}

Status RedisStorage::find_shards() {
  if (!only_looks_ && !must_exist_) return {};
  const Result<resp::Value> answer = ask([this](net::redis::Answer told) {
    redis::find_layout(*client_, options_.prefix + ":meta", std::move(told));
  });
  if (!answer.ok()) return refused(answer.error().detail);
  const std::optional<redis::Layout> layout = redis::read_layout(*answer);
  if (!layout) return not_a_layout();
  is_new_ = layout->version.empty() && layout->shards.empty();
  if (!is_new_) return check_shards(*layout);
  if (must_exist_)
    return Error{ErrorCode::kNotFound,
                 "open",
                 fmt::format("{} {}, under the prefix \"{}\"; is that the right one?", options_.where,
                             kNeverUsed, options_.prefix),
                 {}};
  shards_ = initial_shards();
  options_.shards = static_cast<uint32_t>(shards_.tags.size());
  return {};
}

Status RedisStorage::settle_shards() {
  if (only_looks_) return {};
  // Of several servers that start for the first time, one decides for all.
  const Result<resp::Value> answer = ask([this](net::redis::Answer told) {
    redis::settle_layout(*client_, options_.prefix + ":meta", initial_shards(), std::move(told));
  });
  if (!answer.ok()) return refused(answer.error().detail);
  const std::optional<redis::Layout> layout = redis::read_layout(*answer);
  return layout ? check_shards(*layout) : Status{not_a_layout()};
}

Status RedisStorage::check_shards(const redis::Layout& layout) {
  const bool is_setting = !options_.names.is_all_in_url;
  Result<redis::Shards> found = redis::shards_of(layout, options_.prefix, is_setting ? options_.shards : 0);
  if (!found.ok()) return refused(found.error().detail);
  const auto shards = static_cast<uint32_t>(found->tags.size());
  if (options_.shards != 0 && options_.shards != shards)
    return refused(
        fmt::format("the jobs under the prefix \"{}\" are in {} shards, and {} says shards={}: leave it "
                    "out, or use another prefix",
                    options_.prefix, shards, options_.names.url, options_.shards));
  options_.shards = shards;
  shards_ = std::move(*found);
  return {};
}

Status RedisStorage::settle_cold() {
  if (only_looks_) return {};
  const std::string meta = options_.prefix + ":meta";
  if (options_.cold) {
    const auto stored = ask([&](net::redis::Answer told) {
      client_->call(meta, {"HSETNX", meta, "cold", options_.cold->ladder.prefix}, std::move(told));
    });
    if (!stored.ok()) return refused(stored.error().detail);
  }
  const auto cold = ask([&](net::redis::Answer told) {
    client_->call(meta, {"HGET", meta, "cold"}, std::move(told));
  });
  if (!cold.ok()) return refused(cold.error().detail);
  if (cold->text.empty()) return {};
  if (!options_.cold)
    return refused(
        fmt::format("bodies of the jobs under the prefix \"{}\" are in Kafka, in topics {}.delay.*: set "
                    "server.engine = \"kafka\", or use another redis.prefix",
                    options_.prefix, cold->text));
  if (cold->text == options_.cold->ladder.prefix) return {};
  return refused(
      fmt::format("bodies of the jobs under the prefix \"{}\" are in Kafka topics {}.delay.*, and "
                  "kafka.prefix is {}: set it to {}, or use another redis.prefix",
                  options_.prefix, cold->text, options_.cold->ladder.prefix, cold->text));
}

Status RedisStorage::open_cold() {
  if (only_looks_ || !options_.cold) return {};
  auto cold = ColdStorage::open(*options_.cold, *client_, options_.prefix,
                                std::max(options_.start_wait, kBrokersWait), [this] { loop_.wake(); });
  if (!cold.ok()) return cold.error();
  cold_ = std::move(*cold);
  return {};
}

void RedisStorage::look() {
  if (cold_ != nullptr) cold_->look(*engine_->cold_tier(), tell_);
  // SUBSCRIBE cannot be tried on this connection: one that listens can do nothing else.
  if (!was_deaf_ && client_->last_error().starts_with("NOPERM")) {
    was_deaf_ = true;
    tell_(true,
          fmt::format(
              "{} does not allow this server to subscribe: {}; changes by other servers are noticed late: {}",
              options_.where, client_->last_error(), advice_on(client_->last_error(), options_)));
  }
  tell_problems();
  const bool is_connected = client_->is_connected();
  if (is_connected == was_connected_) return;
  was_connected_ = is_connected;
  if (is_connected) {
    tell_(false, fmt::format("{} is back", options_.where));
  } else {
    tell_(true, fmt::format("{} cannot be reached: {}; requests fail with unavailable until it is back",
                            options_.where, client_->last_error()));
  }
}

void RedisStorage::tell_problems() {
  const auto now = net::Loop::steady_now();
  if (engine_->problem() != told_problem_ && (told_problem_.empty() || now - told_at_ >= kProblemPause)) {
    told_problem_ = engine_->problem();
    told_at_ = now;
    tell_(true, fmt::format("{}: {}; jobs there wait, or are refused", options_.where, told_problem_));
  }
  if (engine_->mended() != told_mended_) {
    tell_(true,
          fmt::format("{}: {} jobs were put back in their places: keys of theirs were deleted or evicted",
                      options_.where, engine_->mended() - told_mended_));
    told_mended_ = engine_->mended();
  }
  if (engine_->mended_schedules() != told_mended_schedules_) {
    tell_(true, fmt::format("{}: {} schedules were put back in their places: keys of theirs were deleted or "
                            "evicted",
                            options_.where, engine_->mended_schedules() - told_mended_schedules_));
    told_mended_schedules_ = engine_->mended_schedules();
  }
}

std::optional<http::RedisFigures> RedisStorage::redis_figures() const {
  const net::redis::ClientFigures& figures = client_->figures();
  http::RedisFigures told;
  told.is_connected = client_->is_connected();
  told.outstanding = client_->outstanding();
  told.commands = figures.commands;
  told.errors = figures.errors;
  told.retries = figures.retries;
  told.connects = figures.connects;
  told.reconnects = figures.reconnects;
  told.clock_offset = client_->clock_offset();
  return told;
}

std::optional<http::LadderFigures> RedisStorage::ladder_figures() const {
  if (cold_ == nullptr) return std::nullopt;
  return cold_->figures(*engine_->cold_tier());
}

}  // namespace

Result<std::unique_ptr<Storage>> open_redis_storage(const StorageOptions& options, net::Loop& loop) {
  auto storage = std::make_unique<RedisStorage>(options, loop);
  if (Status status = storage->open(); !status.ok()) return status.error();
  return std::unique_ptr<Storage>(std::move(storage));
}

}  // namespace delayq
