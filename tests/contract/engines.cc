#include "tests/contract/engines.h"

#include <cstdlib>
#include <stdexcept>
#include <vector>

#include "engine/journal/journal_engine.h"
#include "engine/memory/memory_engine.h"
#include "tests/contract/redis_under_test.h"
#include "tests/support/job_spec.h"
#include "tests/support/stepped_io.h"
#include "tests/support/virtual_disk.h"
#include "tests/support/virtual_shelf.h"

namespace delayq::contract {

namespace {

class MemoryUnderTest final : public EngineUnderTest {
 public:
  Engine& engine() override { return engine_; }

 private:
  MemoryEngine engine_;
};

/// On a disk in memory, with segments so small that every longer test rotates and compacts them, and with
/// half of the reads going through the read lane.
class JournalUnderTest final : public EngineUnderTest {
 public:
  JournalUnderTest() {
    disk_.set_cache_misses(128);
    open();
  }
  Engine& engine() override { return *engine_; }
  bool pump() override {
    const bool has_read = io_.step(journal::Lane::kRead);
    const bool has_written = io_.step(journal::Lane::kWrite);
    const bool has_copied = io_.step(journal::Lane::kCopy);
    return has_read || has_written || has_copied;
  }
  void reopen() override {
    engine_.reset();
    open();
  }
  void lose_power() override {
    disk_.stop();
    engine_.reset();
    io_.abandon();
    disk_.power_cut();
    open();
  }

 private:
  void open() {
    journal::JournalOptions options;
    options.segment_bytes = 64 << 10;
    options.disk_reserve = 0;
    options.backups = &shelf_;
    auto opened = journal::JournalEngine::open(disk_, io_, options, support::kStart);
    if (!opened.ok()) throw std::runtime_error(to_string(opened.error()));
    engine_ = std::move(*opened);
  }

  support::VirtualShelf shelf_{1};
  support::VirtualDisk disk_{1};
  support::SteppedIo io_;
  std::unique_ptr<journal::JournalEngine> engine_;
};

constexpr EngineEntry kMemory{
    .name = "memory", .durable = false, .make = []() -> std::unique_ptr<EngineUnderTest> {
      return std::make_unique<MemoryUnderTest>();
    }};

constexpr EngineEntry kJournal{
    .name = "journal",
    .durable = true,
    .makes_backups = true,
    .make = []() -> std::unique_ptr<EngineUnderTest> { return std::make_unique<JournalUnderTest>(); }};

constexpr EngineEntry redis_as(std::string_view name, std::unique_ptr<EngineUnderTest> (*make)()) {
  return {.name = name,
          .durable = true,
          .lists_delayed_in_order = false,
          .verbs_tick = false,
          .model_seeds = 12,
          .make = make};
}

/// The kafka engine: the redis engine with a cold store.
EngineEntry kafka_as(std::string_view name, std::unique_ptr<EngineUnderTest> (*make)()) {
  EngineEntry entry = redis_as(name, make);
  entry.ticks_first = true;
  entry.model_seeds = 6;
  return entry;
}

EngineEntry without_horizon(EngineEntry entry) {
  entry.cools_all = true;
  return entry;
}

EngineEntry kafka_broker_as(std::string_view name, std::unique_ptr<EngineUnderTest> (*make)()) {
  EngineEntry entry = kafka_as(name, make);
  entry.is_slow = true;
  return entry;
}

std::vector<EngineEntry> make_list() {
  std::vector<EngineEntry> all{kMemory, kJournal, redis_as("redis", make_redis),
                               kafka_as("kafka", make_kafka),
                               without_horizon(kafka_as("kafka_horizon_0", make_kafka_without_horizon))};
  if (std::getenv("DELAYQ_BROKER") != nullptr) {
    all.push_back(kafka_broker_as("kafka_broker", make_kafka_broker));
    all.push_back(
        without_horizon(kafka_broker_as("kafka_broker_horizon_0", make_kafka_broker_without_horizon)));
  }
  if (has_topologies()) {
    all.push_back(redis_as("redis_sentinel", make_redis_sentinel));
    all.push_back(redis_as("redis_cluster", make_redis_cluster));
  }
  return all;
}

}  // namespace

bool has_topologies() { return std::getenv("DELAYQ_TOPOLOGIES") != nullptr; }

std::vector<EngineEntry> engines_with_shards() {
  std::vector<EngineEntry> all{redis_as("redis_shards", make_redis_shards)};
  if (has_topologies()) all.push_back(redis_as("redis_cluster_shards", make_redis_cluster_shards));
  return all;
}

std::span<const EngineEntry> engines() {
  static const std::vector<EngineEntry> kAll = make_list();
  return kAll;
}

}  // namespace delayq::contract
