#pragma once

#include <functional>
#include <optional>
#include <string>

#include "core/result.h"
#include "ops/address.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library is called so
class App;
}  // namespace CLI

namespace delayq::cli {

/// The server that a client verb connects to, and how.
struct Server {
  struct Tls {
    std::string ca;           ///< file of the certificates to trust; empty: those of the system
    std::string certificate;  ///< file of our own, with its chain; empty: none
    std::string key;          ///< file of its key
    bool verify = true;       ///< the certificate and the host name in it
  };

  Address address;
  std::string token;  ///< sent before the first command; empty: none
  std::optional<Tls> tls;
};

/// The options of the command line; empty where not given.
struct ServerOptions {
  std::string address, token, ca, certificate, key;
  bool tls = false;
  bool insecure = false;
};

/// --server, --token, --tls, --ca, --cert, --key, --insecure.
void add_server_options(CLI::App& app, ServerOptions& options);

/// The options, then the environment (DELAYQ_RESP, DELAYQ_TOKEN, DELAYQ_CA), then 127.0.0.1:9278. Any option
/// of TLS means that TLS is wanted.
Result<Server> server_of(const ServerOptions& options,
                         const std::function<const char*(const char*)>& variable);

}  // namespace delayq::cli
