#include "net/tls.h"

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "net/tls_stream.h"

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
  // Of TLS 1.2; those of TLS 1.3 are all as good.
  if (SSL_CTX_set_cipher_list(context_, "ECDHE+AESGCM:ECDHE+CHACHA20") != 1)
    return Error{ErrorCode::kUnavailable, "tls", tls_reason(), {}};
  // No renegotiation: a write then never waits for input. Buffers of idle connections are given back.
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
  // A session is resumed only by who shows a certificate again: tickets would need a name of their own for
  // that.
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

}  // namespace delayq::net
