#pragma once

#include <cstdint>

#include "core/random.h"
#include "tests/simulation/world.h"

namespace delayq::simulation {

/// What goes wrong around the server, and when.
class Faults {
 public:
  Faults(World& world, Random& random) : world_(world), random_(random) {}

  /// Before the server is opened: it may be interrupted or refused even then.
  void before_opening();
  /// Chooses what this life has to suffer.
  void begin_life();
  /// Between two actions: troubles begin and end.
  void pass();
  /// How a life ends that nothing else has ended.
  End choose_end();
  /// Whether the power goes, too, when the machine has stopped answering.
  End end_of_stopped() { return random_.chance(2, 3) ? End::kPowerCut : End::kKill; }

 private:
  enum class Trouble : uint8_t { kNone, kStop, kFailedOperation, kFullDisk, kUnreadable };

  void begin(Trouble trouble);
  void end_episode();

  World& world_;
  Random& random_;
  Trouble trouble_ = Trouble::kNone;
  uint64_t begins_in_ = 0;  // actions
  uint64_t ends_in_ = 0;    // actions; 0: no episode is on
};

}  // namespace delayq::simulation
