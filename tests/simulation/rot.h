#pragma once

#include "core/random.h"
#include "tests/simulation/world.h"

namespace delayq::simulation {

/// Bits that turn over at rest, and files that are not where they were. The server may refuse to start,
/// saying where the damage is, or say of a job that it cannot be read; it may not be wrong about any job.
class Rot {
 public:
  Rot(World& world, Random& random) : world_(world), random_(random) {}

  /// While the server is closed after a good end. Answers whether it is open now; when not, the bit is back.
  bool strike_closed();
  /// The same, with a file that is gone, or another one in its place: the server never starts, and says
  /// which.
  void misplace_closed();
  /// While it runs: every job is looked up, with the damage in place. REQUIRES: the world has settled.
  void strike_running();

 private:
  void check_refusal(const support::VirtualDisk::Damage& damage, const Error& error);
  /// Repairs a copy of the directory: it must open, and most of it must be there.
  void try_repair(const support::VirtualDisk::Damage& damage);
  void check_misplaced(const support::VirtualDisk::Mishap& mishap);

  World& world_;
  Random& random_;
};

}  // namespace delayq::simulation
