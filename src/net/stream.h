#pragma once

#include <cstddef>
#include <string>
#include <sys/types.h>

namespace delayq::net {

/// The bytes of one connection, as they are or encrypted. Answers like recv(2) and send(2) of a socket that
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
  /// The two sides are still agreeing on how to talk.
  virtual bool is_greeting() const { return false; }
  /// Why it broke, where that is more than errno tells.
  virtual std::string problem() const { return {}; }
  /// Says goodbye, as far as that can be done now.
  virtual void finish() {}
};

/// As they are.
class PlainStream final : public Stream {
 public:
  explicit PlainStream(int socket) : socket_(socket) {}
  ssize_t receive(char* buffer, size_t size) override;
  ssize_t send(const char* bytes, size_t size) override;

 private:
  int socket_;
};

}  // namespace delayq::net
