#pragma once

#include <memory>
#include <string>

#include "core/result.h"
#include "net/stream.h"

struct bio_st;
struct ssl_ctx_st;

namespace delayq::net {

struct TlsFiles {
  std::string certificate;  ///< PEM: the server's, and those between it and its root
  std::string key;          ///< PEM
  std::string client_ca;    ///< PEM; empty: clients need no certificate
};

/// What a server needs to talk TLS 1.3, or TLS 1.2 with forward secrecy and authenticated encryption. It is
/// not changed once it is made: for other certificates make another one; connections keep the one with which
/// they began.
class TlsContext {
 public:
  /// Reads the files; what is wrong is said with the file's name.
  static Result<std::shared_ptr<TlsContext>> open(const TlsFiles& files);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  /// The server's end of a connection that was just accepted.
  std::unique_ptr<Stream> accept(int socket) const;
  /// The same over anything that carries bytes. Takes `carrier`.
  std::unique_ptr<Stream> accept(bio_st* carrier) const;

 private:
  TlsContext();
  Status load(const TlsFiles& files);

  ssl_ctx_st* context_;
};

}  // namespace delayq::net
