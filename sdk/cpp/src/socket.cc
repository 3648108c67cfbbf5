// A TCP connection, with TLS if it is asked for.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "sdk/cpp/src/net_pipe.h"

namespace delayq::sdk {

namespace {

constexpr std::size_t kReadAtOnce = std::size_t{64} << 10;
/// One turn reads no more, so that a fast server does not keep it from writing.
constexpr std::size_t kMostInATurn = std::size_t{4} << 20;

constexpr int kLookAgain = 100;  ///< milliseconds; whether the client was closed meanwhile

[[noreturn]] void fail(const std::string& what) { throw Error(ErrorCode::unavailable, what); }

/// Waits until the file is ready. Throws when it is not in time.
void wait_for(int file, short events, const Patience& patience, const std::string& where) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(patience.deadline - Steady::now()).count();
    if (left <= 0) fail("cannot connect to " + where + ": no answer in time");
    if (patience.stops) throw Error(ErrorCode::stopping, "the client is closed");
    pollfd waits{file, events, 0};
    const int ready = ::poll(&waits, 1, static_cast<int>(std::min<std::int64_t>(left, kLookAgain)));
    if (ready > 0) return;
    if (ready < 0 && errno != EINTR) fail(std::string("poll: ") + std::strerror(errno));
  }
}

std::string tls_problem() {
  const unsigned long code = ERR_get_error();
  if (code == 0) return "the connection was closed";
  char text[256];
  ERR_error_string_n(code, text, sizeof(text));
  ERR_clear_error();
  return text;
}

struct Addresses {
  addrinfo* first = nullptr;
  ~Addresses() {
    if (first != nullptr) ::freeaddrinfo(first);
  }
};

}  // namespace

void Socket::connect(const Remote& remote, const std::atomic<bool>& stops) {
  close();
  problem_.clear();
  const Patience patience{Steady::now() + remote.options.connect_timeout, stops};
  connect_tcp(remote, patience);
  if (remote.options.tls.enabled) start_tls(remote, patience);
}

void Socket::connect_tcp(const Remote& remote, const Patience& patience) {
  const std::string where = remote.host + ":" + remote.port;
  Addresses addresses;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  int problem = ::getaddrinfo(remote.host.c_str(), remote.port.c_str(), &hints, &addresses.first);
  if (problem != 0) {  // AI_ADDRCONFIG does not find ::1 where no other address of IPv6 is
    hints.ai_flags = 0;
    problem = ::getaddrinfo(remote.host.c_str(), remote.port.c_str(), &hints, &addresses.first);
  }
  if (problem != 0) fail("cannot find " + remote.host + ": " + ::gai_strerror(problem));
  std::string why = "it has no address";
  for (const addrinfo* each = addresses.first; each != nullptr; each = each->ai_next) {
    file_ = ::socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, each->ai_protocol);
    if (file_ < 0) {
      why = std::strerror(errno);
      continue;
    }
    int error = ::connect(file_, each->ai_addr, each->ai_addrlen) == 0 ? 0 : errno;
    if (error == EINPROGRESS) {
      wait_for(file_, POLLOUT, patience, where);
      socklen_t size = sizeof(error);
      ::getsockopt(file_, SOL_SOCKET, SO_ERROR, &error, &size);
    }
    if (error == 0) {
      const int on = 1;
      ::setsockopt(file_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
      ::setsockopt(file_, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
      const int idle = 20;  // seconds
      ::setsockopt(file_, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
      ::setsockopt(file_, IPPROTO_TCP, TCP_KEEPINTVL, &idle, sizeof(idle));
      return;
    }
    why = std::strerror(error);
    close();
  }
  fail("cannot connect to " + where + ": " + why);
}

void Socket::start_tls(const Remote& remote, const Patience& patience) {
  const TlsOptions& options = remote.options.tls;
  const std::string where = remote.host + ":" + remote.port;
  context_ = SSL_CTX_new(TLS_client_method());
  if (context_ == nullptr) fail("TLS: " + tls_problem());
  SSL_CTX_set_min_proto_version(context_, TLS1_2_VERSION);
  SSL_CTX_set_mode(context_, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_verify(context_, options.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  const int loaded = options.ca_file.empty()
                         ? SSL_CTX_set_default_verify_paths(context_)
                         : SSL_CTX_load_verify_locations(context_, options.ca_file.c_str(), nullptr);
  if (loaded != 1) throw Error(ErrorCode::invalid, "tls.ca_file: " + options.ca_file + ": " + tls_problem());
  tls_ = SSL_new(context_);
  if (tls_ == nullptr || SSL_set_fd(tls_, file_) != 1) fail("TLS: " + tls_problem());
  const std::string& name = options.server_name.empty() ? remote.host : options.server_name;
  X509_VERIFY_PARAM* const checks = SSL_get0_param(tls_);
  if (X509_VERIFY_PARAM_set1_ip_asc(checks, name.c_str()) != 1) {
    SSL_ctrl(tls_, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, const_cast<char*>(name.c_str()));
    if (SSL_set1_host(tls_, name.c_str()) != 1) fail("TLS: " + tls_problem());
  }
  ERR_clear_error();
  for (;;) {
    const int result = SSL_connect(tls_);
    if (result == 1) return;
    const int error = SSL_get_error(tls_, result);
    if (error == SSL_ERROR_WANT_READ) {
      wait_for(file_, POLLIN, patience, where);
    } else if (error == SSL_ERROR_WANT_WRITE) {
      wait_for(file_, POLLOUT, patience, where);
    } else {
      const long verified = SSL_get_verify_result(tls_);
      fail("TLS with " + where + ": " +
           (verified != X509_V_OK ? X509_verify_cert_error_string(verified) : tls_problem()));
    }
  }
}

Socket::Outcome Socket::after_tls(int result, bool writes) {
  const int error = SSL_get_error(tls_, result);
  if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
    if (writes) wants_input_to_write_ = error == SSL_ERROR_WANT_READ;
    return Outcome::kWait;
  }
  if (error != SSL_ERROR_ZERO_RETURN) problem_ = tls_problem();
  return Outcome::kClosed;
}

Socket::Outcome Socket::write(std::string_view& bytes) {
  while (!bytes.empty()) {
    if (tls_ != nullptr) {
      ERR_clear_error();
      const int sent =
          SSL_write(tls_, bytes.data(), static_cast<int>(std::min<std::size_t>(bytes.size(), 1 << 20)));
      if (sent <= 0) return after_tls(sent, true);
      wants_input_to_write_ = false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
      continue;
    }
    const ssize_t sent = ::send(file_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) return Outcome::kWait;
      problem_ = std::strerror(errno);
      return Outcome::kClosed;
    }
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return Outcome::kDone;
}

Socket::Outcome Socket::read(std::string& bytes) {
  thread_local std::array<char, kReadAtOnce> buffer;
  for (std::size_t total = 0; total < kMostInATurn;) {
    ssize_t got = 0;
    if (tls_ != nullptr) {
      ERR_clear_error();
      got = SSL_read(tls_, buffer.data(), static_cast<int>(buffer.size()));
    } else {
      got = ::recv(file_, buffer.data(), buffer.size(), 0);
    }
    if (got > 0) {
      bytes.append(buffer.data(), static_cast<std::size_t>(got));
      total += static_cast<std::size_t>(got);
      if (tls_ == nullptr && static_cast<std::size_t>(got) < buffer.size()) return Outcome::kWait;
      continue;
    }
    if (tls_ != nullptr) return after_tls(static_cast<int>(got), false);
    if (got == 0) return Outcome::kClosed;
    if (errno == EINTR) continue;
    if (errno == EAGAIN) return Outcome::kWait;
    problem_ = std::strerror(errno);
    return Outcome::kClosed;
  }
  return Outcome::kDone;
}

void Socket::end_output() {
  if (tls_ != nullptr) SSL_shutdown(tls_);
  ::shutdown(file_, SHUT_WR);
}

void Socket::close() {
  if (tls_ != nullptr) SSL_free(tls_);
  tls_ = nullptr;
  if (context_ != nullptr) SSL_CTX_free(context_);
  context_ = nullptr;
  wants_input_to_write_ = false;
  if (file_ >= 0) ::close(file_);
  file_ = -1;
}

}  // namespace delayq::sdk
