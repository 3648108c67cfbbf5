#include "tests/simulation/connections/wire.h"

#include <algorithm>
#include <cerrno>
#include <memory>

#include <fmt/format.h>
#include <openssl/bio.h>

namespace delayq::connections {

namespace {

/// More than any buffer of a session, and less than any length that went below zero.
constexpr size_t kLargestRead = size_t{64} << 20;
/// One event moves some megabytes at most, in pieces that may be single bytes.
constexpr uint64_t kMostCalls = 200'000;

Wire& wire_of(BIO* bio) { return *static_cast<Wire*>(BIO_get_data(bio)); }

int read_bio(BIO* bio, char* buffer, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t count = wire_of(bio).receive(buffer, static_cast<size_t>(size));
  if (count < 0 && errno == EAGAIN) BIO_set_retry_read(bio);
  if (count == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
  return static_cast<int>(count);
}

int write_bio(BIO* bio, const char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t count = wire_of(bio).send(bytes, static_cast<size_t>(size));
  if (count < 0 && errno == EAGAIN) BIO_set_retry_write(bio);
  return static_cast<int>(count);
}

long control_bio(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_FLUSH) return 1;
  if (command == BIO_CTRL_EOF) return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0 ? 1 : 0;
  return 0;
}

int create_bio(BIO* bio) {
  BIO_set_init(bio, 1);
  return 1;
}

BIO_METHOD* wire_method() {
  static BIO_METHOD* const kMethod = [] {
    BIO_METHOD* const method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "wire");
    BIO_meth_set_read(method, read_bio);
    BIO_meth_set_write(method, write_bio);
    BIO_meth_set_ctrl(method, control_bio);
    BIO_meth_set_create(method, create_bio);
    return method;
  }();
  return kMethod;
}

}  // namespace

BIO* new_wire_bio(Wire& wire) {
  BIO* const bio = BIO_new(wire_method());
  BIO_set_data(bio, &wire);
  return bio;
}

// ---- Wire

size_t Wire::piece(size_t most) {
  if (most <= 1 || random_.chance(1, 3)) return most;
  const size_t scale = random_.chance(1, 4) ? 3 : most;
  return random_.between(1, std::min(most, scale));
}

ssize_t Wire::violated(const char* how) {
  violation_ = how;
  errno = EBADF;
  return -1;
}

ssize_t Wire::receive(char* buffer, size_t size) {
  if (is_closed_) return violated("received from a socket that was closed");
  if (is_reset_) {
    errno = ECONNRESET;
    return -1;
  }
  if (to_server_.empty()) {
    if (client_ended_) {
      progress_ += saw_end_ ? 0 : 1;
      saw_end_ = true;
      return 0;
    }
    errno = EAGAIN;
    return -1;
  }
  const size_t count = piece(std::min(size, to_server_.size()));
  std::copy_n(to_server_.begin(), count, buffer);
  to_server_.erase(0, count);
  progress_ += count;
  return static_cast<ssize_t>(count);
}

ssize_t Wire::send(const char* bytes, size_t size) {
  if (is_closed_) return violated("sent to a socket that was closed");
  if (is_reset_ || server_ended_) {
    errno = EPIPE;
    return -1;
  }
  const size_t room = capacity_ - std::min(capacity_, to_client_.size());
  if (room == 0) {
    errno = EAGAIN;
    return -1;
  }
  const size_t count = piece(std::min(room, size));
  to_client_.append(bytes, count);
  progress_ += count;
  return static_cast<ssize_t>(count);
}

void Wire::close_by_server() {
  if (is_closed_) return;
  is_closed_ = true;
  ++progress_;
  // As TCP does: unread input takes back what was sent last.
  if (!to_server_.empty() && !client_ended_) to_client_.clear();
}

size_t Wire::put(std::string_view bytes) {
  if (is_closed_ || is_reset_) return 0;
  const size_t count = std::min(bytes.size(), capacity_ - std::min(capacity_, to_server_.size()));
  to_server_ += bytes.substr(0, count);
  return count;
}

std::string Wire::take(size_t most) {
  std::string taken = to_client_.substr(0, most);
  to_client_.erase(0, taken.size());
  return taken;
}

void Wire::reset() {
  is_reset_ = true;
  to_server_.clear();
  to_client_.clear();
}

// ---- CheckedStream

void CheckedStream::count_call() {
  if (++calls_ > kMostCalls) throw Broken("a session goes on calling its stream without an end");
}

ssize_t CheckedStream::receive(char* buffer, size_t size) {
  count_call();
  if (size == 0) throw Broken("a read into no room at all looks like the end of the input");
  if (size > kLargestRead) throw Broken(fmt::format("a read of {} bytes: a length went below zero", size));
  buffer[0] = buffer[size - 1] = '?';  // all of it must be there: the sanitizer looks
  return inner_->receive(buffer, size);
}

ssize_t CheckedStream::send(const char* bytes, size_t size) {
  count_call();
  return inner_->send(bytes, size);
}

}  // namespace delayq::connections
