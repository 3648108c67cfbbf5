#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/storage.h"
#include "core/result.h"
#include "net/loop.h"
#include "ops/config.h"

namespace delayq {

/// What is wrong with what the configuration says of the redis engine, besides its single values: the URL,
/// and what does not go with it.
std::vector<std::string> check_redis(const Config::Redis& said);

/// What it says. Reads the file with the password. REQUIRES: check_redis() found nothing.
Result<RedisStorageOptions> redis_storage_options(const Config::Redis& said);

/// Whether the problem is one of user, password or rights, which no waiting mends.
bool is_login_problem(std::string_view problem);

/// Whether it is an earlier version of Redis than is needed; no waiting mends that either.
bool is_version_problem(std::string_view problem);

/// What an operator may do about a Redis that cannot be used, as the end of a sentence; empty when the
/// problem says it all. `problem` is Redis's own text or the client's.
std::string advice_on(std::string_view problem, const RedisStorageOptions& options);

/// The same of any Redis that is named by a URL, whatever it is used for.
std::string advice_on_reaching(std::string_view problem, net::redis::Mode mode, const RedisNames& names);

/// Connects, and waits at most `start_wait` for a Redis that is not there yet. Fails with what an operator
/// can do about it: nobody answers, the password is wrong, the Redis is too old, the deployment was made with
/// another number of shards. Who only looks needs no right to write.
Result<std::unique_ptr<Storage>> open_redis_storage(const StorageOptions& options, net::Loop& loop);

}  // namespace delayq
