#include "bench/load/connection.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/socket.h>

#include <fmt/format.h>

namespace delayq::bench {

namespace {

constexpr size_t kRead = 16 * 1024;
constexpr size_t kLargestWake = 64 * 1024;

Error failed(std::string detail) { return {ErrorCode::kUnavailable, "load", std::move(detail), {}}; }

}  // namespace

Status Connection::send() {
  while (is_sending()) {
    const ssize_t count = ::send(number(), out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return {};
    if (count < 0) return failed(fmt::format("send: {}", std::strerror(errno)));
    sent_ += static_cast<size_t>(count);
  }
  out_.clear();
  sent_ = 0;
  return {};
}

void Connection::make_room() {
  if (begin_ == end_) begin_ = end_ = 0;
  if (capacity_ - end_ >= kRead) return;
  const size_t used = end_ - begin_;
  const size_t wanted = std::max(capacity_, 2 * kRead);
  // Not cleared: recv says how much of it is meant.
  const size_t capacity = wanted - used >= kRead ? wanted : 2 * wanted;
  std::unique_ptr<char[]> bigger(new char[capacity]);
  if (used > 0) std::memcpy(bigger.get(), in_.get() + begin_, used);
  in_ = std::move(bigger);
  capacity_ = capacity;
  begin_ = 0;
  end_ = used;
}

Status Connection::receive() {
  make_room();
  const ssize_t count = ::recv(number(), in_.get() + end_, capacity_ - end_, 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return {};
  if (count < 0) return failed(fmt::format("recv: {}", std::strerror(errno)));
  if (count == 0) return failed("the server closed a connection");
  end_ += static_cast<size_t>(count);
  return {};
}

void Connection::wake_at(size_t bytes) {
  bytes = std::clamp<size_t>(bytes, 1, kLargestWake);
  if (bytes == wake_at_) return;
  const int mark = static_cast<int>(bytes);
  if (::setsockopt(number(), SOL_SOCKET, SO_RCVLOWAT, &mark, sizeof mark) == 0) wake_at_ = bytes;
}

}  // namespace delayq::bench
