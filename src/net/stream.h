#pragma once

#include <cstddef>
#include <string>
#include <sys/socket.h>
#include <sys/types.h>

namespace delayq::net {

/// The bytes of one connection, plain or encrypted. receive() and send() return the same as recv(2) and
/// send(2) of a socket that does not block: -1 with errno EAGAIN means "try later". send() never returns 0.
class Stream {
 public:
  virtual ~Stream() = default;

  virtual ssize_t receive(char* buffer, size_t size) = 0;
  virtual ssize_t send(const char* bytes, size_t size) = 0;
  /// receive() has bytes that were already read from the socket, so that the socket does not report them.
  virtual bool has_more() const { return false; }
  /// receive() can go on only when the socket has room.
  virtual bool waits_for_room() const { return false; }
  /// send() can go on only when bytes have arrived and receive() has read them.
  virtual bool waits_for_input() const { return false; }
  /// The handshake is not finished.
  virtual bool is_greeting() const { return false; }
  /// Why it broke, if that says more than errno.
  virtual std::string problem() const { return {}; }
  /// Tells the other side that no more bytes follow, if that is possible without blocking.
  virtual void finish() {}
};

/// Plain bytes.
class PlainStream final : public Stream {
 public:
  explicit PlainStream(int socket) : socket_(socket) {}
  ssize_t receive(char* buffer, size_t size) override { return ::recv(socket_, buffer, size, 0); }
  ssize_t send(const char* bytes, size_t size) override { return ::send(socket_, bytes, size, MSG_NOSIGNAL); }

 private:
  int socket_;
};

}  // namespace delayq::net
