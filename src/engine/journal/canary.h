#pragma once

#include <cstdint>

namespace delayq::journal {

/// A bug planted on purpose, to prove that the simulator would find it. Never set outside of tests.
enum class Canary : uint8_t {
  kNone,
  kLostCancel,      ///< a cancel is answered but not written
  kEarlyWheelSlot,  ///< jobs wait in a slot a little before their time
  kForgottenLease,  ///< a lease's deadline is not watched
  kWrongCrc,        ///< checksums are not compared when reading back
  kEarlyRemoval,    ///< cleaning removes a segment before its survivors are durable
  kUncheckedFiles,  ///< segments are not compared with the manifest
};

}  // namespace delayq::journal
