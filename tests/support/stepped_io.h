#pragma once

#include <array>
#include <chrono>
#include <deque>
#include <functional>
#include <vector>

#include "engine/journal/disk.h"

namespace delayq::support {

/// An Io whose lanes run only step by step: the caller decides how far the disk has come. There are no
/// threads, so a seed repeats everything in the same order.
class SteppedIo final : public journal::Io {
 public:
  void run(journal::Lane lane, Step work, Step done) override;
  bool poll() override;
  /// Steps all lanes, the write lane first, until nothing is left.
  void drain() override;
  void set_wakeup(std::function<void()> wakeup) override { wakeup_ = std::move(wakeup); }
  /// Changes only by pass().
  std::chrono::microseconds clock() const override { return clock_; }

  /// Moves the clock forward.
  void pass(std::chrono::microseconds time) { clock_ += time; }

  /// Runs the next work of the lane; poll() will run its `done`. Returns false if there is none.
  bool step(journal::Lane lane);
  size_t waiting(journal::Lane lane) const { return lanes_[static_cast<size_t>(lane)].size(); }
  bool idle() const;
  /// Drops all work and all `done` steps, as when the process dies.
  void abandon();

 private:
  struct Item {
    Step work;
    Step done;
  };

  std::array<std::deque<Item>, journal::kLaneCount> lanes_;
  std::vector<Step> finished_;
  std::function<void()> wakeup_;
  std::chrono::microseconds clock_{};
};

}  // namespace delayq::support
