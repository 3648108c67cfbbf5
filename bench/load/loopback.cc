#include "bench/rivals/loopback.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/socket.h>

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

namespace delayq::bench {

namespace {

constexpr uint16_t kFirstPort = 20'000;
constexpr uint16_t kPorts = 12'000;

Error failed(std::string detail) {
  return {ErrorCode::kUnavailable, "rivals.connect", std::move(detail), {}};
}

sockaddr_in loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

const sockaddr* as_generic(const sockaddr_in& address) { return reinterpret_cast<const sockaddr*>(&address); }

}  // namespace

Millis time_left(Deadline deadline) {
  const auto left = deadline - std::chrono::steady_clock::now();
  return std::max(std::chrono::ceil<Millis>(left), Millis{0});
}

Result<uint16_t> free_loopback_port() {
  static uint32_t turn = static_cast<uint32_t>(::getpid());
  for (uint32_t tries = 0; tries < 1'000; ++tries) {
    // Programs that run side by side have other pids; the factor keeps neighbours apart.
    const auto port = static_cast<uint16_t>(kFirstPort + turn++ * 131 % kPorts);
    const Descriptor probe(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!probe.is_open()) return failed("no socket to be had");
    const sockaddr_in address = loopback(port);
    if (::bind(probe.get(), as_generic(address), sizeof address) == 0) return port;
  }
  return failed("no free port on 127.0.0.1");
}

Result<Descriptor> connect_to(uint16_t port) {
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = loopback(port);
  if (!socket.is_open() || ::connect(socket.get(), as_generic(address), sizeof address) != 0) {
    return failed(fmt::format("port {}: {}", port, std::strerror(errno)));
  }
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return socket;
}

}  // namespace delayq::bench
