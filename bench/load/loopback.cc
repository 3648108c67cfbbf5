#include "bench/load/loopback.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <netdb.h>
#include <sys/resource.h>

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include "core/text.h"

namespace delayq::bench {

namespace {

constexpr uint16_t kFirstPort = 20'000;
constexpr uint16_t kPorts = 12'000;

Error connect_failed(std::string detail) {
  return {ErrorCode::kUnavailable, "connect", std::move(detail), {}};
}

const sockaddr* as_generic(const Address& address) {
  return reinterpret_cast<const sockaddr*>(&address.socket);
}

}  // namespace

Millis time_left(Deadline deadline) {
  const auto left = deadline - std::chrono::steady_clock::now();
  return std::max(std::chrono::ceil<Millis>(left), Millis{0});
}

Address loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  Address result;
  std::memcpy(&result.socket, &address, sizeof address);
  result.size = sizeof address;
  return result;
}

Result<Address> resolve(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || colon + 1 == text.size()) {
    return Error{ErrorCode::kInvalid,
                 "connect",
                 fmt::format("{} is not an address; write host:port, such as 127.0.0.1:9278", quote(text)),
                 {}};
  }
  std::string host(text.substr(0, colon));
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int problem =
      ::getaddrinfo(host.c_str(), std::string(text.substr(colon + 1)).c_str(), &hints, &found);
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  if (problem != 0 || found == nullptr)
    return connect_failed(fmt::format("{}: {}", quote(text), ::gai_strerror(problem)));
  Address result;
  std::memcpy(&result.socket, found->ai_addr, found->ai_addrlen);
  result.size = found->ai_addrlen;
  return result;
}

Result<uint16_t> free_loopback_port() {
  static uint32_t turn = static_cast<uint32_t>(::getpid());
  for (uint32_t tries = 0; tries < 1'000; ++tries) {
    // Programs that run side by side have other pids; the factor keeps neighbours apart.
    const auto port = static_cast<uint16_t>(kFirstPort + turn++ * 131 % kPorts);
    const Descriptor probe(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!probe.is_open()) return connect_failed("no socket to be had");
    const Address address = loopback(port);
    if (::bind(probe.get(), as_generic(address), address.size) == 0) return port;
  }
  return connect_failed("no free port on 127.0.0.1");
}

Result<Descriptor> connect_to(const Address& address) {
  Descriptor socket(::socket(address.socket.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.is_open() || ::connect(socket.get(), as_generic(address), address.size) != 0)
    return connect_failed(std::strerror(errno));
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return socket;
}

void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace delayq::bench
