#include "bench/rivals/crowd.h"

#include <algorithm>
#include <poll.h>
#include <sys/socket.h>

#include <fmt/format.h>

#include "resp/writer.h"

namespace delayq::bench {

Result<Crowd> Crowd::gather(const Address& server, size_t connections, size_t waiting) {
  raise_descriptor_limit();
  Crowd crowd;
  for (size_t i = 0; i < connections; ++i) {
    Result<Descriptor> socket = connect_to(server);
    if (!socket.ok()) return socket.error();
    if (i < waiting) {
      std::string pop;
      resp::append_command(pop, {"POP", fmt::format("quiet-{}", i), "WAIT", "1h"});
      if (::send(socket->get(), pop.data(), pop.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(pop.size()))
        return Error{ErrorCode::kUnavailable, "rivals.crowd", "a POP could not be sent", {}};
    }
    crowd.sockets_.push_back(std::move(*socket));
  }
  return crowd;
}

bool Crowd::is_undisturbed() const {
  return std::none_of(sockets_.begin(), sockets_.end(), [](const Descriptor& socket) {
    pollfd readable{socket.get(), POLLIN, 0};
    return ::poll(&readable, 1, 0) > 0;
  });
}

}  // namespace delayq::bench
