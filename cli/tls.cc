#include "cli/tls.h"

#include <array>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

namespace delayq::cli {

namespace {

constexpr size_t kRecord = size_t{16} << 10;

Error unusable(std::string_view option, const std::string& file) {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return invalid(
      fmt::format("{}: {} cannot be used: {}", option, file, reason != nullptr ? reason : "unknown reason"));
}

Status load_files(SSL_CTX* context, const Server::Tls& tls) {
  if (tls.ca.empty()) {
    SSL_CTX_set_default_verify_paths(context);
  } else if (SSL_CTX_load_verify_locations(context, tls.ca.c_str(), nullptr) != 1) {
    return unusable("--ca", tls.ca);
  }
  if (tls.certificate.empty()) return {};
  if (SSL_CTX_use_certificate_chain_file(context, tls.certificate.c_str()) != 1)
    return unusable("--cert", tls.certificate);
  if (SSL_CTX_use_PrivateKey_file(context, tls.key.c_str(), SSL_FILETYPE_PEM) != 1)
    return unusable("--key", tls.key);
  return {};
}

bool is_numeric(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> bytes;
  return inet_pton(AF_INET, host.c_str(), bytes.data()) == 1 ||
         inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1;
}

/// Whose certificate it has to be.
void expect_host(SSL* session, const std::string& host) {
  if (is_numeric(host)) {
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session), host.c_str());
  } else {
    SSL_set1_host(session, host.c_str());
    // What SSL_set_tlsext_host_name() is, without its cast.
    SSL_ctrl(session, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
             const_cast<char*>(host.c_str()));
  }
}

}  // namespace

void Tls::Free::operator()(ssl_ctx_st* context) const { SSL_CTX_free(context); }
void Tls::Free::operator()(ssl_st* session) const { SSL_free(session); }

Result<Tls> Tls::create(const Server& server) {
  Tls tls;
  tls.context_.reset(SSL_CTX_new(TLS_client_method()));
  if (tls.context_ == nullptr) return Error{ErrorCode::kInternal, {}, "OpenSSL gives no context"};
  SSL_CTX_set_min_proto_version(tls.context_.get(), TLS1_2_VERSION);
  if (Status status = load_files(tls.context_.get(), *server.tls); !status) return status.error();
  SSL_CTX_set_verify(tls.context_.get(), server.tls->verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  tls.session_.reset(SSL_new(tls.context_.get()));
  if (tls.session_ == nullptr) return Error{ErrorCode::kInternal, {}, "OpenSSL gives no session"};
  SSL_set_bio(tls.session_.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
  expect_host(tls.session_.get(), server.address.host.empty() ? "localhost" : server.address.host);
  SSL_set_connect_state(tls.session_.get());
  return tls;
}

Result<bool> Tls::shake_hands() {
  const int outcome = SSL_do_handshake(session_.get());
  if (outcome == 1) return true;
  if (SSL_get_error(session_.get(), outcome) == SSL_ERROR_WANT_READ) return false;
  return failed();
}

void Tls::take(std::string_view bytes) {
  BIO_write(SSL_get_rbio(session_.get()), bytes.data(), static_cast<int>(bytes.size()));
}

Result<bool> Tls::decrypt(std::string& plain) {
  std::array<char, kRecord> chunk;
  for (;;) {
    size_t got = 0;
    const int outcome = SSL_read_ex(session_.get(), chunk.data(), chunk.size(), &got);
    if (outcome == 1) {
      plain.append(chunk.data(), got);
      continue;
    }
    const int error = SSL_get_error(session_.get(), outcome);
    if (error == SSL_ERROR_WANT_READ) return true;
    if (error == SSL_ERROR_ZERO_RETURN) return false;
    return failed();
  }
}

Status Tls::encrypt(std::string_view plain) {
  size_t written = 0;
  if (plain.empty() || SSL_write_ex(session_.get(), plain.data(), plain.size(), &written) == 1) return {};
  return failed();
}

std::string Tls::outgoing() {
  BIO* const bio = SSL_get_wbio(session_.get());
  std::string bytes(BIO_ctrl_pending(bio), '\0');
  if (!bytes.empty()) BIO_read(bio, bytes.data(), static_cast<int>(bytes.size()));
  return bytes;
}

Error Tls::failed() const {
  const long verified = SSL_get_verify_result(session_.get());
  const unsigned long last = ERR_peek_last_error();
  const int reason = ERR_GET_REASON(last);
  const char* const text = ERR_reason_error_string(last);
  ERR_clear_error();
  std::string detail;
  if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED && verified != X509_V_OK) {
    detail = fmt::format(
        "its certificate is not to be trusted: {}. Name the authority that signed it with --ca FILE, "
        "or say --insecure to speak with anybody",
        X509_verify_cert_error_string(verified));
  } else if (reason == SSL_R_WRONG_VERSION_NUMBER) {
    detail = "it does not speak TLS there; leave --tls out, or name the port that does";
  } else {
    detail = fmt::format("TLS failed: {}", text != nullptr ? text : "the connection ended early");
  }
  return {ErrorCode::kUnavailable, {}, std::move(detail)};
}

}  // namespace delayq::cli
