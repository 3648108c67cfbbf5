#include "kafka/library.h"

#include <algorithm>
#include <array>
#include <unistd.h>

#include <fmt/format.h>

#include "core/text.h"

namespace delayq::kafka {

namespace {

/// Settings that delayq chooses itself, and what to do instead of setting them.
constexpr std::array<SettingPair, 22> kReserved{{
    {"bootstrap.servers", "set brokers"},
    {"metadata.broker.list", "set brokers"},
    {"client.id", "set client_id"},
    {"sasl.username", "set user"},
    {"sasl.password", "set password"},
    {"group.id", "the group is set where it is used"},
    {"group.instance.id", "the group is set where it is used"},
    {"enable.idempotence", "delayq needs it to be true"},
    {"acks", "delayq needs it to be all"},
    {"request.required.acks", "delayq needs it to be all"},
    {"transactional.id", "delayq uses no transactions"},
    {"message.timeout.ms", "set timeout"},
    {"delivery.timeout.ms", "set timeout"},
    {"enable.auto.commit", "delayq commits when a job is durable"},
    {"auto.commit.enable", "delayq commits when a job is durable"},
    {"enable.auto.offset.store", "delayq commits when a job is durable"},
    {"enable.partition.eof", "delayq sets it"},
    {"log.queue", "delayq sets it"},
    {"log_level", "delayq sets it"},
    {"statistics.interval.ms", "delayq sets it"},
    {"queue.buffering.max.messages", "set in_flight"},
    {"plugin.library.paths", "plugins are not supported"},
}};

Error of_setting(std::string_view name, std::string_view what) {
  return invalid(fmt::format("settings.{}", name), fmt::format("settings.{}: {}", name, what));
}

/// The library's text repeats the value, which may be a secret.
std::string reason_of(std::string_view name, rd_kafka_conf_res_t result, std::string_view text) {
  if (result == RD_KAFKA_CONF_UNKNOWN) return "librdkafka has no such setting";
  return names_secret(name) ? "librdkafka does not accept this value" : std::string(text);
}

Status set(rd_kafka_conf_t& conf, const std::string& name, const std::string& value) {
  std::array<char, 512> text{};
  const rd_kafka_conf_res_t result =
      rd_kafka_conf_set(&conf, name.c_str(), value.c_str(), text.data(), text.size());
  if (result == RD_KAFKA_CONF_OK) return {};
  return of_setting(name, reason_of(name, result, text.data()));
}

std::string_view mechanism_of(Sasl sasl) {
  switch (sasl) {
    case Sasl::kPlain:
      return "PLAIN";
    case Sasl::kScramSha256:
      return "SCRAM-SHA-256";
    case Sasl::kScramSha512:
      return "SCRAM-SHA-512";
    case Sasl::kNone:
      break;
  }
  return {};
}

Status check_file(std::string_view member, const std::string& path) {
  if (path.empty() || ::access(path.c_str(), R_OK) == 0) return {};
  return invalid(member, fmt::format("{}: {} cannot be read", member, quote(path)));
}

/// "host:port", with a port that is a number.
bool is_address(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (text.empty() || colon == 0) return false;
  if (colon == std::string_view::npos || text.ends_with(']')) return true;  // the usual port
  const std::string_view port = text.substr(colon + 1);
  return !port.empty() && port.size() <= 5 && port.find_first_not_of("0123456789") == std::string_view::npos;
}

Status check_brokers(std::string_view brokers) {
  std::string_view rest = brokers;
  for (;;) {
    const size_t comma = std::min(rest.find(','), rest.size());
    std::string_view each = rest.substr(0, comma);
    while (each.starts_with(' ')) each.remove_prefix(1);
    while (each.ends_with(' ')) each.remove_suffix(1);
    if (!is_address(each) || each.find("://") != std::string_view::npos)
      return invalid("brokers", fmt::format("brokers: {} is not HOST:PORT,HOST:PORT", quote(brokers)));
    if (comma == rest.size()) return {};
    rest.remove_prefix(comma + 1);
  }
}

/// What the members say, as the library calls it. Empty ones are left out.
std::vector<std::pair<std::string, std::string>> named_settings(const ClientOptions& options) {
  std::vector<std::pair<std::string, std::string>> named{{"bootstrap.servers", options.brokers},
                                                         {"client.id", options.client_id}};
  const bool has_sasl = options.sasl != Sasl::kNone;
  if (options.uses_tls || has_sasl) {
    named.emplace_back("security.protocol",
                       fmt::format("{}{}", has_sasl ? "sasl_" : "", options.uses_tls ? "ssl" : "plaintext"));
  }
  if (has_sasl) named.emplace_back("sasl.mechanisms", mechanism_of(options.sasl));
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) named.emplace_back(name, value);
  };
  add("sasl.username", options.user);
  add("sasl.password", options.password);
  add("ssl.ca.location", options.ca_file);
  add("ssl.certificate.location", options.certificate);
  add("ssl.key.location", options.key);
  add("ssl.key.password", options.key_password);
  if (options.skips_tls_check) named.emplace_back("enable.ssl.certificate.verification", "false");
  return named;
}

Status check_members(const ClientOptions& options) {
  if (Status status = check_brokers(options.brokers); !status) return status;
  for (const auto& [member, path] :
       {std::pair<std::string_view, const std::string&>{"ca_file", options.ca_file},
        {"certificate", options.certificate},
        {"key", options.key}}) {
    if (path.empty()) continue;
    if (!options.uses_tls) return invalid(member, fmt::format("{}: needs tls = true", member));
    if (Status status = check_file(member, path); !status) return status;
  }
  if (options.certificate.empty() != options.key.empty())
    return invalid("certificate", "certificate: certificate and key are needed together");
  const bool has_both = !options.user.empty() && !options.password.empty();
  if (options.sasl != Sasl::kNone && !has_both) return invalid("user", "user: sasl needs user and password");
  if (options.sasl == Sasl::kNone && !options.user.empty())
    return invalid("user", "user: needs sasl = \"plain\", \"scram-sha-256\" or \"scram-sha-512\"");
  return {};
}

}  // namespace

Result<Conf> make_conf(const ClientOptions& options, std::initializer_list<SettingPair> defaults,
                       std::initializer_list<SettingPair> required) {
  if (Status status = check_members(options); !status) return status.error();
  Conf conf(rd_kafka_conf_new());
  rd_kafka_conf_set_events(conf.get(), RD_KAFKA_EVENT_DR | RD_KAFKA_EVENT_FETCH | RD_KAFKA_EVENT_LOG |
                                           RD_KAFKA_EVENT_ERROR | RD_KAFKA_EVENT_REBALANCE |
                                           RD_KAFKA_EVENT_OFFSET_COMMIT | RD_KAFKA_EVENT_STATS);
  const auto set_all = [&](const auto& pairs) -> Status {
    for (const auto& [name, value] : pairs) {
      if (Status status = set(*conf, std::string(name), std::string(value)); !status) return status;
    }
    return {};
  };
  if (Status status = set_all(defaults); !status) return status.error();
  for (const auto& setting : options.settings) {
    const auto reserved = std::find_if(kReserved.begin(), kReserved.end(),
                                       [&](const SettingPair& row) { return row.first == setting.first; });
    if (reserved != kReserved.end())
      return of_setting(setting.first, fmt::format("this cannot be set here: {}", reserved->second));
  }
  if (Status status = set_all(options.settings); !status) return status.error();
  if (Status status = set_all(named_settings(options)); !status) return status.error();
  if (Status status = set_all(required); !status) return status.error();
  if (Status status = set(*conf, "log.queue", "true"); !status) return status.error();
  return conf;
}

Result<Handle> make_handle(rd_kafka_type_t type, Conf conf) {
  std::array<char, 512> text{};
  rd_kafka_t* const handle = rd_kafka_new(type, conf.get(), text.data(), text.size());
  if (handle == nullptr) return invalid("settings", fmt::format("settings: {}", text.data()));
  (void)conf.release();  // the library's now
  return Handle(handle);
}

Status check_options(const ClientOptions& options) {
  auto conf = make_conf(options, {}, {});
  if (!conf.ok()) return conf.error();
  // The library checks how settings go together, and reads the files, when it makes a client. Without
  // addresses it connects to nobody.
  rd_kafka_conf_set(conf->get(), "bootstrap.servers", nullptr, nullptr, 0);
  auto handle = make_handle(RD_KAFKA_PRODUCER, std::move(*conf));
  return handle.ok() ? Status{} : Status{handle.error()};
}

ErrorCode code_of(rd_kafka_resp_err_t error) {
  switch (error) {
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
      return ErrorCode::kNotFound;
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
      return ErrorCode::kForbidden;
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE:
      return ErrorCode::kTooLarge;
    case RD_KAFKA_RESP_ERR__INVALID_ARG:
    case RD_KAFKA_RESP_ERR__BAD_MSG:
    case RD_KAFKA_RESP_ERR_INVALID_MSG:
    case RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION:
    case RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP:
    case RD_KAFKA_RESP_ERR_INVALID_RECORD:
    case RD_KAFKA_RESP_ERR_POLICY_VIOLATION:
    case RD_KAFKA_RESP_ERR_UNSUPPORTED_FOR_MESSAGE_FORMAT:
      return ErrorCode::kInvalid;
    case RD_KAFKA_RESP_ERR__QUEUE_FULL:
      return ErrorCode::kOverloaded;
    default:
      return ErrorCode::kUnavailable;
  }
}

Error error_of(rd_kafka_resp_err_t error, std::string_view about, std::string_view text) {
  const std::string_view said = text.empty() ? std::string_view(rd_kafka_err2str(error)) : text;
  return {code_of(error), "kafka", about.empty() ? std::string(said) : fmt::format("{}: {}", about, said)};
}

}  // namespace delayq::kafka
