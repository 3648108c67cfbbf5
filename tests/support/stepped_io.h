#pragma once

#include <array>
#include <chrono>
#include <deque>
#include <functional>
#include <vector>

#include "engine/journal/disk.h"

namespace delayq::support {

/// An Io whose lanes move only when they are told to: the caller decides, step by step, how far the disk
/// has come. No threads, so everything happens in an order that a seed can repeat.
class SteppedIo final : public journal::Io {
 public:
  void run(journal::Lane lane, Step work, Step done) override;
  bool poll() override;
  /// Steps all lanes, the write lane first, until nothing is left.
  void drain() override;
  void set_wakeup(std::function<void()> wakeup) override { wakeup_ = std::move(wakeup); }
  /// Stands still but for what `pass` says.
  std::chrono::microseconds clock() const override { return clock_; }

  /// From now on every look at the clock finds it this much later.
  void pass(std::chrono::microseconds time) { clock_ += time; }

  /// Does the next work of the lane; poll() will run its `done`. False: there is none.
  bool step(journal::Lane lane);
  size_t waiting(journal::Lane lane) const { return lanes_[static_cast<size_t>(lane)].size(); }
  bool idle() const;
  /// Forgets all work and all that is done, as when the process dies.
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
