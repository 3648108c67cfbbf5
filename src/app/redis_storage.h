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

/// The errors in the configuration of the redis engine, besides those of single values: the URL, and settings
/// that conflict with it.
std::vector<std::string> check_redis(const Config::Redis& said);

/// Returns that configuration. Reads the file with the password. REQUIRES: check_redis() found nothing.
Result<RedisStorageOptions> redis_storage_options(const Config::Redis& said);

/// Whether the problem is the user, the password or permissions; waiting does not help.
bool is_login_problem(std::string_view problem);

/// Whether the version of Redis is too old; waiting does not help either.
bool is_version_problem(std::string_view problem);

/// What an operator can do about a Redis that cannot be used, as the end of a sentence; empty if `problem`,
/// the text of Redis or of the client, is clear enough.
std::string advice_on(std::string_view problem, const RedisStorageOptions& options);

/// The same for any Redis that is named by a URL.
std::string advice_on_reaching(std::string_view problem, net::redis::Mode mode, const RedisNames& names);

/// Connects, and waits at most `start_wait` for a Redis that is not there yet. Fails with what an operator
/// can do about it: there is no answer, the password is wrong, the Redis is too old, the deployment has
/// another number of shards. With `only_looks` no permission to write is needed.
Result<std::unique_ptr<Storage>> open_redis_storage(const StorageOptions& options, net::Loop& loop);

}  // namespace delayq
