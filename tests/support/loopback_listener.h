#pragma once

#include <cstdint>
#include <stdexcept>
#include <sys/socket.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <netinet/in.h>

namespace delayq::support {

/// Listens on a free port of 127.0.0.1, for a server of a few lines. Its calls, and those of accepted
/// sockets, end after ten seconds, so that a broken test fails instead of hanging.
class [[nodiscard]] LoopbackListener {
 public:
  LoopbackListener() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    be_patient(socket_);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    const bool listens = ::bind(socket_, generic, size) == 0 && ::listen(socket_, 1) == 0 &&
                         ::getsockname(socket_, generic, &size) == 0;
    if (!listens) throw std::runtime_error("no port to listen on");
    port_ = ntohs(address.sin_port);
  }
  ~LoopbackListener() { ::close(socket_); }
  LoopbackListener(const LoopbackListener&) = delete;
  LoopbackListener& operator=(const LoopbackListener&) = delete;

  uint16_t port() const { return port_; }

  /// Returns the socket of the next client, which the caller must close; negative if none came.
  int accept() const {
    const int client = ::accept(socket_, nullptr, nullptr);
    if (client >= 0) be_patient(client);
    return client;
  }

 private:
  static void be_patient(int socket) {
    const timeval patience{.tv_sec = 10, .tv_usec = 0};
    ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }

  int socket_;
  uint16_t port_ = 0;
};

}  // namespace delayq::support
