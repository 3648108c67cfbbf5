#pragma once

#include <cstddef>
#include <string>
#include <sys/types.h>

namespace delayq::net {

/// The bytes of one connection, plain or encrypted. Returns the same as recv(2) and send(2) of a socket that
/// does not block: -1 with errno as EAGAIN means later. send() never returns 0.
class Stream {
 public:
  virtual ~Stream() = default;

  virtual ssize_t receive(char* buffer, size_t size) = 0;
  virtual ssize_t send(const char* bytes, size_t size) = 0;
  /// Bytes have come that the socket does not tell of any more: receive() has them.
  virtual bool has_more() const { return false; }
  /// receive() can go on only when the socket has room.
  virtual bool waits_for_room() const { return false; }
  /// send() can go on only when bytes have come and receive() has taken them.
  virtual bool waits_for_input() const { return false; }
  /// The handshake is not finished.
  virtual bool is_greeting() const { return false; }
  /// Why it broke, if that says more than errno.
  virtual std::string problem() const { return {}; }
  /// Sends the end of the conversation, if that is possible without blocking.
  virtual void finish() {}
};

/// Plain bytes.
class PlainStream final : public Stream {
 public:
  explicit PlainStream(int socket) : socket_(socket) {}
  ssize_t receive(char* buffer, size_t size) override;
  ssize_t send(const char* bytes, size_t size) override;

 private:
  int socket_;
};

}  // namespace delayq::net
