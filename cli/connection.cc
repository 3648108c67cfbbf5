#include "cli/connection.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include "core/duration.h"
#include "resp/writer.h"

namespace delayq::cli {

namespace {

constexpr size_t kChunk = size_t{256} << 10;

Error unavailable(std::string detail) { return {ErrorCode::kUnavailable, {}, std::move(detail)}; }

/// "connection refused", as it reads within a sentence.
std::string reason(int error) {
  std::string text = std::generic_category().message(error);
  if (!text.empty() && text[0] >= 'A' && text[0] <= 'Z') text[0] = static_cast<char>(text[0] - 'A' + 'a');
  return text;
}

Error not_connected(const std::string& name, std::string_view why) {
  return unavailable(fmt::format(
      "could not connect to {}: {}. Is the server running? Start one with: delayq serve", name, why));
}

/// Waits until the socket is ready for `events`; false when the deadline came first.
bool wait_for(int socket, short events, Connection::Clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<Millis>(deadline - Connection::Clock::now());
    pollfd entry{.fd = socket, .events = events, .revents = 0};
    const auto timeout = static_cast<int>(std::clamp<int64_t>(left.count(), 0, 1'000'000'000));
    const int ready = poll(&entry, 1, timeout);
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};

/// A connected socket, or -1 with errno.
int connect_to(const addrinfo& address, Connection::Clock::time_point deadline) {
  const int socket_fd =
      socket(address.ai_family, address.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, address.ai_protocol);
  if (socket_fd < 0) return -1;
  int error = connect(socket_fd, address.ai_addr, address.ai_addrlen) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    socklen_t size = sizeof error;
    error = ETIMEDOUT;
    if (wait_for(socket_fd, POLLOUT, deadline)) getsockopt(socket_fd, SOL_SOCKET, SO_ERROR, &error, &size);
  }
  if (error != 0) {
    close(socket_fd);
    errno = error;
    return -1;
  }
  const int on = 1;
  setsockopt(socket_fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return socket_fd;
}

}  // namespace

Result<Connection> Connection::open(const Address& address, Millis patience) {
  const Clock::time_point deadline = Clock::now() + patience;
  const std::string name = to_string(address);
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(address.port);
  // Without a host this is the loopback, which is where a server that listens everywhere can be met.
  const char* const host = address.host.empty() ? nullptr : address.host.c_str();
  if (const int failed = getaddrinfo(host, port.c_str(), &hints, &found); failed != 0) {
    return unavailable(fmt::format("could not connect to {}: {}", name, gai_strerror(failed)));
  }
  const std::unique_ptr<addrinfo, FreeAddresses> list(found);
  int error = EHOSTUNREACH;
  for (const addrinfo* each = list.get(); each != nullptr; each = each->ai_next) {
    const int socket_fd = connect_to(*each, deadline);
    if (socket_fd >= 0) return Connection(socket_fd, name);
    error = errno;
  }
  return not_connected(name, reason(error));
}

Connection::~Connection() {
  if (socket_ >= 0) close(socket_);
}

Connection::Connection(Connection&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)),
      name_(std::move(other.name_)),
      input_(std::move(other.input_)) {}

Result<resp::Value> Connection::ask(std::span<const std::string_view> command, Millis patience) {
  const Clock::time_point deadline = Clock::now() + patience;
  std::string bytes;
  resp::append_command(bytes, command);
  if (Status status = send(bytes, deadline); !status) return status.error();
  for (;;) {
    const Result<std::optional<size_t>> size = resp::reply_size(input_);
    if (!size) return unavailable(fmt::format("{} does not speak RESP: {}", name_, size.error().detail));
    if (*size) break;
    if (Status status = receive(deadline); !status) {
      Error error = status.error();
      if (error.detail.empty())
        error.detail = fmt::format("no answer from {} within {}", name_, format_duration(patience));
      return error;
    }
  }
  std::string_view rest = input_;
  Result<std::optional<resp::Value>> value = resp::take_reply(rest);
  if (!value) return value.error();
  input_.erase(0, input_.size() - rest.size());
  return std::move(**value);
}

Status Connection::send(std::string_view bytes, Clock::time_point deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
    } else if (errno == EAGAIN) {
      if (!wait_for(socket_, POLLOUT, deadline))
        return unavailable(fmt::format("{} takes no more of the command", name_));
    } else if (errno != EINTR) {
      return unavailable(fmt::format("the connection to {} broke: {}", name_, reason(errno)));
    }
  }
  return {};
}

Status Connection::receive(Clock::time_point deadline) {
  const size_t before = input_.size();
  for (;;) {
    input_.resize(before + kChunk);
    const ssize_t got = recv(socket_, input_.data() + before, kChunk, 0);
    input_.resize(before + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got > 0) return {};
    if (got == 0) return unavailable(fmt::format("{} closed the connection without an answer", name_));
    if (errno != EAGAIN && errno != EINTR)
      return unavailable(fmt::format("the connection to {} broke: {}", name_, reason(errno)));
    if (!wait_for(socket_, POLLIN, deadline)) return unavailable({});
  }
}

}  // namespace delayq::cli
