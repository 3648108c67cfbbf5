// The legacy way to replace OpenSSL's generator is the only one that reaches both ends of a handshake.
#define OPENSSL_SUPPRESS_DEPRECATED
#include "tests/simulation/connections/tls_ends.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <unistd.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "core/random.h"

namespace delayq::connections {

namespace {

thread_local Random generator(0);

int draw(unsigned char* buffer, int size) {
  for (int i = 0; i < size; ++i) buffer[i] = static_cast<unsigned char>(generator.next() >> 56);
  return 1;
}
int status() { return 1; }

/// Signatures of Ed25519 have one length, so that a handshake always has the same.
std::string write_identity() {
  EVP_PKEY* const key = EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519");
  X509* const certificate = X509_new();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 24 * 3600);
  X509_set_pubkey(certificate, key);
  X509_NAME* const name = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("simulated"),
                             -1, -1, 0);
  X509_set_issuer_name(certificate, name);
  X509_sign(certificate, key, nullptr);
  std::string path = "/tmp/delayq-simulate-XXXXXX";
  const int descriptor = mkstemp(path.data());
  std::FILE* const file = descriptor >= 0 ? fdopen(descriptor, "w") : nullptr;
  if (file == nullptr) throw std::runtime_error("no file for a certificate: " + path);
  PEM_write_X509(file, certificate);
  PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr);
  std::fclose(file);
  X509_free(certificate);
  EVP_PKEY_free(key);
  return path;
}

SSL_CTX* client_context() {
  static SSL_CTX* const kContext = SSL_CTX_new(TLS_client_method());
  return kContext;
}

}  // namespace

void seed_tls(uint64_t seed) {
  static const bool kIsReplaced = [] {
    static constexpr RAND_METHOD kMethod{nullptr, draw, nullptr, nullptr, draw, status};
    return RAND_set_rand_method(&kMethod) == 1;
  }();
  if (!kIsReplaced) throw std::runtime_error("OpenSSL keeps its own generator");
  generator = Random(seed);
}

const net::TlsContext& server_tls() {
  static const std::shared_ptr<net::TlsContext> kContext = [] {
    const std::string file = write_identity();
    Result<std::shared_ptr<net::TlsContext>> opened = net::TlsContext::open({file, file, {}});
    std::remove(file.c_str());
    if (!opened.ok()) throw std::runtime_error(to_string(opened.error()));
    return *opened;
  }();
  return *kContext;
}

TlsClientEnd::TlsClientEnd(bool only_1_2) : tls_(SSL_new(client_context())) {
  SSL_set_bio(tls_, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
  SSL_set_connect_state(tls_);
  if (only_1_2) SSL_set_max_proto_version(tls_, TLS1_2_VERSION);
}

TlsClientEnd::~TlsClientEnd() { SSL_free(tls_); }

bool TlsClientEnd::arrive(std::string_view bytes, std::string& plain) {
  BIO_write(SSL_get_rbio(tls_), bytes.data(), static_cast<int>(bytes.size()));
  std::array<char, 4096> buffer{};
  for (;;) {
    size_t count = 0;
    const int result = SSL_read_ex(tls_, buffer.data(), buffer.size(), &count);
    plain.append(buffer.data(), count);
    if (result == 1) continue;
    const int problem = SSL_get_error(tls_, result);
    return problem == SSL_ERROR_WANT_READ || problem == SSL_ERROR_ZERO_RETURN;
  }
}

size_t TlsClientEnd::say(std::string_view plain) {
  size_t count = 0;
  if (plain.empty()) {
    SSL_do_handshake(tls_);
    return 0;
  }
  return SSL_write_ex(tls_, plain.data(), plain.size(), &count) == 1 ? count : 0;
}

std::string TlsClientEnd::leave() {
  std::string bytes(BIO_ctrl_pending(SSL_get_wbio(tls_)), '\0');
  if (!bytes.empty()) BIO_read(SSL_get_wbio(tls_), bytes.data(), static_cast<int>(bytes.size()));
  return bytes;
}

}  // namespace delayq::connections
