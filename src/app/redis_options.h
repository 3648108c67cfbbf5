#pragma once

#include <string>
#include <vector>

#include "app/storage.h"
#include "core/result.h"
#include "ops/config.h"

namespace delayq {

/// What is wrong with what the configuration says of the redis engine, besides its single values: the URL,
/// and what does not go with it.
std::vector<std::string> check_redis(const Config::Redis& said);

/// What it says. Reads the file with the password. REQUIRES: check_redis() found nothing.
Result<RedisStorageOptions> redis_storage_options(const Config::Redis& said);

}  // namespace delayq
