#pragma once

#include <string>

#include "cli/connection.h"
#include "cli/seeds/redis_reader.h"

namespace delayq::cli {

/// A Redis server that jobs are read from.
struct RedisPlace {
  seeds::RedisReader reader;
  std::string name;        ///< "host:port/database", for people: without the password
  bool is_member = false;  ///< of a Cluster, which has other keys elsewhere
};

/// Connects to redis://[[user]:password@]host[:port][/database], or rediss:// for TLS. kInvalid for another
/// URL, kUnauthorized when it does not take the password.
Result<RedisPlace> open_redis(const std::string& url);

}  // namespace delayq::cli
