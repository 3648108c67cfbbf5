#include "net/loop.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <boost/asio/post.hpp>

namespace delayq::net {

namespace {

/// The wall clock may be set while we sleep. Waking once a second bounds what that can delay.
constexpr std::chrono::seconds kLongestSleep{1};
/// A turn ends after this many sessions had input, even if more have some: their commands are then being
/// written to the disk while the rest is read.
constexpr int kHandlersPerTurn = 32;

}  // namespace

Loop::Loop() : context_(1), timer_(context_) {}

Loop::~Loop() { sessions_.clear(); }  // before the context that their sockets belong to

Moment Loop::now() { return std::chrono::floor<Millis>(std::chrono::system_clock::now()); }

Loop::Steady Loop::steady_now() { return std::chrono::steady_clock::now(); }

Loop::Clocks Loop::clocks() {
  // A thread that loses its processor between two readings tries again.
  constexpr int kMostTries = 5;
  constexpr std::chrono::microseconds kClose{20};
  Clocks best{};
  Steady::duration closest = Steady::duration::max();
  for (int i = 0; i < kMostTries && closest > kClose; ++i) {
    const Steady before = steady_now();
    const auto wall = std::chrono::system_clock::now().time_since_epoch();
    const Steady::duration apart = steady_now() - before;
    if (apart >= closest) continue;
    closest = apart;
    best = {std::chrono::floor<std::chrono::microseconds>(wall), before + apart / 2};
  }
  return best;
}

void Loop::wait_until(Moment deadline) {
  const auto now = std::chrono::system_clock::now();
  const auto about = std::chrono::floor<Millis>(now);
  // A moment centuries away cannot be counted in nanoseconds, so it is brought near before.
  const auto left = std::clamp<Moment>(deadline, about, about + 2 * kLongestSleep) - now;
  if (deadline == kNever) {
    if (timer_set_for_ != kNever) timer_.cancel();
  } else if (deadline != timer_set_for_ || left <= std::chrono::nanoseconds::zero()) {
    timer_.expires_after(std::min<std::chrono::nanoseconds>(left, kLongestSleep));
    timer_.async_wait([this](const boost::system::error_code& problem) {
      if (!problem) timer_set_for_ = kNever;
    });
  }
  timer_set_for_ = deadline;
  context_.restart();
  context_.run_one();
  int handled = 1;
  while (handled < kHandlersPerTurn && context_.poll_one() != 0) ++handled;
}

void Loop::wake() {
  if (is_woken_.exchange(true, std::memory_order_acq_rel)) return;
  boost::asio::post(context_, [this] { is_woken_.store(false, std::memory_order_release); });
}

Signals::Signals(Loop& loop, std::initializer_list<int> numbers, std::function<void(int)> tell)
    : set_(loop.context()), tell_(std::move(tell)) {
  for (const int number : numbers) set_.add(number);
  wait();
}

void Signals::wait() {
  set_.async_wait([this](const boost::system::error_code& problem, int number) {
    if (problem) return;
    tell_(number);
    wait();
  });
}

}  // namespace delayq::net
