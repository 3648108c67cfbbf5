#include "ops/seed_config.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "core/text.h"
#include "ops/config_table.h"

namespace delayq {

namespace {

constexpr size_t kMostEntries = 10'000;
constexpr size_t kMostErrors = 100;
constexpr size_t kLineBytes = size_t{64} << 10;
constexpr size_t kNameBytes = 256;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr std::string_view kComment = ";#";
constexpr std::string_view kQuotes = "\"'`";

/// Empty, or only a comment.
bool says_nothing(std::string_view text) {
  return text.empty() || kComment.find(text[0]) != std::string_view::npos;
}

/// Why a line is not text; empty: it is.
std::string_view flaw_of(std::string_view line) {
  while (!line.empty()) {
    const std::optional<char32_t> c = take_code_point(line);
    if (!c) return "this is not UTF-8: save the file so";
    if (is_control(*c) && *c != U'\t') return "there is a control character in this line";
  }
  return {};
}

class Reader {
 public:
  explicit Reader(std::string_view text) : left_(text) {
    if (left_.starts_with(kByteOrderMark)) left_.remove_prefix(kByteOrderMark.size());
  }

  IniText read() && {
    while (!left_.empty() && !is_over_) {
      const size_t end = left_.find('\n');
      std::string_view line = left_.substr(0, end);
      left_.remove_prefix(end == std::string_view::npos ? left_.size() : end + 1);
      if (line.ends_with('\r')) line.remove_suffix(1);
      ++line_;
      read_line(line);
    }
    return std::move(out_);
  }

 private:
  void complain(std::string what) {
    if (is_over_) return;
    is_over_ = out_.errors.size() + 1 == kMostErrors;
    out_.errors.push_back(
        {line_, is_over_ ? "too many errors: the rest of the file is not read" : std::move(what)});
  }

  void read_line(std::string_view line) {
    if (line.size() > kLineBytes)
      return complain(fmt::format("the line has {} bytes: at most {} are allowed", line.size(), kLineBytes));
    if (const std::string_view flaw = flaw_of(line); !flaw.empty()) return complain(std::string(flaw));
    const std::string_view said = trimmed(line);
    if (said.starts_with(';')) out_.has_semicolons = true;
    if (says_nothing(said)) return;
    if (said[0] == '[') return read_section(said);
    read_entry(said);
  }

  void read_section(std::string_view said) {
    const size_t end = said.find(']');
    if (end == std::string_view::npos) return complain("a section needs its ]: write [name]");
    if (!says_nothing(trimmed(said.substr(end + 1)))) return complain("there is something after the ]");
    const std::string_view name = trimmed(said.substr(1, end - 1));
    if (name.empty() || name.size() > kNameBytes)
      return complain(fmt::format("the name of a section must have 1 to {} bytes", kNameBytes));
    section_ = name;
  }

  void read_entry(std::string_view said) {
    const size_t sign = said.find_first_of("=:");
    if (sign == std::string_view::npos) return complain("expected key = value, [section] or a ; comment");
    const std::string_view key = trimmed(said.substr(0, sign));
    if (key.empty() || key.size() > kNameBytes)
      return complain(fmt::format("a key must have 1 to {} bytes", kNameBytes));
    const std::optional<std::string_view> value = read_value(trimmed(said.substr(sign + 1)));
    if (!value) return;
    if (out_.entries.size() == kMostEntries) {
      complain(fmt::format("the file has more than {} keys: the rest is not read", kMostEntries));
      is_over_ = true;
      return;
    }
    out_.entries.push_back({section_, std::string(key), std::string(*value), line_});
  }

  std::optional<std::string_view> read_value(std::string_view said) {
    if (!said.empty() && kQuotes.find(said[0]) != std::string_view::npos) {
      const size_t end = said.find(said[0], 1);
      if (end == std::string_view::npos) {
        complain("the value's closing quote is missing");
        return std::nullopt;
      }
      if (!says_nothing(trimmed(said.substr(end + 1)))) {
        complain("there is something after the value's closing quote");
        return std::nullopt;
      }
      return said.substr(1, end - 1);
    }
    const std::string_view value = trimmed(said.substr(0, said.find_first_of(kComment)));
    if (value.ends_with('\\')) {
      complain("a value that goes on in the next line is not understood: write it in one, or in quotes");
      return std::nullopt;
    }
    return value;
  }

  std::string_view left_;
  IniText out_;
  std::string section_;
  uint32_t line_ = 0;
  bool is_over_ = false;
};

}  // namespace

IniText read_ini(std::string_view text) { return Reader(text).read(); }

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
constexpr string_view kKafka =
    "not used: the kafka engine has its own settings in [kafka], such as prefix and ladder";
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
    SeedKey{"kafka.bootstrap_servers", kGo, Kind::kText, "kafka.brokers"},
    SeedKey{"kafka.security_protocol", kGo, Kind::kKafka, "kafka.tls"},
    SeedKey{"kafka.sasl_mechanism", kGo, Kind::kKafka, "kafka.sasl"},
    SeedKey{"kafka.sasl_username", kGo, Kind::kKafka, "kafka.user"},
    SeedKey{"kafka.sasl_password", kGo, Kind::kKafka, "kafka.password"},
    SeedKey{"kafkaqueue.delay_durations", kGo, Kind::kText, {}, kKafka},
    SeedKey{"kafkaqueue.delay_topic", kGo, Kind::kText, {}, kKafka},
    SeedKey{"kafkaqueue.delay_partition_groups", kGo, Kind::kText, "kafka.partition_groups"},
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

namespace {

using Kind = SeedKey::Kind;

/// Whether our own files have this key, or this section and many keys in it.
bool is_our_own(std::string_view name) {
  const size_t dot = name.find('.');
  if (dot == std::string_view::npos) return false;
  const std::string_view section = name.substr(0, dot);
  return is_repeated(section) || find_row(section, name.substr(dot + 1)) != nullptr;
}

/// The system of which the file has the most keys; none when it is not one of their files.
std::optional<SeedForm> recognise(const IniText& text) {
  std::array<size_t, kSeedFormCount> votes{};
  bool is_theirs = false;
  for (const IniEntry& entry : text.entries) {
    const std::string name = entry.name();
    bool is_known = false;
    for (size_t i = 0; i < kSeedFormCount; ++i) {
      if (find_seed_key(static_cast<SeedForm>(i), name) == nullptr) continue;
      ++votes[i];
      is_known = true;
    }
    // log.level is a key of both.
    if (is_our_own(name) && !is_known) return std::nullopt;
    is_theirs |= is_known && !is_our_own(name);
  }
  if (!is_theirs) return std::nullopt;
  return static_cast<SeedForm>(std::max_element(votes.begin(), votes.end()) - votes.begin());
}

std::optional<uint32_t> number_of(std::string_view text, uint32_t least, uint32_t most) {
  uint32_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, number);
  if (problem != std::errc{} || stop != end || number < least || number > most) return std::nullopt;
  return number;
}

/// Maps the levels of Go's loggers to ours; other words are not changed.
std::string level_of(std::string_view text) {
  std::string level = lowered(text);
  if (level == "trace") return "debug";
  if (level == "warning") return "warn";
  if (level == "fatal" || level == "panic" || level == "dpanic") return "error";
  return level;
}

class SeedReader {
 public:
  SeedReader(SeedForm form, std::string_view file_name) : form_(form), file_name_(file_name) {}

  ConfigOutcome read(const IniText& text) && {
    out_.form = name_of(form_);
    std::map<std::string, uint32_t> last;
    for (const IniEntry& entry : text.entries) last[entry.name()] = entry.line;
    auto error = text.errors.begin();
    const auto tell_errors = [&](uint32_t before) {
      for (; error != text.errors.end() && error->line < before; ++error)
        out_.errors.push_back(fmt::format("{}: {}", at(error->line), error->what));
    };
    for (const IniEntry& entry : text.entries) {
      tell_errors(entry.line);
      const uint32_t counts = last[entry.name()];
      if (counts == entry.line) {
        take(entry);
      } else {
        warn(entry, fmt::format("set again in line {}; the last value is used", counts));
      }
    }
    tell_errors(std::numeric_limits<uint32_t>::max());
    take_log_file();
    take_redis();
    take_kafka();
    take_delivery();
    take_partitions();
    return std::move(out_);
  }

 private:
  std::string at(uint32_t line) const { return fmt::format("{}:{}", file_name_, line); }

  void warn(const IniEntry& entry, std::string_view what) {
    out_.warnings.push_back(fmt::format("{}: {}: {}", at(entry.line), entry.name(), what));
  }
  void complain(const IniEntry& entry, std::string_view what) {
    out_.errors.push_back(fmt::format("{}: {}: {}", at(entry.line), entry.name(), what));
  }

  void take(const IniEntry& entry) {
    const SeedKey* const key = find_seed_key(form_, entry.name());
    if (key == nullptr) return warn_of_unknown(entry);
    is_popped_ |= entry.name() == "queue_name" || entry.name() == "queue_block_timeout";
    keeps_ |= key->to == kKeepTime;
    if (key->to == kGroups) groups_ = &entry;
    if (key->to.empty()) warn(entry, key->note);
    // An empty value is the same as a missing key, in their programs and here.
    if (entry.value.empty()) return;
    switch (key->kind) {
      case Kind::kText:
        return set(entry, key->to, entry.value);
      case Kind::kLevel:
        return set(entry, key->to, level_of(entry.value));
      case Kind::kLogFolder:
        log_folder_ = &entry;
        return;
      case Kind::kLogName:
        log_name_ = &entry;
        return;
      case Kind::kRedisHost:
        redis_host_ = &entry;
        return;
      case Kind::kRedisPort:
        if (number_of(entry.value, 1, key->most)) {
          redis_port_ = &entry;
          return;
        }
        return take_number(entry, *key);
      case Kind::kKafka:
        kafka_[key->to] = &entry;
        return;
      case Kind::kNumber:
      case Kind::kTries:
      case Kind::kSeconds:
      case Kind::kMillis:
        return take_number(entry, *key);
    }
  }

  void take_number(const IniEntry& entry, const SeedKey& key) {
    const bool is_from_one = key.kind == Kind::kTries || key.kind == Kind::kRedisPort;
    const uint32_t least = is_from_one ? 1 : 0;
    const uint32_t most = key.most != 0 ? key.most : std::numeric_limits<int32_t>::max();
    const std::optional<uint32_t> number = number_of(entry.value, least, most);
    if (!number)
      return complain(entry, fmt::format("{} is not allowed: use a whole number from {} to {}",
                                         quote(entry.value), least, most));
    const std::string_view unit = key.kind == Kind::kSeconds ? "s" : key.kind == Kind::kMillis ? "ms" : "";
    set(entry, key.to, fmt::format("{}{}", *number, unit));
  }

  void warn_of_unknown(const IniEntry& entry) {
    std::vector<std::string_view> names;
    for (const SeedKey& key : seed_keys()) {
      if (key.is_of(form_)) names.push_back(key.name);
    }
    const std::string_view meant = nearest(entry.name(), names);
    warn(entry, fmt::format("unknown key, ignored: {} has no such key{}", name_of(form_),
                            meant.empty() ? "" : fmt::format("; did you mean {}?", meant)));
  }

  /// Sets our key to the value, if there is such a key.
  void set(const IniEntry& entry, std::string_view to, std::string_view value) {
    if (to.empty()) return;
    const Status status = set_option(out_.config, to, value, &out_.said, at(entry.line));
    if (status.ok()) {
      out_.said.back().is_foreign = true;
      return;
    }
    // The detail begins with our own key.
    const std::string_view problem = std::string_view(status.error().detail).substr(to.size() + 2);
    complain(entry, fmt::format("{} (it is {} here)", problem, to));
  }

  /// go-delay-queue has separate keys for folder and name, with a default for each.
  void take_log_file() {
    if (log_folder_ == nullptr && log_name_ == nullptr) return;
    const std::filesystem::path folder = log_folder_ != nullptr ? log_folder_->value : "./logs";
    const std::string name = log_name_ != nullptr ? log_name_->value : "delay-queue.log";
    set(log_name_ != nullptr ? *log_name_ : *log_folder_, "log.file",
        (folder / name).lexically_normal().string());
  }

  /// Host and port in one key, as in go-delay-queue and the callback system, or in two. A file with this
  /// address has its jobs in that Redis.
  void take_redis() {
    if (redis_host_ == nullptr && redis_port_ == nullptr) return;
    const IniEntry& first = redis_host_ != nullptr ? *redis_host_ : *redis_port_;
    std::string host = redis_host_ != nullptr ? redis_host_->value : "127.0.0.1";
    if (redis_port_ != nullptr) host += fmt::format(":{}", redis_port_->value);
    set(first, "redis.url", fmt::format("redis://{}", host));
    set(first, "server.engine", "redis");
  }

  /// The protocol, one of librdkafka's words, says whether to encrypt and whether to log in.
  void take_kafka() {
    const IniEntry* const protocol = kafka_["kafka.tls"];
    const std::string word = protocol == nullptr ? "plaintext" : lowered(protocol->value);
    const bool logs_in = word.starts_with("sasl_");
    const std::string transport = logs_in ? word.substr(5) : word;
    if (transport == "ssl") set(*protocol, "kafka.tls", "true");
    if (transport != "ssl" && transport != "plaintext")
      return complain(*protocol, fmt::format("{} is not allowed: use one of plaintext, ssl, sasl_plaintext, "
                                             "sasl_ssl",
                                             quote(protocol->value)));
    for (const std::string_view to : {"kafka.sasl", "kafka.user", "kafka.password"}) {
      const IniEntry* const entry = kafka_[to];
      if (entry == nullptr) {
        if (logs_in) complain(*protocol, fmt::format("to log in, {} is needed, too", seed_name_of(to)));
      } else if (logs_in) {
        set(*entry, to, to == "kafka.sasl" ? lowered(entry->value) : entry->value);
      } else {
        warn(*entry, "not used: kafka.security_protocol does not begin with sasl_");
      }
    }
  }
  static std::string_view seed_name_of(std::string_view to) {
    return std::find_if(kKeys.begin(), kKeys.end(), [&](const SeedKey& key) { return key.to == to; })->name;
  }

  /// go-delay-queue writes due ids to the list of their topic in Redis, and its consumers then ask for the
  /// job by its id. The system from which it descends has the same keys, but its consumers pop.
  void take_delivery() {
    if (form_ != SeedForm::kGoDelayQueue || redis_host_ == nullptr || is_popped_) return;
    set(*redis_host_, "topics.*.delivery", "redis_list");
    set(*redis_host_, "topics.*.redis_content", "id");
    if (!keeps_) set(*redis_host_, kKeepTime, "1d");  // as there
    set(*redis_host_, "topics.*.keep_done.count", "1000000");
  }

  /// The partitions of the ladder are those that its groups name.
  void take_partitions() {
    int32_t partitions = 0;
    for (const std::vector<int32_t>& group : out_.config.kafka.partition_groups)
      partitions = std::max(partitions, *std::max_element(group.begin(), group.end()) + 1);
    if (partitions > 0) set(*groups_, "kafka.partitions", std::to_string(partitions));
  }

  static constexpr std::string_view kKeepTime = "topics.*.keep_done.time";
  static constexpr std::string_view kGroups = "kafka.partition_groups";

  SeedForm form_;
  std::string_view file_name_;
  bool is_popped_ = false;  ///< consumers pop from it: the file has keys for that
  bool keeps_ = false;      ///< the file sets how long jobs are kept
  const IniEntry* log_folder_ = nullptr;
  const IniEntry* log_name_ = nullptr;
  const IniEntry* redis_host_ = nullptr;
  const IniEntry* redis_port_ = nullptr;
  const IniEntry* groups_ = nullptr;                   ///< of partitions
  std::map<std::string_view, const IniEntry*> kafka_;  ///< by our key
  ConfigOutcome out_;
};

/// The value of a key that is used; null if it is not set.
Said* last_said(ConfigOutcome& outcome, std::string_view section, std::string_view key) {
  const auto last = std::find_if(outcome.said.rbegin(), outcome.said.rend(), [&](const Said& said) {
    return said.section == section && said.key == key;
  });
  return last == outcome.said.rend() ? nullptr : &*last;
}

void tell_delivery(ConfigOutcome& outcome) {
  constexpr std::string_view kDefaults = "topics.\"*\"";
  const Said* const delivery = last_said(outcome, kDefaults, "delivery");
  if (delivery == nullptr || !delivery->is_foreign) return;
  const std::string origin = delivery->origin;
  Settings& defaults = outcome.config.topics[std::string(kDefaultsName)];
  if (outcome.config.server.engine == Config::Engine::kKafka) {
    defaults.delivery = Delivery::kKafkaTopic;
    defaults.redis_content.reset();
    defaults.kafka_content = KafkaContent::kId;
    for (Said& said : outcome.said) {
      if (!said.is_foreign || said.section != kDefaults) continue;
      if (said.key == "delivery") said.value = "\"kafka_topic\"";
      if (said.key == "redis_content") said.key = "kafka_content";
    }
    outcome.warnings.push_back(fmt::format(
        "{}: due ids are written to the Kafka topic that is named like their topic, as {} does, and jobs/get "
        "answers the job until topics.\"*\".keep_done is over; --set 'topics.*.delivery=pull' lets "
        "consumers pop jobs from delayq instead",
        origin, outcome.form));
    return;
  }
  if (outcome.config.server.uses_redis()) {
    outcome.warnings.push_back(fmt::format(
        "{}: due ids are written to the list of their topic in this Redis, as {} does, and jobs/get "
        "answers the job until topics.\"*\".keep_done is over; --set 'topics.*.delivery=pull' lets "
        "consumers pop jobs from delayq instead",
        origin, outcome.form));
    return;
  }
  defaults.delivery.reset();
  defaults.redis_content.reset();
  std::erase_if(outcome.said, [&](const Said& said) {
    return said.is_foreign && said.section == kDefaults &&
           (said.key == "delivery" || said.key == "redis_content");
  });
  outcome.warnings.push_back(fmt::format(
      "{}: due ids are not written to lists in Redis: consumers pop jobs from delayq; redis_delivery.url "
      "and topics.\"*\".delivery = \"redis_list\" bring the lists back",
      origin));
}

}  // namespace

std::optional<ConfigOutcome> read_seed_config(std::string_view text, std::string_view file_name) {
  const IniText ini = read_ini(text);
  if (ini.entries.empty() && ini.errors.empty() && ini.has_semicolons) {
    ConfigOutcome outcome;
    outcome.form = "another system";
    outcome.warnings.push_back(
        fmt::format("{}: the file sets nothing: delayq's defaults are used", file_name));
    return outcome;
  }
  const std::optional<SeedForm> form = recognise(ini);
  if (!form) return std::nullopt;
  return SeedReader(*form, file_name).read(ini);
}

void keep_to_this_machine(ConfigOutcome& outcome) {
  Said* const last = last_said(outcome, "server", "http");
  Config& config = outcome.config;
  const bool may_be_open = config.server.allow_anonymous || !config.tokens.empty();
  if (last == nullptr && may_be_open && outcome.form == name_of(SeedForm::kGoDelayQueue)) {
    config.server.addresses[ProtocolKind::kHttp].host = "0.0.0.0";
    outcome.warnings.push_back(fmt::format("server.http: listening on {}, which is the default of {}",
                                           to_string(config.server.addresses[ProtocolKind::kHttp]),
                                           outcome.form));
    return;
  }
  const bool is_asked = last != nullptr && last->is_foreign;
  if (!is_asked || is_loopback(config.server.addresses[ProtocolKind::kHttp]) ||
      config.server.allow_anonymous || !config.tokens.empty())
    return;
  const Address asked = config.server.addresses[ProtocolKind::kHttp];
  config.server.addresses[ProtocolKind::kHttp].host = "127.0.0.1";
  outcome.warnings.push_back(fmt::format(
      "{}: {} can be reached from other machines without authentication: listening on {} instead; "
      "server.allow_anonymous = true opens it (--set, or DELAYQ_SERVER_ALLOW_ANONYMOUS=true)",
      last->origin, to_string(asked), to_string(config.server.addresses[ProtocolKind::kHttp])));
  last->value = fmt::format("\"{}\"", to_string(config.server.addresses[ProtocolKind::kHttp]));
}

void tell_engine(ConfigOutcome& outcome) {
  tell_delivery(outcome);
  const Said* const where = last_said(outcome, "redis", "url");
  const Said* const engine = last_said(outcome, "server", "engine");
  if (where == nullptr || engine == nullptr || !where->is_foreign) return;
  const std::string_view url = outcome.config.redis.url;
  if (engine->is_foreign) {
    outcome.warnings.push_back(
        fmt::format("{}: jobs are kept in this Redis ({}), below the keys {}:*, by the redis engine; -t "
                    "journal keeps them "
                    "in the directory {} of this machine instead, and needs no Redis",
                    where->origin, url, outcome.config.redis.prefix, outcome.config.server.data));
  } else if (!outcome.config.server.uses_redis()) {
    outcome.warnings.push_back(fmt::format("{}: {} is not used: another engine was chosen by {}",
                                           where->origin, url, engine->origin));
  }
}

}  // namespace delayq
