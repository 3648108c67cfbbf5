#include "bench/rivals/load_client.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <string_view>
#include <sys/socket.h>
#include <vector>

#include <fmt/format.h>

#include "bench/micro/harness.h"

namespace delayq::bench {

namespace {

Error failed(std::string detail) { return {ErrorCode::kUnavailable, "rivals.load", std::move(detail), {}}; }

/// One connection: what is still to be sent, and the answer that has come in half.
class Connection {
 public:
  explicit Connection(Descriptor socket) : socket_(std::move(socket)) {}

  int number() const { return socket_.get(); }
  short interest() const { return static_cast<short>(sent_ < out_.size() ? POLLIN | POLLOUT : POLLIN); }

  /// Asks for more once half of the pipeline is free: one write for many requests, and the peer never runs
  /// dry.
  void top_up(const Load& load, uint64_t& next) {
    if (under_way_ > load.pipeline / 2) return;
    for (; under_way_ < load.pipeline && next < load.requests; ++under_way_)
      load.append_request(next++, out_);
    // Some peers write each answer by itself. Waking for half a pipeline of them leaves the processor to the
    // peer. More than that is under way whenever we wait, except at the end.
    const size_t shortest = load.good_answer.size() + 1;
    wake_at(under_way_ > load.pipeline / 2 ? load.pipeline / 2 * shortest : 1);
  }

  Status send() {
    while (sent_ < out_.size()) {
      const ssize_t count = ::send(number(), out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
      if (count < 0 && (errno == EAGAIN || errno == EINTR)) return {};
      if (count < 0) return failed(fmt::format("send: {}", std::strerror(errno)));
      sent_ += static_cast<size_t>(count);
    }
    out_.clear();
    sent_ = 0;
    return {};
  }

  /// Reads what is there and answers how many good answers it completed.
  Result<uint64_t> receive(const std::string& good) {
    std::array<char, 64 * 1024> buffer;  // not cleared: recv says how much of it is meant
    const ssize_t count = ::recv(number(), buffer.data(), buffer.size(), 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return uint64_t{0};
    if (count <= 0) return failed("the peer closed a connection");
    in_.append(buffer.data(), static_cast<size_t>(count));
    uint64_t answers = 0;
    size_t start = 0;
    for (size_t end = in_.find('\n'); end != std::string::npos; end = in_.find('\n', start)) {
      const std::string_view line = std::string_view(in_).substr(start, end - start);
      if (!line.starts_with(good)) return failed(fmt::format("the peer answered '{}'", line));
      ++answers;
      start = end + 1;
    }
    in_.erase(0, start);
    if (answers > under_way_) return failed("the peer answered more than it was asked");
    under_way_ -= answers;
    return answers;
  }

 private:
  /// How many bytes must be there before poll says so.
  void wake_at(size_t bytes) {
    if (bytes == wake_at_) return;
    const int mark = static_cast<int>(bytes);
    if (::setsockopt(number(), SOL_SOCKET, SO_RCVLOWAT, &mark, sizeof mark) == 0) wake_at_ = bytes;
  }

  Descriptor socket_;
  std::string out_;
  size_t sent_ = 0;
  std::string in_;
  size_t under_way_ = 0;
  size_t wake_at_ = 1;
};

Result<std::vector<Connection>> connect_all(uint16_t port, size_t count) {
  std::vector<Connection> connections;
  for (size_t i = 0; i < count; ++i) {
    Result<Descriptor> socket = connect_to(port);
    if (!socket.ok()) return socket.error();
    if (::fcntl(socket->get(), F_SETFL, O_NONBLOCK) != 0) return failed("a socket that only blocks");
    connections.emplace_back(std::move(*socket));
  }
  return connections;
}

/// Serves one connection that poll named.
Status serve(Connection& connection, const Load& load, uint64_t& next, uint64_t& answered) {
  const Result<uint64_t> answers = connection.receive(load.good_answer);
  if (!answers.ok()) return answers.error();
  answered += *answers;
  connection.top_up(load, next);
  return connection.send();
}

}  // namespace

Result<LoadResult> run_load(uint16_t port, const Load& load, Deadline deadline) {
  Result<std::vector<Connection>> connected = connect_all(port, load.connections);
  if (!connected.ok()) return connected.error();
  std::vector<Connection>& connections = *connected;
  std::vector<pollfd> polled(connections.size());
  uint64_t next = 0;
  LoadResult result;
  const Stopwatch watch;
  for (Connection& connection : connections) {
    connection.top_up(load, next);
    if (Status sent = connection.send(); !sent.ok()) return sent.error();
  }
  while (result.answered < load.requests && time_left(deadline) > Millis{0}) {
    for (size_t i = 0; i < connections.size(); ++i)
      polled[i] = {connections[i].number(), connections[i].interest(), 0};
    const int ready = ::poll(polled.data(), polled.size(), static_cast<int>(time_left(deadline).count()));
    if (ready < 0 && errno != EINTR) return failed(fmt::format("poll: {}", std::strerror(errno)));
    for (size_t i = 0; ready > 0 && i < connections.size(); ++i) {
      if (polled[i].revents == 0) continue;
      if (Status served = serve(connections[i], load, next, result.answered); !served.ok())
        return served.error();
    }
  }
  result.seconds = watch.seconds();
  return result;
}

}  // namespace delayq::bench
