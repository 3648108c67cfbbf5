#include "net/tls_client.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "net/tls_stream.h"

namespace delayq::net {

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
    // A certificate names addresses and hosts in different fields, and only hosts are asked for by name.
    if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls), name.c_str()) != 1) {
      ERR_clear_error();
      SSL_set1_host(tls, name.c_str());
      // What SSL_set_tlsext_host_name() is, without its old-style cast.
      SSL_ctrl(tls, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, const_cast<char*>(name.c_str()));
    }
  }
  return std::make_unique<TlsStream>(tls);
}

}  // namespace delayq::net
