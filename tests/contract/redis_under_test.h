#pragma once

#include <memory>

#include "tests/contract/engines.h"

namespace delayq::contract {

/// The redis engine over a real client, on a redis-server that all tests of the binary share: each has a
/// prefix of its own. Its jobs outlive it, so to close it and to lose power come to the same here.
std::unique_ptr<EngineUnderTest> make_redis();
/// The same with its jobs spread over several shards, as on a cluster.
std::unique_ptr<EngineUnderTest> make_redis_shards();
/// On a master that three sentinels watch, with two replicas.
std::unique_ptr<EngineUnderTest> make_redis_sentinel();
/// On a cluster of three masters with a replica each, in one shard and so on one master: all orders are
/// strict.
std::unique_ptr<EngineUnderTest> make_redis_cluster();
/// The same in as many shards as a cluster has by default.
std::unique_ptr<EngineUnderTest> make_redis_cluster_shards();

}  // namespace delayq::contract
