#include "cli/receiver.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <netdb.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>
#include <netinet/tcp.h>

namespace delayq::cli {

namespace {

constexpr int kBacklog = 4'096;
constexpr size_t kReadBytes = size_t{64} << 10;
/// Somebody who sends and never reads is not read any more.
constexpr size_t kMostUnsent = size_t{1} << 20;
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

std::string_view reason_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 401:
      return "Unauthorized";
    case 410:
      return "Gone";
    case 429:
      return "Too Many Requests";
    case 500:
      return "Internal Server Error";
    case 503:
      return "Service Unavailable";
    default:
      return "Answer";
  }
}

Error unavailable(const Address& address, std::string_view why) {
  return {ErrorCode::kUnavailable, {}, fmt::format("cannot listen on {}: {}", to_string(address), why)};
}

uint16_t port_of(int socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length);
  const auto* four = reinterpret_cast<const sockaddr_in*>(&address);
  const auto* six = reinterpret_cast<const sockaddr_in6*>(&address);
  return ntohs(address.ss_family == AF_INET6 ? six->sin6_port : four->sin_port);
}

/// A socket that listens, or -1 with errno.
int listen_on(const addrinfo& info) {
  const int socket =
      ::socket(info.ai_family, info.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, info.ai_protocol);
  if (socket < 0) return -1;
  const int yes = 1;
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (bind(socket, info.ai_addr, info.ai_addrlen) == 0 && listen(socket, kBacklog) == 0) return socket;
  const int error = errno;
  ::close(socket);
  errno = error;
  return -1;
}

void watch(int epoll, int operation, int fd, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  epoll_ctl(epoll, operation, fd, &event);
}

}  // namespace

struct Receiver::Connection {
  explicit Connection(int number) : fd(number) {}
  ~Connection() { ::close(fd); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int fd;
  std::string input;  ///< of a request that is not whole
  std::string output;
  bool is_asked_to_continue = false;
  bool waits_to_send = false;
  bool is_closing = false;  ///< as soon as all is sent
};

std::string http_answer(int status, std::string_view body) {
  // These two have none, and say so by what they are.
  if (status == 204 || status == 304) return fmt::format("HTTP/1.1 {} {}\r\n\r\n", status, reason_of(status));
  return fmt::format("HTTP/1.1 {} {}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{}", status,
                     reason_of(status), body.size(), body);
}

Receiver::Receiver(int epoll, int listener, uint16_t port)
    : epoll_(epoll), listener_(listener), port_(port) {}

Receiver::Receiver(Receiver&& other) noexcept
    : epoll_(std::exchange(other.epoll_, -1)),
      listener_(std::exchange(other.listener_, -1)),
      port_(other.port_),
      connections_(std::move(other.connections_)) {}

Receiver::~Receiver() {
  connections_.clear();
  if (listener_ >= 0) ::close(listener_);
  if (epoll_ >= 0) ::close(epoll_);
}

Result<Receiver> Receiver::open(const Address& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string port = fmt::to_string(address.port);
  const int failure =
      getaddrinfo(address.host.empty() ? nullptr : address.host.c_str(), port.c_str(), &hints, &found);
  if (failure != 0) return unavailable(address, gai_strerror(failure));
  const int listener = listen_on(*found);
  const int error = errno;
  freeaddrinfo(found);
  if (listener < 0) return unavailable(address, std::strerror(error));
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  watch(epoll, EPOLL_CTL_ADD, listener, EPOLLIN);
  return Receiver(epoll, listener, port_of(listener));
}

Status Receiver::run(int stop, const Handler& handler, const std::function<void()>& between) {
  watch(epoll_, EPOLL_CTL_ADD, stop, EPOLLIN);
  for (;;) {
    std::array<epoll_event, 256> events;  // NOLINT: filled by the kernel
    const int count = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), -1);
    if (count < 0 && errno != EINTR) return Error{ErrorCode::kInternal, {}, std::strerror(errno)};
    for (int i = 0; i < count; ++i) {
      const int fd = events[static_cast<size_t>(i)].data.fd;
      if (fd == stop) {
        watch(epoll_, EPOLL_CTL_DEL, stop, 0);
        return {};
      }
      if (fd == listener_) {
        accept_all();
      } else {
        serve(*connections_[static_cast<size_t>(fd)], handler);
      }
    }
    between();
  }
}

void Receiver::accept_all() {
  for (;;) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return;
    const int yes = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    const auto at = static_cast<size_t>(fd);
    if (at >= connections_.size()) connections_.resize(at + 64);
    connections_[at] = std::make_unique<Connection>(fd);
    watch(epoll_, EPOLL_CTL_ADD, fd, EPOLLIN);
  }
}

void Receiver::close(Connection& connection) { connections_[static_cast<size_t>(connection.fd)].reset(); }

void Receiver::serve(Connection& connection, const Handler& handler) {
  if (!connection.waits_to_send) {
    static thread_local std::array<char, kReadBytes> scratch;
    const ssize_t count = recv(connection.fd, scratch.data(), scratch.size(), 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count <= 0) return close(connection);
    connection.input.append(scratch.data(), static_cast<size_t>(count));
  }
  bool are_left = true;
  while (are_left) {
    if (!answer_all(connection, handler)) return close(connection);
    // Then requests were left unanswered, and nothing more may come to remind of them.
    are_left = connection.output.size() >= kMostUnsent;
    if (connection.output.empty()) break;
    const ssize_t sent =
        send(connection.fd, connection.output.data(), connection.output.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) return close(connection);
    if (sent > 0) connection.output.erase(0, static_cast<size_t>(sent));
    are_left &= connection.output.empty();
  }
  const bool has_more = !connection.output.empty();
  if (connection.is_closing && !has_more) return close(connection);
  if (has_more == connection.waits_to_send) return;
  connection.waits_to_send = has_more;
  watch(epoll_, EPOLL_CTL_MOD, connection.fd, has_more ? EPOLLOUT : EPOLLIN);
}

/// Answers every whole request. False when what came is none.
bool Receiver::answer_all(Connection& connection, const Handler& handler) {
  std::string_view input = connection.input;
  Reading reading = Reading::kWhole;
  while (!connection.is_closing && !input.empty() && connection.output.size() < kMostUnsent) {
    reading = read_request(input, request_);
    if (reading != Reading::kWhole) break;
    std::string_view answer = handler(request_);
    if (request_.method == "HEAD") answer = answer.substr(0, answer.find("\r\n\r\n") + 4);
    connection.output += answer;
    connection.is_closing = !request_.keeps_alive;
    connection.is_asked_to_continue = false;
  }
  if (reading == Reading::kAsksToContinue && !std::exchange(connection.is_asked_to_continue, true)) {
    connection.output += kContinue;
  }
  connection.input.erase(0, connection.input.size() - input.size());
  return reading != Reading::kBroken;
}

}  // namespace delayq::cli
