#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "engine/engine.h"

namespace delayq::contract {

/// One fresh engine with whatever it stands on.
class EngineUnderTest {
 public:
  virtual ~EngineUnderTest() = default;

  virtual Engine& engine() = 0;
  /// Lets happen what goes on behind the engine's back: a disk, a network. Answers whether there was
  /// anything.
  virtual bool pump() { return false; }
  /// Closes the engine in order and opens it again. engine() is another one afterwards.
  /// REQUIRES: its entry is durable.
  virtual void reopen() {}
  /// The machine loses power in the middle of whatever goes on, comes back, and the engine is opened again.
  /// REQUIRES: as reopen().
  virtual void lose_power() {}
};

struct EngineEntry {
  std::string_view name;  ///< that of its folder under src/engine
  bool durable;           ///< its jobs outlive it: reopen() finds them
  /// Makes the stronger of the two promises of JobPage.
  bool lists_delayed_in_order = true;
  /// Every verb does all that a tick would do. Else a verb only sees what is due: what is cancelled before a
  /// tick never was ready, and a clock that is set back without one leaves no trace.
  bool verbs_tick = true;
  /// How many seeds it plays against the model: fewer where a step takes longer.
  uint32_t model_seeds = 60;
  bool makes_backups = false;  ///< what it stands on has no means of its own
  std::unique_ptr<EngineUnderTest> (*make)();
};

/// Every engine there is. A test compares this list with the folders under src/engine. With DELAYQ_TOPOLOGIES
/// in the environment, the redis engine under Sentinel and on a cluster too: these take seconds to start, so
/// that ctest runs the whole suite over each of them in one process.
std::span<const EngineEntry> engines();
bool has_topologies();
/// The redis engine with several shards, for suites that do not ask for an order over all of them.
std::vector<EngineEntry> engines_with_shards();

}  // namespace delayq::contract
