#pragma once

#include <array>
#include <string_view>

#include "tests/simulation/connections/story.h"
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
    NamedCanary{"unwritten-turn",
                "a schedule's job is pushed, and that the schedule moved on is not written",
                {journal::Canary::kUnwrittenTurn, false}},
    NamedCanary{"split-turn",
                "a schedule and its job are written one after the other, not as one",
                {journal::Canary::kSplitTurn, false}},
};

/// The same around connections.
struct NamedConnectionCanary {
  std::string_view name;
  std::string_view what;
  connections::Canary canary;
};

inline constexpr std::array kConnectionCanaries{
    NamedConnectionCanary{"input-overflow", "the room for waiting input goes below zero",
                          connections::Canary::kOverflow},
    NamedConnectionCanary{"tls-spin", "a handshake that waits for input is waited for as if it needed room",
                          connections::Canary::kTlsSpin},
    NamedConnectionCanary{"unbounded-answers", "answers have no budget", connections::Canary::kUnbounded},
    NamedConnectionCanary{"answer-disorder", "an answer leaves behind the next one",
                          connections::Canary::kDisorder},
    NamedConnectionCanary{"open-door", "tokens are not asked for", connections::Canary::kOpenDoor},
};

}  // namespace delayq::simulation
