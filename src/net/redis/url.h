#pragma once

#include <string_view>

#include "core/result.h"
#include "net/redis/options.h"

namespace delayq::net::redis {

/// Reads where a deployment is:
///
///   redis://[[user]:password@]host[:port][,host[:port]...][/database]
///   redis-sentinel://[[user]:password@]host[:port][,...]/master[/database]      port 26379 by default
///   redis-cluster://[[user]:password@]host[:port][,...]
///
/// `rediss`, `rediss-sentinel` and `rediss-cluster` are the same over TLS. User and password may have
/// %-encoded bytes; an IPv6 address stands in brackets. A password for the sentinels is not part of this.
///
/// An error names the part that is wrong: scheme, user, password, host, port, master, database. It never has
/// the password in it.
Result<ClientOptions> parse_url(std::string_view text);

}  // namespace delayq::net::redis
