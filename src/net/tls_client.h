#pragma once

#include <memory>
#include <string>

#include "core/result.h"
#include "net/stream.h"

struct ssl_ctx_st;

namespace delayq::net {

struct TlsClientFiles {
  std::string ca_file;       ///< PEM: who is believed; empty: the system's authorities
  std::string certificate;   ///< PEM: the client's own; empty: none
  std::string key;           ///< PEM; empty: in the file of the certificate
  bool skips_check = false;  ///< believes everybody
};

/// What a client needs to talk TLS 1.2 or later.
class TlsClient {
 public:
  /// Reads the files; what is wrong is said with the file's name.
  static Result<std::shared_ptr<TlsClient>> open(const TlsClientFiles& files);
  ~TlsClient();
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;

  /// The client's end of a connection. The server's certificate must be for `name`, a host or an address.
  std::unique_ptr<Stream> connect(int socket, const std::string& name) const;

 private:
  TlsClient();
  Status load(const TlsClientFiles& files);

  ssl_ctx_st* context_;
};

}  // namespace delayq::net
