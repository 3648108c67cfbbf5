#include "net/stream.h"

#include <sys/socket.h>

namespace delayq::net {

ssize_t PlainStream::receive(char* buffer, size_t size) { return ::recv(socket_, buffer, size, 0); }

ssize_t PlainStream::send(const char* bytes, size_t size) {
  return ::send(socket_, bytes, size, MSG_NOSIGNAL);
}

}  // namespace delayq::net
