#include "net/tls_stream.h"

#include <array>
#include <cerrno>
#include <system_error>

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

namespace delayq::net {

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
    if (total > 0) break;  // what went wrong will go wrong again
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
    // The other side's goodbye: it takes nothing any more. To a sender that is a broken pipe.
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
        problem_ = fmt::format("the certificate is not believed: {}", X509_verify_cert_error_string(verdict));
      } else if (ERR_peek_error() != 0) {
        problem_ = tls_reason();
      }
      ERR_clear_error();
      return broken();
  }
}

}  // namespace delayq::net
