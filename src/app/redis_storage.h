#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "app/storage.h"
#include "core/result.h"
#include "net/loop.h"

namespace delayq {

/// Connects, and waits at most `start_wait` for a Redis that is not there yet. Fails with what an operator
/// can do about it: nobody answers, the password is wrong, the Redis is too old, the deployment was made with
/// another number of shards. With `only_looks` nothing is written, and no right to do so is needed.
Result<std::unique_ptr<Storage>> open_redis_storage(
    const RedisStorageOptions& options, bool only_looks, net::Loop& loop,
    std::function<void(bool is_bad, std::string_view what)> tell);

}  // namespace delayq
