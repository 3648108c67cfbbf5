#include "net/redis/options.h"

#include <fmt/format.h>

namespace delayq::net::redis {

std::string to_string(const Address& address) {
  if (address.host.find(':') != std::string::npos) return fmt::format("[{}]:{}", address.host, address.port);
  return fmt::format("{}:{}", address.host, address.port);
}

}  // namespace delayq::net::redis
