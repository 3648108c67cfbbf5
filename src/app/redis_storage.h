#pragma once

#include <memory>

#include "app/storage.h"
#include "core/result.h"
#include "net/loop.h"

namespace delayq {

/// Connects, and waits at most `start_wait` for a Redis that is not there yet. Fails with what an operator
/// can do about it: nobody answers, the password is wrong, the Redis is too old, the deployment was made with
/// another number of shards. Who only looks needs no right to write.
Result<std::unique_ptr<Storage>> open_redis_storage(const StorageOptions& options, net::Loop& loop);

}  // namespace delayq
