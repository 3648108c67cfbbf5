#include "ops/seed_config.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "core/ascii.h"
#include "core/nearest.h"
#include "core/quote.h"
#include "ops/config_table.h"
#include "ops/ini.h"
#include "ops/seed_keys.h"

namespace delayq {

namespace {

using Kind = SeedKey::Kind;

/// Whether our own files have this key, or this section and many keys in it.
bool is_our_own(std::string_view name) {
  const size_t dot = name.find('.');
  if (dot == std::string_view::npos) return false;
  const std::string_view section = name.substr(0, dot);
  return section == kTopicsSection || section == kTokensSection ||
         find_row(section, name.substr(dot + 1)) != nullptr;
}

/// Of the system most of whose keys it has; none when it is not one of their files.
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

/// The levels of Go's loggers in our words; what is none of them stays as it is.
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
        warn(entry, fmt::format("said again in line {}, which counts", counts));
      }
    }
    tell_errors(std::numeric_limits<uint32_t>::max());
    take_log_file();
    take_redis();
    take_delivery();
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
    if (key->to.empty()) warn(entry, key->note);
    // Without a value it is the same as not said, there and here.
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
      return complain(entry, fmt::format("{} cannot stand here: use a whole number from {} to {}",
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
    warn(entry, fmt::format("unknown, and not used: {} has no such key{}", name_of(form_),
                            meant.empty() ? "" : fmt::format("; did you mean {}?", meant)));
  }

  /// Takes a value over; not when there is nowhere for it to go.
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

  /// go-delay-queue says folder and name apart, and has a default for each.
  void take_log_file() {
    if (log_folder_ == nullptr && log_name_ == nullptr) return;
    const std::filesystem::path folder = log_folder_ != nullptr ? log_folder_->value : "./logs";
    const std::string name = log_name_ != nullptr ? log_name_->value : "delay-queue.log";
    set(log_name_ != nullptr ? *log_name_ : *log_folder_, "log.file",
        (folder / name).lexically_normal().string());
  }

  /// Host and port together, as go-delay-queue and the callback system write them, or apart. Who says where
  /// the Redis is has the jobs there.
  void take_redis() {
    if (redis_host_ == nullptr && redis_port_ == nullptr) return;
    const IniEntry& first = redis_host_ != nullptr ? *redis_host_ : *redis_port_;
    std::string host = redis_host_ != nullptr ? redis_host_->value : "127.0.0.1";
    if (redis_port_ != nullptr) host += fmt::format(":{}", redis_port_->value);
    set(first, "redis.url", fmt::format("redis://{}", host));
    set(first, "server.engine", "redis");
  }

  /// go-delay-queue writes due ids to the list of their topic in Redis, and its consumers then ask for the
  /// job by its id. The system from which it descends has the same keys and is popped from.
  void take_delivery() {
    if (form_ != SeedForm::kGoDelayQueue || redis_host_ == nullptr || is_popped_) return;
    set(*redis_host_, "topics.*.delivery", "redis_list");
    set(*redis_host_, "topics.*.redis_content", "id");
    if (!keeps_) set(*redis_host_, kKeepTime, "1d");  // as there
    set(*redis_host_, "topics.*.keep_done.count", "1000000");
  }

  static constexpr std::string_view kKeepTime = "topics.*.keep_done.time";

  SeedForm form_;
  std::string_view file_name_;
  bool is_popped_ = false;  ///< consumers pop from it: the file has keys for that
  bool keeps_ = false;      ///< it says for how long jobs are kept
  const IniEntry* log_folder_ = nullptr;
  const IniEntry* log_name_ = nullptr;
  const IniEntry* redis_host_ = nullptr;
  const IniEntry* redis_port_ = nullptr;
  ConfigOutcome out_;
};

/// What counts about a key; null when nobody said anything.
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
  if (outcome.config.server.engine == Config::Engine::kRedis) {
    outcome.warnings.push_back(fmt::format(
        "{}: due ids are written to the list of their topic in this Redis, as {} does, and jobs/get "
        "answers the job until topics.\"*\".keep_done is over; --set 'topics.*.delivery=pull' lets "
        "consumers pop jobs from delayq instead",
        origin, outcome.form));
    return;
  }
  Settings& defaults = outcome.config.topics[std::string(kDefaultsName)];
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
        fmt::format("{}: nothing is set in it: what is in force are delayq's own defaults", file_name));
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
    config.server.http.host = "0.0.0.0";
    outcome.warnings.push_back(fmt::format("server.http: listening on {}, which is the default of {}",
                                           to_string(config.server.http), outcome.form));
    return;
  }
  const bool is_asked = last != nullptr && last->is_foreign;
  if (!is_asked || is_loopback(config.server.http) || config.server.allow_anonymous || !config.tokens.empty())
    return;
  const Address asked = config.server.http;
  config.server.http.host = "127.0.0.1";
  outcome.warnings.push_back(fmt::format(
      "{}: {} can be reached from other machines, and nobody would be asked who they are: listening on {} "
      "instead; server.allow_anonymous = true opens it (--set, or DELAYQ_SERVER_ALLOW_ANONYMOUS=true)",
      last->origin, to_string(asked), to_string(config.server.http)));
  last->value = fmt::format("\"{}\"", to_string(config.server.http));
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
  } else if (outcome.config.server.engine != Config::Engine::kRedis) {
    outcome.warnings.push_back(fmt::format("{}: {} is not used: another engine was chosen by {}",
                                           where->origin, url, engine->origin));
  }
}

}  // namespace delayq
