#include "net/tls.h"

#include <array>
#include <cerrno>
#include <climits>

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

namespace delayq::net {

namespace {

/// The first reason that OpenSSL has on its list, which is emptied.
std::string reason() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) return "no reason is known";
  std::array<char, 256> text{};
  ERR_error_string_n(code, text.data(), text.size());
  const char* const words = ERR_reason_error_string(code);
  return words != nullptr ? words : text.data();
}

Error problem(std::string_view key, const std::string& file) {
  return {ErrorCode::kInvalid, "tls", fmt::format("tls.{}: {}: {}", key, file, reason()), {}};
}

class TlsStream final : public Stream {
 public:
  TlsStream(SSL_CTX* context, int socket) : tls_(SSL_new(context)) {
    if (tls_ == nullptr) return;
    SSL_set_fd(tls_, socket);
    SSL_set_accept_state(tls_);
  }
  ~TlsStream() override { SSL_free(tls_); }
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;

  /// One record is at most 16 KiB: takes as many as there are.
  ssize_t receive(char* buffer, size_t size) override {
    size_t total = 0;
    waits_for_room_ = false;
    while (total < size) {
      ERR_clear_error();
      size_t count = 0;
      const int result = SSL_read_ex(tls_, buffer + total, size - total, &count);
      total += count;
      if (result == 1) continue;
      if (total > 0) break;  // what went wrong will go wrong again
      return explain(result);
    }
    return static_cast<ssize_t>(total);
  }

  ssize_t send(const char* bytes, size_t size) override {
    ERR_clear_error();
    size_t count = 0;
    const int result = SSL_write_ex(tls_, bytes, size, &count);
    return result == 1 ? static_cast<ssize_t>(count) : explain(result);
  }

  bool has_more() const override { return SSL_pending(tls_) > 0; }
  bool waits_for_room() const override { return waits_for_room_; }
  bool is_greeting() const override { return SSL_is_init_finished(tls_) == 0; }

  void finish() override {
    if (is_broken_ || is_greeting()) return;
    ERR_clear_error();
    SSL_shutdown(tls_);
  }

 private:
  ssize_t explain(int result) {
    switch (SSL_get_error(tls_, result)) {
      case SSL_ERROR_WANT_READ:
        errno = EAGAIN;
        return -1;
      case SSL_ERROR_WANT_WRITE:
        waits_for_room_ = true;
        errno = EAGAIN;
        return -1;
      case SSL_ERROR_ZERO_RETURN:
        return 0;
      default:
        is_broken_ = true;
        ERR_clear_error();
        errno = ECONNRESET;
        return -1;
    }
  }

  SSL* tls_;
  bool waits_for_room_ = false;
  bool is_broken_ = false;
};

}  // namespace

TlsContext::TlsContext() : context_(SSL_CTX_new(TLS_server_method())) {}
TlsContext::~TlsContext() { SSL_CTX_free(context_); }

Result<std::shared_ptr<TlsContext>> TlsContext::open(const TlsFiles& files) {
  std::shared_ptr<TlsContext> made(new TlsContext());
  if (Status status = made->load(files); !status.ok()) return status.error();
  return made;
}

Status TlsContext::load(const TlsFiles& files) {
  if (context_ == nullptr) return Error{ErrorCode::kUnavailable, "tls", reason(), {}};
  ERR_clear_error();
  SSL_CTX_set_min_proto_version(context_, TLS1_2_VERSION);
  // No renegotiation: a write then never waits for input. Buffers of idle connections are given back.
  SSL_CTX_set_options(context_, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                    SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_mode(context_, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                 SSL_MODE_RELEASE_BUFFERS);
  if (SSL_CTX_use_certificate_chain_file(context_, files.certificate.c_str()) != 1)
    return problem("certificate", files.certificate);
  if (SSL_CTX_use_PrivateKey_file(context_, files.key.c_str(), SSL_FILETYPE_PEM) != 1)
    return problem("key", files.key);
  if (SSL_CTX_check_private_key(context_) != 1) return problem("key", files.key);
  if (files.client_ca.empty()) return {};
  if (SSL_CTX_load_verify_locations(context_, files.client_ca.c_str(), nullptr) != 1)
    return problem("client_ca", files.client_ca);
  SSL_CTX_set_client_CA_list(context_, SSL_load_client_CA_file(files.client_ca.c_str()));
  SSL_CTX_set_verify(context_, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  // A session is resumed only by who shows a certificate again: tickets would need a name of their own for
  // that.
  SSL_CTX_set_session_cache_mode(context_, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(context_, SSL_OP_NO_TICKET);
  return {};
}

std::unique_ptr<Stream> TlsContext::accept(int socket) const {
  return std::make_unique<TlsStream>(context_, socket);
}

}  // namespace delayq::net
