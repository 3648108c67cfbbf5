#include <array>
#include <string_view>

#include "ops/config_table.h"
#include "ops/field.h"

namespace delayq {

namespace {

using namespace std::chrono_literals;
using T = FieldTarget;

/// In the order of the enumerators of Config::Kafka::Sasl.
constexpr std::array<std::string_view, 4> kSaslNames{"none", "plain", "scram-sha-256", "scram-sha-512"};

constexpr size_t kFileNameBytes = 4'095;

}  // namespace

std::vector<ConfigRow> kafka_rows() {
  return {
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
      ConfigRow{"kafka", "settings",
                PairsField{200, "settings of librdkafka", [](T & t) -> auto& {return t.config.kafka.settings;
}  // namespace
}  // namespace delayq
, "{}", "",
    "Settings of librdkafka for all its clients, such as \"compression.codec\" = \"lz4\". Those that "
    "delayq needs itself are refused."
}
,
}
;
}

}  // namespace delayq
