#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "delivery/webhook/call.h"

namespace delayq::webhook {

struct NumberedCall {
  uint32_t number = 0;
  Call call;
  std::optional<std::chrono::microseconds> begin_by{};  ///< by the caller's clock; later it is not begun
};

struct NumberedResult {
  uint32_t number = 0;
  CallResult result;
};

/// Where two threads lay down calls and their results for each other: whole batches, under one lock, and with
/// one wake-up for all that the other has not seen yet.
class Exchange {
 public:
  /// Called outside of the lock, each by the other thread. Set before that one starts.
  std::function<void()> wake_worker;
  std::function<void()> wake_owner;

  // ---- The owner of the calls ---------------------------------------------------------------------------

  /// Lays down `calls`, which is empty afterwards.
  void give(std::vector<NumberedCall>& calls) {
    bool is_first = false;
    {
      const std::lock_guard lock(mutex_);
      is_first = calls_.empty();
      move_all(calls, calls_);
    }
    if (is_first) wake_worker();
  }

  /// Adds all results to `results`.
  void take(std::vector<NumberedResult>& results) {
    if (!has_results_.load(std::memory_order_acquire)) return;
    const std::lock_guard lock(mutex_);
    move_all(results_, results);
    has_results_.store(false, std::memory_order_relaxed);
  }

  // ---- The worker ---------------------------------------------------------------------------------------

  /// All calls that were laid down, into `calls`, which must be empty.
  void take(std::vector<NumberedCall>& calls) {
    const std::lock_guard lock(mutex_);
    calls.swap(calls_);
  }

  /// Lays down `results`, which is empty afterwards.
  void put(std::vector<NumberedResult>& results) {
    if (results.empty()) return;
    bool is_first = false;
    {
      const std::lock_guard lock(mutex_);
      is_first = results_.empty();
      move_all(results, results_);
      has_results_.store(true, std::memory_order_release);
    }
    if (is_first && wake_owner) wake_owner();
  }

 private:
  template <class T>
  static void move_all(std::vector<T>& from, std::vector<T>& to) {
    if (to.empty()) {
      to.swap(from);
      return;
    }
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
    from.clear();
  }

  std::mutex mutex_;
  std::vector<NumberedCall> calls_;
  std::vector<NumberedResult> results_;
  std::atomic<bool> has_results_ = false;
};

}  // namespace delayq::webhook
