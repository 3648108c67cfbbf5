#pragma once

#include <memory>

#include "tests/contract/engines.h"

namespace delayq::contract {

/// The redis engine with a real client, on a redis-server that all tests of the binary share: each test has
/// its own prefix. The jobs outlive the engine, so closing it and losing power are the same here.
std::unique_ptr<EngineUnderTest> make_redis();
/// The same with jobs in several shards, as on a cluster.
std::unique_ptr<EngineUnderTest> make_redis_shards();
/// The same with a cold store in memory, which has the steps of the kafka engine and its horizon.
std::unique_ptr<EngineUnderTest> make_kafka();
/// With a horizon of 0 and a first step of a millisecond: the body of every delayed job is in the cold store.
std::unique_ptr<EngineUnderTest> make_kafka_without_horizon();
/// Both over a real broker.
std::unique_ptr<EngineUnderTest> make_kafka_broker();
std::unique_ptr<EngineUnderTest> make_kafka_broker_without_horizon();
/// With a master, two replicas and three sentinels.
std::unique_ptr<EngineUnderTest> make_redis_sentinel();
/// On a cluster of three masters with a replica each, in one shard and so on one master:
/// all orders are strict.
std::unique_ptr<EngineUnderTest> make_redis_cluster();
/// The same with the default number of shards of a cluster.
std::unique_ptr<EngineUnderTest> make_redis_cluster_shards();

}  // namespace delayq::contract
