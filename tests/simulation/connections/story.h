#pragma once

#include <cstdint>
#include <string>

namespace delayq::connections {

/// Bugs planted on purpose, around the sessions and never in the server itself.
enum class Canary : uint8_t {
  kNone,
  kOverflow,   ///< the room for input goes below zero
  kTlsSpin,    ///< a stream that waits for input says that it waits for room
  kUnbounded,  ///< answers have no budget
  kDisorder,   ///< an answer leaves behind the next one
  kOpenDoor,   ///< tokens are not asked for
};

struct Outcome {
  std::string failure;  ///< empty: all was as it should be
  uint64_t clients = 0;
  uint64_t requests = 0;
  uint64_t answers = 0;
  uint64_t served = 0;  ///< clients that were answered to the end
  uint64_t events = 0;

  void add(const Outcome& other);
};

/// Runs one seed from beginning to end: clients of both protocols, with and without TLS, that come, talk,
/// stop reading, hang up and time out at any moment. The same seed does exactly the same every time.
///
/// What must hold: no event keeps the loop busy without moving anything; each connection and all together
/// stay within the budget of AnswerLimits; answers come in the order of their requests, each once; a client
/// that behaves well gets them all; nothing is done for one without a token.
Outcome simulate(uint64_t seed, Canary canary, bool tracing);

}  // namespace delayq::connections
