#pragma once

#include <functional>
#include <memory>
#include <utility>

#include <boost/asio/steady_timer.hpp>

#include "net/loop.h"

namespace delayq::net::redis {

/// Calls back once, at a moment, unless it was set anew or is gone by then: also when the call is already on
/// its way.
class Timer {
 public:
  explicit Timer(Loop& loop) : timer_(loop.context()) {}
  ~Timer() { cancel(); }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  void set(Loop::Steady at, std::function<void()> then) {
    cancel();
    is_set_ = std::make_shared<bool>(true);
    at_ = at;
    timer_.expires_at(at);
    timer_.async_wait([is_set = is_set_, then = std::move(then)](const boost::system::error_code& problem) {
      if (problem || !std::exchange(*is_set, false)) return;
      then();
    });
  }
  void set_after(Millis delay, std::function<void()> then) {
    set(Loop::steady_now() + delay, std::move(then));
  }
  void cancel() {
    if (is_set_ == nullptr) return;
    *is_set_ = false;
    is_set_.reset();
    timer_.cancel();
  }
  bool is_set() const { return is_set_ != nullptr && *is_set_; }
  Loop::Steady at() const { return at_; }

 private:
  boost::asio::steady_timer timer_;
  std::shared_ptr<bool> is_set_;
  Loop::Steady at_{};
};

}  // namespace delayq::net::redis
