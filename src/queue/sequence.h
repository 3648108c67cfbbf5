#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace delayq {

/// The verbs of one client, which take effect in the order of their calls.
///
/// Most verbs take effect in the call. Some need several steps (a purge, a nack, a pop of several topics):
/// they ask the engine, and continue when it has answered. While such a verb runs, is_busy() is true and the
/// client's next verb must not be called, or it would take effect between two steps. Other clients are not
/// affected: their verbs are concurrent, so either order is correct.
///
/// Shared by the client and its running verbs.
class Sequence {
 public:
  /// `on_idle` is called when is_busy() becomes false, usually from Queue::poll().
  explicit Sequence(std::function<void()> on_idle) : on_idle_(std::move(on_idle)) {}

  bool is_busy() const { return busy_ > 0; }
  /// The client has disconnected: `on_idle` will not be called any more.
  void abandon() { on_idle_ = nullptr; }

 private:
  friend class Steps;

  void end() {
    if (--busy_ == 0 && on_idle_) on_idle_();
  }

  uint32_t busy_ = 0;  ///< running verbs of several steps
  std::function<void()> on_idle_;
};

/// Exists as long as its queue. An engine that is destroyed after the queue drops the running verbs, and
/// their sequences must not be notified then.
using QueueAlive = std::shared_ptr<const char>;

/// Held by a verb of several steps from its call until its last step has taken effect. Makes its sequence
/// busy; does nothing for verbs without a sequence.
class [[nodiscard]] Steps {
 public:
  Steps() = default;
  Steps(std::shared_ptr<Sequence> sequence, const QueueAlive& alive) : sequence_(std::move(sequence)) {
    if (sequence_ == nullptr) return;
    ++sequence_->busy_;
    alive_ = alive;
  }
  Steps(Steps&& other) noexcept
      : sequence_(std::exchange(other.sequence_, nullptr)), alive_(std::move(other.alive_)) {}
  Steps& operator=(Steps&& other) noexcept {
    end();
    sequence_ = std::exchange(other.sequence_, nullptr);
    alive_ = std::move(other.alive_);
    return *this;
  }
  Steps(const Steps&) = delete;
  Steps& operator=(const Steps&) = delete;
  ~Steps() { end(); }

  void end() {
    const std::shared_ptr<Sequence> ended = std::exchange(sequence_, nullptr);
    if (ended != nullptr && !alive_.expired()) ended->end();
  }

 private:
  std::shared_ptr<Sequence> sequence_;
  std::weak_ptr<const char> alive_;
};

}  // namespace delayq
