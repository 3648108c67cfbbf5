#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

namespace delayq {

/// Which item of a batch an answer belongs to when the invalid ones among them were left out. Costs nothing
/// as long as all are valid.
class Places {
 public:
  /// Call one of these for every item of the batch, in order.
  void keep() {
    if (!all_kept_) kept_.push_back(items_);
    ++items_;
  }
  void leave_out() {
    if (all_kept_) {
      all_kept_ = false;
      kept_.resize(items_);
      std::iota(kept_.begin(), kept_.end(), 0U);
    }
    ++items_;
  }

  /// The item to which the answer number `answer` belongs.
  uint32_t operator[](size_t answer) const {
    return all_kept_ ? static_cast<uint32_t>(answer) : kept_[answer];
  }

 private:
  bool all_kept_ = true;
  uint32_t items_ = 0;
  std::vector<uint32_t> kept_;
};

}  // namespace delayq
