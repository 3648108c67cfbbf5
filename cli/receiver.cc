#include "cli/receiver.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <netdb.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>
#include <netinet/tcp.h>

#include "core/limits.h"
#include "core/text.h"

namespace delayq::cli {

namespace {

constexpr size_t kMostHeaderBytes = size_t{64} << 10;
constexpr size_t kMostBodyBytes = Limits::kMaxBodyBytes + (size_t{1} << 20);
/// Including the lines around the chunks, and their extensions.
constexpr size_t kMostChunkedBytes = 2 * kMostBodyBytes;

bool equals(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::strncasecmp(a.data(), b.data(), a.size()) == 0;
}

/// Removes the text up to the line's end, and that end, and returns the text. REQUIRES: there is a line's
/// end.
std::string_view take_line(std::string_view& text) {
  const size_t end = text.find("\r\n");
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 2);
  return line;
}

bool parse_number(std::string_view text, int base, size_t& number) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number, base);
  return error == std::errc{} && stop == end && !text.empty();
}

bool parse_start_line(std::string_view line, ReceivedRequest& request) {
  const size_t first = line.find(' ');
  const size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == 0 || last <= first + 1) return false;
  request.method = line.substr(0, first);
  request.target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  request.keeps_alive = version == "HTTP/1.1";
  return version == "HTTP/1.1" || version == "HTTP/1.0";
}

/// What the headers say of the body.
struct Framing {
  size_t length = 0;
  bool is_chunked = false;
  bool asks_to_continue = false;
  bool is_broken = false;
};

void note(std::string_view name, std::string_view value, ReceivedRequest& request, Framing& framing) {
  switch (name.size()) {
    case 6:
      if (equals(name, "expect")) framing.asks_to_continue = equals(value, "100-continue");
      break;
    case 10:
      if (!equals(name, "connection")) break;
      if (equals(value, "close")) request.keeps_alive = false;
      if (equals(value, "keep-alive")) request.keeps_alive = true;
      break;
    case 14:
      if (!equals(name, "content-length")) break;
      framing.is_broken |= !parse_number(value, 10, framing.length) || framing.length > kMostBodyBytes;
      break;
    case 17:
      if (!equals(name, "transfer-encoding")) break;
      framing.is_chunked = equals(value, "chunked");
      framing.is_broken |= !framing.is_chunked;
      break;
    default:
      break;
  }
}

Reading read_chunks(std::string_view& input, std::string& body) {
  for (;;) {
    if (input.find("\r\n") == std::string_view::npos) return Reading::kPartial;
    const std::string_view line = take_line(input);
    size_t length = 0;
    if (!parse_number(trimmed(line.substr(0, line.find(';'))), 16, length)) return Reading::kBroken;
    if (length > kMostBodyBytes || body.size() + length > kMostBodyBytes) return Reading::kBroken;
    if (length == 0) break;
    if (input.size() < length + 2) return Reading::kPartial;
    body += input.substr(0, length);
    if (input.substr(length, 2) != "\r\n") return Reading::kBroken;
    input.remove_prefix(length + 2);
  }
  for (;;) {  // what follows the last chunk, up to an empty line
    if (input.find("\r\n") == std::string_view::npos) return Reading::kPartial;
    if (take_line(input).empty()) return Reading::kWhole;
  }
}

}  // namespace

std::string_view ReceivedRequest::header(std::string_view name) const {
  const auto found = std::find_if(headers.begin(), headers.end(),
                                  [&](const auto& each) { return equals(each.first, name); });
  return found == headers.end() ? std::string_view() : found->second;
}

Reading read_request(std::string_view& input, ReceivedRequest& request) {
  const size_t end = input.find("\r\n\r\n");
  if (std::min(end, input.size()) > kMostHeaderBytes) return Reading::kBroken;
  if (end == std::string_view::npos) return Reading::kPartial;
  std::string_view head = input.substr(0, end + 2);
  std::string_view rest = input.substr(end + 4);
  if (!parse_start_line(take_line(head), request)) return Reading::kBroken;
  request.headers.clear();
  Framing framing;
  while (!head.empty()) {
    const std::string_view line = take_line(head);
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || colon == 0) return Reading::kBroken;
    const std::string_view value = trimmed(line.substr(colon + 1));
    request.headers.emplace_back(line.substr(0, colon), value);
    note(line.substr(0, colon), value, request, framing);
  }
  if (framing.is_broken) return Reading::kBroken;
  const Reading partial =
      framing.asks_to_continue && rest.empty() ? Reading::kAsksToContinue : Reading::kPartial;
  if (framing.is_chunked) {
    request.unchunked.clear();
    const size_t came = rest.size();
    const Reading reading = read_chunks(rest, request.unchunked);
    if (reading == Reading::kPartial && came > kMostChunkedBytes) return Reading::kBroken;
    if (reading != Reading::kWhole) return reading == Reading::kPartial ? partial : reading;
    request.body = request.unchunked;
  } else {
    if (rest.size() < framing.length) return partial;
    request.body = rest.substr(0, framing.length);
    rest.remove_prefix(framing.length);
  }
  input = rest;
  return Reading::kWhole;
}

namespace {

constexpr int kBacklog = 4'096;
constexpr size_t kReadBytes = size_t{64} << 10;
/// A client with this much unread output is not read.
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
  // These two statuses never have a body.
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
    // Requests were left unanswered while the output was full, and no further input may arrive to trigger
    // them.
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

/// Answers every complete request. Returns false if the input is not a request.
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
