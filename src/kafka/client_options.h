#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/result.h"
#include "core/time.h"

namespace delayq::kafka {

enum class Sasl : uint8_t { kNone, kPlain, kScramSha256, kScramSha512 };

/// How clients reach the brokers. The same for producers, consumers and administration.
struct ClientOptions {
  std::string brokers;  ///< "host:port,host:port"
  std::string client_id = "delayq";

  bool uses_tls = false;
  std::string ca_file{};      ///< PEM; empty: the system's authorities
  std::string certificate{};  ///< PEM, of this client; empty: none
  std::string key{};          ///< PEM; its private key
  std::string key_password{};
  bool skips_tls_check = false;  ///< accepts every certificate

  Sasl sasl = Sasl::kNone;
  std::string user{};
  std::string password{};

  /// Settings of librdkafka by name. They override the defaults of delayq, but not what the members above
  /// and reserved_settings() say.
  std::vector<std::pair<std::string, std::string>> settings{};

  bool operator==(const ClientOptions&) const = default;
};

/// Checks the options as a client would: addresses, files, and each of the settings by librdkafka itself.
/// Connects to nobody. The error's `field` and its detail begin with the member's name ("brokers",
/// "ca_file"), or "settings.NAME". It never has a secret in it.
Status check_options(const ClientOptions& options);

}  // namespace delayq::kafka
