#pragma once

#include "engine/memory/memory_engine.h"
#include "queue/queue.h"

namespace delayq {

/// A started queue over the memory engine. Its clock changes only when the test moves it.
class MemoryQueue {
 public:
  static constexpr Moment kStart = from_unix_ms(1'700'000'000'000);  // 2023-11-14T22:13:20Z

  MemoryQueue() {
    queue.start(now, [](const Status&) {});
    settle();
  }

  /// Ticks and polls until nothing happens any more.
  void settle() {
    do {
      queue.tick(now);
    } while (queue.poll(now));
  }
  void pass(Millis time) {
    now += time;
    settle();
  }

  Moment now = kStart;
  MemoryEngine engine;
  Queue queue{engine, QueueConfig{}, 1};
};

}  // namespace delayq
