#pragma once

#include <memory>

#include "core/result.h"
#include "net/redis/client.h"
#include "net/redis/options.h"

namespace delayq::net {
class Loop;
}

namespace delayq::net::redis {

/// The client over real connections. It starts to connect when it is made and goes on for as long as it
/// lives; the loop must outlive it. Answers that are still outstanding when it goes are destroyed without
/// being called.
///
/// Fails only for what no waiting can mend: no address, files of TLS that cannot be read.
Result<std::unique_ptr<Client>> open_client(Loop& loop, ClientOptions options);

}  // namespace delayq::net::redis
