#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>

namespace delayq::api {

/// Replies leave in the order of their commands, whenever they are known. A place is reserved when a command
/// is taken; what fills the first place goes straight to the output, the rest waits for those before it.
class Replies {
 public:
  using Place = uint64_t;

  Place reserve() {
    waiting_.emplace_back();
    return first_ + waiting_.size() - 1;
  }

  /// `fill(std::string&)` appends the reply's bytes. REQUIRES: the place is reserved and not yet filled.
  template <class Fill>
  void fill(Place place, Fill&& fill) {
    if (place != first_) {
      std::optional<std::string>& later = waiting_[place - first_];
      fill(later.emplace());
      return;
    }
    fill(output_);
    pop();
    while (!waiting_.empty() && waiting_.front()) {
      output_ += *waiting_.front();
      pop();
    }
  }

  /// The one that reserve() answers next.
  Place next_place() const { return first_ + waiting_.size(); }
  /// Places that are not filled yet, or wait for one before them.
  size_t waiting() const { return waiting_.size(); }
  std::string& output() { return output_; }
  const std::string& output() const { return output_; }

 private:
  void pop() {
    waiting_.pop_front();
    ++first_;
  }

  std::deque<std::optional<std::string>> waiting_;
  Place first_ = 0;
  std::string output_;
};

}  // namespace delayq::api
