#include "cli/server.h"

#include <string_view>

#include <CLI/CLI.hpp>

namespace delayq::cli {

namespace {

constexpr std::string_view kDefaultAddress = "127.0.0.1:9278";

/// The option's value, else the environment variable's.
std::string first_of(const std::string& given, const char* variable) {
  if (!given.empty() || variable == nullptr) return given;
  return variable;
}

}  // namespace

void add_server_options(CLI::App& app, ServerOptions& options) {
  constexpr const char* kGroup = "Server";
  app.add_option("--server,--resp", options.address,
                 "Where it listens for RESP; else $DELAYQ_RESP, else 127.0.0.1:9278")
      ->type_name("HOST:PORT")
      ->group(kGroup);
  app.add_option("--token", options.token, "The token; prefer $DELAYQ_TOKEN, which other users cannot see")
      ->type_name("SECRET")
      ->group(kGroup);
  app.add_flag("--tls", options.tls, "Use TLS; the other TLS options imply it")->group(kGroup);
  app.add_option("--ca", options.ca, "Trust these certificates; else $DELAYQ_CA, else the system's")
      ->type_name("FILE")
      ->group(kGroup);
  CLI::Option* const certificate =
      app.add_option("--cert", options.certificate, "Our own certificate, for a server that asks for one")
          ->type_name("FILE")
          ->group(kGroup);
  app.add_option("--key", options.key, "Its key, if it is in a separate file")
      ->type_name("FILE")
      ->needs(certificate)
      ->group(kGroup);
  app.add_flag("--insecure", options.insecure, "Accept any certificate of the server")->group(kGroup);
}

Result<Server> server_of(const ServerOptions& options,
                         const std::function<const char*(const char*)>& variable) {
  std::string text = first_of(options.address, variable("DELAYQ_RESP"));
  if (text.empty()) text = kDefaultAddress;
  const Result<Address> address = parse_address(text);
  if (!address) return address.error();
  Server server{.address = *address, .token = first_of(options.token, variable("DELAYQ_TOKEN")), .tls = {}};
  const std::string ca = first_of(options.ca, variable("DELAYQ_CA"));
  if (options.tls || options.insecure || !ca.empty() || !options.certificate.empty()) {
    server.tls = Server::Tls{.ca = ca,
                             .certificate = options.certificate,
                             .key = options.key.empty() ? options.certificate : options.key,
                             .verify = !options.insecure};
  }
  return server;
}

}  // namespace delayq::cli
