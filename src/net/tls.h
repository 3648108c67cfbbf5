#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/result.h"
#include "net/stream.h"

struct bio_st;
struct ssl_ctx_st;

struct ssl_ctx_st;

struct ssl_st;

namespace delayq::net {

struct TlsFiles {
  std::string certificate;  ///< PEM: the server's, and its intermediate certificates
  std::string key;          ///< PEM
  std::string client_ca;    ///< PEM; empty: clients need no certificate
};

/// What a server needs for TLS 1.3, or TLS 1.2 with forward secrecy and authenticated encryption. It never
/// changes: for other certificates create another one; existing connections keep the one with which they were
/// accepted.
class TlsContext {
 public:
  /// Reads the files; an error names the file.
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

struct TlsClientFiles {
  std::string ca_file;       ///< PEM: the trusted authorities; empty: the system's
  std::string certificate;   ///< PEM: the client's own; empty: none
  std::string key;           ///< PEM; empty: in the file of the certificate
  bool skips_check = false;  ///< accepts every certificate
};

/// What a client needs to talk TLS 1.2 or later.
class TlsClient {
 public:
  /// Reads the files; an error names the file.
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

/// The first error in OpenSSL's queue of this thread; empties the queue.
std::string tls_reason();

/// OpenSSL's error, as one about the file in the setting `tls.KEY`.
Error tls_problem(std::string_view key, const std::string& file);

/// One end of a TLS connection over a socket that does not block.
class TlsStream final : public Stream {
 public:
  /// Takes `tls`, which has its socket and knows which end it is. Null: nothing can be sent or received.
  explicit TlsStream(ssl_st* tls) : tls_(tls) {}
  ~TlsStream() override;
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;

  /// One record is at most 16 KiB: takes as many as there are.
  ssize_t receive(char* buffer, size_t size) override;
  ssize_t send(const char* bytes, size_t size) override;
  bool has_more() const override;
  bool waits_for_room() const override { return waits_for_room_; }
  bool waits_for_input() const override { return waits_for_input_; }
  bool is_greeting() const override;
  std::string problem() const override { return problem_; }
  void finish() override;

 private:
  ssize_t explain(int result);
  ssize_t broken();

  ssl_st* tls_;
  bool waits_for_room_ = false;   ///< after receive() or send()
  bool waits_for_input_ = false;  ///< after send()
  bool is_broken_ = false;
  std::string problem_;
};

}  // namespace delayq::net
