#include "tests/simulation/connections/story.h"

#include "tests/simulation/connections/world.h"

namespace delayq::connections {

void Outcome::add(const Outcome& other) {
  clients += other.clients;
  requests += other.requests;
  answers += other.answers;
  served += other.served;
  events += other.events;
}

Outcome simulate(uint64_t seed, Canary canary, bool tracing) {
  World world(seed, canary, tracing);
  Random& random = world.random();
  std::string failure;
  try {
    for (uint64_t steps = random.between(50, 600); steps > 0; --steps) {
      if (random.chance(1, 25)) world.accept();
      for (uint64_t acts = random.between(0, 3); acts > 0; --acts) world.act();
      world.turn();
      if (random.chance(1, 120)) world.pass(Millis(random.between(1, 20'000)));
      if (random.chance(1, 4)) world.pass(Millis(random.between(1, 20)));
    }
    world.settle();
    world.check_end();
  } catch (const Broken& broken) {
    failure = broken.what();
  }
  Outcome outcome = world.outcome();
  outcome.failure = std::move(failure);
  return outcome;
}

}  // namespace delayq::connections
