#include "tests/support/redis_wire.h"

#include <sys/socket.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include "resp/writer.h"

namespace delayq::support {

RedisWire::RedisWire(uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const timeval patience{.tv_sec = 10, .tv_usec = 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) close();
}

RedisWire::~RedisWire() { close(); }

void RedisWire::close() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
}

bool RedisWire::is_open() {
  char byte = 0;
  const bool has_ended = socket_ >= 0 && ::recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
  if (has_ended) close();
  return socket_ >= 0;
}

std::optional<resp::Value> RedisWire::command(std::initializer_list<std::string_view> words) {
  if (!is_open()) return std::nullopt;
  std::string bytes;
  resp::append_command(bytes, words);
  if (::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(bytes.size()))
    close();
  while (socket_ >= 0) {
    std::string_view rest = input_;
    Result<std::optional<resp::Value>> reply = resp::take_reply(rest);
    if (!reply.ok()) break;
    if (*reply) {
      input_.erase(0, input_.size() - rest.size());
      return std::move(**reply);
    }
    char buffer[16 * 1024];
    const ssize_t count = ::recv(socket_, buffer, sizeof buffer, 0);
    if (count <= 0) break;
    input_.append(buffer, static_cast<size_t>(count));
  }
  close();
  return std::nullopt;
}

}  // namespace delayq::support
