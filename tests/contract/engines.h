#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "engine/engine.h"

namespace delayq::contract {

/// One new engine with everything that it needs.
class EngineUnderTest {
 public:
  virtual ~EngineUnderTest() = default;

  virtual Engine& engine() = 0;
  /// Runs the background work below the engine: a disk, a network. Returns whether there was any.
  virtual bool pump() { return false; }
  /// Closes the engine cleanly and opens it again. engine() returns a new object afterwards.
  /// REQUIRES: its entry is durable.
  virtual void reopen() {}
  /// Simulates a power loss in the middle of all work, and opens the engine again.
  /// REQUIRES: as reopen().
  virtual void lose_power() {}
};

struct EngineEntry {
  std::string_view name;  ///< name of its folder under src/engine
  bool durable;           ///< reopen() finds its jobs again
  /// It makes the stronger of the two promises of JobPage.
  bool lists_delayed_in_order = true;
  /// Every verb does everything that a tick would do. Otherwise a verb only sees what is due: a job that is
  /// cancelled before a tick never was ready, and a clock that is set back without a tick has no effect.
  bool verbs_tick = true;
  /// A verb sees that a job is due only after a tick and all that follows from it: the body of the job may
  /// have to be fetched first. The drivers then tick before every verb.
  bool ticks_first = false;
  /// The kafka engine without a horizon: the body of every delayed job is in the cold store, also if the job
  /// is due in a millisecond. With a horizon bodies are back before their jobs are due.
  bool cools_all = false;
  /// A step takes milliseconds: tests that do a thing thousands of times do it less often (see few()).
  bool is_slow = false;
  /// How many seeds are compared with the model: fewer where a step takes longer.
  uint32_t model_seeds = 60;
  bool makes_backups = false;  ///< it makes backups itself, because the storage below it cannot
  std::unique_ptr<EngineUnderTest> (*make)();
};

/// All engines. A test compares this list with the folders under src/engine. With DELAYQ_TOPOLOGIES in the
/// environment, the list also has the redis engine under Sentinel and on a cluster. These take seconds to
/// start, so ctest runs the whole suite over each of them in one process.
std::span<const EngineEntry> engines();
bool has_topologies();
/// The redis engine with several shards, for suites that do not ask for an order over all of them.
std::vector<EngineEntry> engines_with_shards();

}  // namespace delayq::contract
