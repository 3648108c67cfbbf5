#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>

#include <absl/functional/any_invocable.h>

namespace delayq::journal {

/// Where blocking file operations run. The engine itself never waits: it hands work to a lane and goes on.
///
/// Work of one lane runs one after the other, in the order given; the lanes run side by side.
enum class Lane : uint8_t {
  kWrite,  ///< commits, new segments, removals
  kRead,   ///< bodies that are not in memory, segments being cleaned
  kCopy,   ///< backups: long, and nobody waits for them
};
inline constexpr size_t kLaneCount = 3;

class Io {
 public:
  using Step = absl::AnyInvocable<void()>;

  virtual ~Io() = default;

  /// Runs `work` on the lane's thread, then lets poll() run `done` on the engine's thread.
  virtual void run(Lane lane, Step work, Step done) = 0;
  /// Runs what is done. Answers whether there was anything. Called from the engine's thread.
  virtual bool poll() = 0;
  /// Waits until all work given so far is finished and its `done` has run. For closing.
  virtual void drain() = 0;
  /// `wakeup` is called from a lane's thread whenever something was added for poll().
  virtual void set_wakeup(std::function<void()> wakeup) = 0;
  /// How long something took is the difference of two of these. For figures only; stands still where there is
  /// no clock. Called from any thread.
  virtual std::chrono::microseconds clock() const { return {}; }
};

}  // namespace delayq::journal
