#include "tests/contract/engines.h"

#include <array>
#include <stdexcept>

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

/// On a disk in memory, with segments so small that every test of some length rotates and cleans them, and
/// with half of the reads taking the slow way.
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

constexpr std::array kEngines{
    EngineEntry{
        .name = "memory",
        .durable = false,
        .make = []() -> std::unique_ptr<EngineUnderTest> { return std::make_unique<MemoryUnderTest>(); }},
    EngineEntry{
        .name = "journal",
        .durable = true,
        .makes_backups = true,
        .make = []() -> std::unique_ptr<EngineUnderTest> { return std::make_unique<JournalUnderTest>(); }},
    EngineEntry{.name = "redis",
                .durable = true,
                .lists_delayed_in_order = false,
                .verbs_tick = false,
                .model_seeds = 12,
                .make = make_redis},
};

}  // namespace

std::span<const EngineEntry> engines() { return kEngines; }

}  // namespace delayq::contract
