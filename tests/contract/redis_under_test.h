#pragma once

#include <memory>

#include "tests/contract/engines.h"
#include "tests/support/redis_process.h"

namespace delayq::contract {

/// The redis-server that all tests of the binary share; each has a prefix of its own.
support::RedisProcess& shared_redis();

/// The redis engine over a real client. Its jobs outlive it, so to close it and to lose power come to the
/// same here.
std::unique_ptr<EngineUnderTest> make_redis();

}  // namespace delayq::contract
