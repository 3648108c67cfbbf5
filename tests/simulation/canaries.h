#pragma once

#include <array>
#include <string_view>

#include "tests/simulation/simulation.h"

namespace delayq::simulation {

/// The bugs that can be planted to prove that the simulator would find them.
struct NamedCanary {
  std::string_view name;
  std::string_view what;
  Planted planted;
};

inline constexpr std::array kCanaries{
    NamedCanary{"skipped-fsync", "syncs are answered and not done", {journal::Canary::kNone, true}},
    NamedCanary{"lost-cancel", "a cancel is answered and not written", {journal::Canary::kLostCancel, false}},
    NamedCanary{"early-wheel-slot",
                "jobs wait a little before their time",
                {journal::Canary::kEarlyWheelSlot, false}},
    NamedCanary{
        "forgotten-lease", "a lease's deadline is not watched", {journal::Canary::kForgottenLease, false}},
    NamedCanary{"wrong-crc", "checksums are not compared", {journal::Canary::kWrongCrc, false}},
    NamedCanary{"early-segment-removal",
                "cleaning removes a segment before its survivors are durable",
                {journal::Canary::kEarlyRemoval, false}},
    NamedCanary{"unchecked-files",
                "segments are not compared with the manifest",
                {journal::Canary::kUncheckedFiles, false}},
};

}  // namespace delayq::simulation
