#pragma once

#include <cstddef>

namespace delayq::net {

/// Memory for answers: those that wait to be read by their clients, and those that requests in progress may
/// still bring, at their largest.
struct AnswerLimits {
  size_t connection = size_t{32} << 20;  ///< of one connection
  size_t all = size_t{512} << 20;        ///< of all connections together
};

/// Counts what the connections of a loop hold. A connection that is at a limit executes no further request
/// until its client has read, so each limit is exceeded by one answer at most.
class AnswerBudget {
 public:
  explicit AnswerBudget(AnswerLimits limits = {}) : limits_(limits) {}

  /// What one connection holds. Gives it back when it goes.
  class [[nodiscard]] Share {
   public:
    explicit Share(AnswerBudget& budget) : budget_(budget) {}
    ~Share() { set(0); }
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

    void set(size_t bytes) {
      budget_.held_ += bytes;
      budget_.held_ -= held_;
      held_ = bytes;
    }
    size_t held() const { return held_; }
    /// Whether a connection that holds `bytes` now may execute another request.
    bool has_room(size_t bytes) const { return bytes < budget_.limits_.connection && !is_crowded_out(bytes); }
    /// Whether the others hold so much that it may not.
    bool is_crowded_out(size_t bytes) const { return budget_.held_ - held_ + bytes >= budget_.limits_.all; }

   private:
    AnswerBudget& budget_;
    size_t held_ = 0;
  };

  void set_limits(AnswerLimits limits) { limits_ = limits; }
  size_t held() const { return held_; }
  bool is_full() const { return held_ >= limits_.all; }

 private:
  AnswerLimits limits_;
  size_t held_ = 0;
};

}  // namespace delayq::net
