#include "cli/stream.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include "cli/tls.h"

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

Error closed(const std::string& name) {
  return unavailable(fmt::format("{} closed the connection without an answer", name));
}

/// Waits until the socket is ready for `events`; false when the deadline came first.
bool wait_for(int socket, short events, Stream::Clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<Millis>(deadline - Stream::Clock::now());
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
int connect_to(const addrinfo& address, Stream::Clock::time_point deadline) {
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

/// Connected to the first of the host's addresses that answers.
Result<int> connect_to(const Address& address, const std::string& name, Stream::Clock::time_point deadline) {
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
    if (socket_fd >= 0) return socket_fd;
    error = errno;
  }
  return not_connected(name, reason(error));
}

}  // namespace

Stream::Stream(int socket, std::string name) : socket_(socket), name_(std::move(name)) {}

Stream::Stream(Stream&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)),
      name_(std::move(other.name_)),
      tls_(std::move(other.tls_)),
      has_heard_(other.has_heard_) {}

Stream::~Stream() {
  if (socket_ >= 0) close(socket_);
}

Result<Stream> Stream::open(const Server& server, Clock::time_point deadline) {
  const std::string name = to_string(server.address);
  const Result<int> socket_fd = connect_to(server.address, name, deadline);
  if (!socket_fd) return socket_fd.error();
  Stream stream(*socket_fd, name);
  if (server.tls) {
    if (Status status = stream.shake_hands(server, deadline); !status) return status.error();
  }
  return stream;
}

Status Stream::shake_hands(const Server& server, Clock::time_point deadline) {
  Result<Tls> tls = Tls::create(server);
  if (!tls) return tls.error();
  for (;;) {
    const Result<bool> done = tls->shake_hands();
    // Also what was wrong is told to the other side.
    if (Status status = send_raw(tls->outgoing(), deadline); !status) return status;
    if (!done) return unavailable(fmt::format("could not connect to {}: {}", name_, done.error().detail));
    if (*done) break;
    std::string bytes;
    const Result<bool> came = receive_raw(bytes, deadline);
    if (!came) return came.error();
    if (!*came) return unavailable(fmt::format("{} does not answer in TLS", name_));
    tls->take(bytes);
  }
  tls_ = std::make_unique<Tls>(std::move(*tls));
  return {};
}

Status Stream::send(std::string_view bytes, Clock::time_point deadline) {
  if (tls_ == nullptr) return send_raw(bytes, deadline);
  if (Status status = tls_->encrypt(bytes); !status) return status;
  return send_raw(tls_->outgoing(), deadline);
}

Result<bool> Stream::receive(std::string& input, Clock::time_point deadline) {
  if (tls_ == nullptr) return receive_plain(input, deadline);
  const size_t before = input.size();
  while (input.size() == before) {
    std::string bytes;
    Result<bool> came = receive_raw(bytes, deadline);
    if (!came || !*came) return came;
    tls_->take(bytes);
    const Result<bool> goes_on = tls_->decrypt(input);
    if (!goes_on)
      return unavailable(fmt::format("the connection to {} broke: {}", name_, goes_on.error().detail));
    if (!*goes_on && input.size() == before) return closed(name_);
    if (Status status = send_raw(tls_->outgoing(), deadline); !status) return status.error();
  }
  return true;
}

Result<bool> Stream::receive_plain(std::string& input, Clock::time_point deadline) {
  Result<bool> came = receive_raw(input, deadline);
  if (came) {
    has_heard_ = has_heard_ || *came;
  } else if (!has_heard_) {
    // So does a server that was spoken to without the TLS that it expects.
    return unavailable(came.error().detail + ". If it speaks TLS there, say --tls");
  }
  return came;
}

Status Stream::send_raw(std::string_view bytes, Clock::time_point deadline) {
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

Result<bool> Stream::receive_raw(std::string& input, Clock::time_point deadline) {
  const size_t before = input.size();
  for (;;) {
    input.resize(before + kChunk);
    const ssize_t got = recv(socket_, input.data() + before, kChunk, 0);
    input.resize(before + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got > 0) return true;
    if (got == 0) return closed(name_);
    if (errno != EAGAIN && errno != EINTR)
      return unavailable(fmt::format("the connection to {} broke: {}", name_, reason(errno)));
    if (!wait_for(socket_, POLLIN, deadline)) return false;
  }
}

}  // namespace delayq::cli
