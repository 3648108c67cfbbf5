#include "net/tls.h"

#include <array>
#include <cerrno>
#include <system_error>

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

namespace delayq::net {

Error tls_problem(std::string_view key, const std::string& file) {
  return in_verb("tls", invalid(fmt::format("tls.{}: {}: {}", key, file, tls_reason())));
}

TlsContext::TlsContext() : context_(SSL_CTX_new(TLS_server_method())) {}
TlsContext::~TlsContext() { SSL_CTX_free(context_); }

Result<std::shared_ptr<TlsContext>> TlsContext::open(const TlsFiles& files) {
  std::shared_ptr<TlsContext> made(new TlsContext());
  if (Status status = made->load(files); !status.ok()) return status.error();
  return made;
}

Status TlsContext::load(const TlsFiles& files) {
  if (context_ == nullptr) return Error{ErrorCode::kUnavailable, "tls", tls_reason(), {}};
  ERR_clear_error();
  SSL_CTX_set_min_proto_version(context_, TLS1_2_VERSION);
  // For TLS 1.2; all ciphers of TLS 1.3 are good enough.
  if (SSL_CTX_set_cipher_list(context_, "ECDHE+AESGCM:ECDHE+CHACHA20") != 1)
    return Error{ErrorCode::kUnavailable, "tls", tls_reason(), {}};
  // No renegotiation: a write then never waits for input. Buffers of idle connections are released.
  SSL_CTX_set_options(context_, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                    SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_mode(context_, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                 SSL_MODE_RELEASE_BUFFERS);
  if (SSL_CTX_use_certificate_chain_file(context_, files.certificate.c_str()) != 1)
    return tls_problem("certificate", files.certificate);
  if (SSL_CTX_use_PrivateKey_file(context_, files.key.c_str(), SSL_FILETYPE_PEM) != 1)
    return tls_problem("key", files.key);
  if (SSL_CTX_check_private_key(context_) != 1) return tls_problem("key", files.key);
  if (files.client_ca.empty()) return {};
  if (SSL_CTX_load_verify_locations(context_, files.client_ca.c_str(), nullptr) != 1)
    return tls_problem("client_ca", files.client_ca);
  SSL_CTX_set_client_CA_list(context_, SSL_load_client_CA_file(files.client_ca.c_str()));
  SSL_CTX_set_verify(context_, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  // No session tickets with client certificates: a client must show its certificate again, and tickets would
  // need a session id context for that.
  SSL_CTX_set_session_cache_mode(context_, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(context_, SSL_OP_NO_TICKET);
  return {};
}

std::unique_ptr<Stream> TlsContext::accept(int socket) const {
  return accept(BIO_new_socket(socket, BIO_NOCLOSE));
}

std::unique_ptr<Stream> TlsContext::accept(BIO* carrier) const {
  SSL* const tls = carrier != nullptr ? SSL_new(context_) : nullptr;
  if (tls != nullptr) {
    SSL_set_bio(tls, carrier, carrier);
    SSL_set_accept_state(tls);
  } else {
    BIO_free(carrier);
  }
  return std::make_unique<TlsStream>(tls);
}

TlsClient::TlsClient() : context_(SSL_CTX_new(TLS_client_method())) {}
TlsClient::~TlsClient() { SSL_CTX_free(context_); }

Result<std::shared_ptr<TlsClient>> TlsClient::open(const TlsClientFiles& files) {
  std::shared_ptr<TlsClient> made(new TlsClient());
  if (Status status = made->load(files); !status.ok()) return status.error();
  return made;
}

Status TlsClient::load(const TlsClientFiles& files) {
  if (context_ == nullptr) return Error{ErrorCode::kUnavailable, "tls", tls_reason(), {}};
  ERR_clear_error();
  SSL_CTX_set_min_proto_version(context_, TLS1_2_VERSION);
  SSL_CTX_set_options(context_,
                      SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_mode(context_, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_verify(context_, files.skips_check ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, nullptr);
  const bool knows_whom = files.ca_file.empty()
                              ? SSL_CTX_set_default_verify_paths(context_) == 1
                              : SSL_CTX_load_verify_locations(context_, files.ca_file.c_str(), nullptr) == 1;
  if (!knows_whom) return tls_problem("ca_file", files.ca_file);
  if (files.certificate.empty()) {
    if (files.key.empty()) return {};
    return in_verb("tls", invalid("tls.key: needs tls.certificate as well"));
  }
  const std::string& key = files.key.empty() ? files.certificate : files.key;
  if (SSL_CTX_use_certificate_chain_file(context_, files.certificate.c_str()) != 1)
    return tls_problem("certificate", files.certificate);
  if (SSL_CTX_use_PrivateKey_file(context_, key.c_str(), SSL_FILETYPE_PEM) != 1)
    return tls_problem("key", key);
  if (SSL_CTX_check_private_key(context_) != 1) return tls_problem("key", key);
  return {};
}

std::unique_ptr<Stream> TlsClient::connect(int socket, const std::string& name) const {
  SSL* const tls = SSL_new(context_);
  if (tls != nullptr) {
    SSL_set_fd(tls, socket);
    SSL_set_connect_state(tls);
    // A certificate has addresses and host names in different fields, and only host names are sent in SNI.
    if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls), name.c_str()) != 1) {
      ERR_clear_error();
      SSL_set1_host(tls, name.c_str());
      // Does what the macro SSL_set_tlsext_host_name() does, without its old-style cast.
      SSL_ctrl(tls, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, const_cast<char*>(name.c_str()));
    }
  }
  return std::make_unique<TlsStream>(tls);
}

std::string tls_reason() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) return "no reason is known";
  if (ERR_SYSTEM_ERROR(code)) return std::system_category().message(ERR_GET_REASON(code));
  std::array<char, 256> text{};
  ERR_error_string_n(code, text.data(), text.size());
  const char* const words = ERR_reason_error_string(code);
  return words != nullptr ? words : text.data();
}

TlsStream::~TlsStream() { SSL_free(tls_); }

ssize_t TlsStream::receive(char* buffer, size_t size) {
  if (tls_ == nullptr) return broken();
  size_t total = 0;
  waits_for_room_ = waits_for_input_ = false;
  while (total < size) {
    ERR_clear_error();
    size_t count = 0;
    const int result = SSL_read_ex(tls_, buffer + total, size - total, &count);
    total += count;
    if (result == 1) continue;
    if (total > 0) break;  // the same error will be reported again
    return explain(result);
  }
  return static_cast<ssize_t>(total);
}

ssize_t TlsStream::send(const char* bytes, size_t size) {
  if (tls_ == nullptr || is_broken_) return broken();
  waits_for_room_ = waits_for_input_ = false;
  ERR_clear_error();
  size_t count = 0;
  if (const int result = SSL_write_ex(tls_, bytes, size, &count); result != 1) {
    const ssize_t explained = explain(result);
    // The other side has closed the connection and reads nothing more: for a sender that is a broken pipe.
    if (explained == 0) return broken();
    waits_for_input_ = !is_broken_ && !waits_for_room_;
    return explained;
  }
  return static_cast<ssize_t>(count);
}

ssize_t TlsStream::broken() {
  is_broken_ = true;
  errno = ECONNRESET;
  return -1;
}

bool TlsStream::has_more() const { return tls_ != nullptr && SSL_pending(tls_) > 0; }
bool TlsStream::is_greeting() const { return tls_ != nullptr && SSL_is_init_finished(tls_) == 0; }

void TlsStream::finish() {
  if (tls_ == nullptr || is_broken_ || is_greeting()) return;
  ERR_clear_error();
  SSL_shutdown(tls_);
}

ssize_t TlsStream::explain(int result) {
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
      if (const long verdict = SSL_get_verify_result(tls_); verdict != X509_V_OK) {
        problem_ = fmt::format("the certificate is not trusted: {}", X509_verify_cert_error_string(verdict));
      } else if (ERR_peek_error() != 0) {
        problem_ = tls_reason();
      }
      ERR_clear_error();
      return broken();
  }
}

}  // namespace delayq::net
