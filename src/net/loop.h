#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include "core/time.h"
#include "net/session.h"

namespace delayq::net {

/// One thread's sockets and the wait for them.
///
///   for (;;) {
///     loop.wait_until(next);   // sleeps, then lets every connection that has something read it
///     ...                      // the owner's own work, which fills outputs
///     loop.finish_turn();      // sends them, and reads on where that was held up
///   }
class Loop {
 public:
  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  /// The server's wall clock: the one place that reads it.
  static Moment now();
  /// The monotonic clock, to measure durations: the one place that reads it.
  using Steady = net::Steady;
  static Steady steady_now();
  /// Both at the same moment, as exactly as possible: the wall clock is read between two readings of the
  /// steady clock, which are hardly ever more than a microsecond apart.
  struct Clocks {
    std::chrono::microseconds wall;
    Steady steady;
  };
  static Clocks clocks();

  /// Waits until `deadline`, or until something happened, and handles all that has happened. `kNever` waits
  /// for as long as it takes.
  void wait_until(Moment deadline);
  /// Sends what is to be sent. Returns whether a connection read something meanwhile: then there is new work.
  bool finish_turn() { return sessions_.finish_turn(); }
  /// Calls `object` at the end of this turn. Call it at most once per turn: duplicates are not detected.
  void touch(std::shared_ptr<AtTurnEnd> object) { sessions_.touch(std::move(object)); }
  /// Ends a wait_until(), or the next one. The one method that any thread may call.
  void wake();

  boost::asio::io_context& context() { return context_; }
  SessionSet& sessions() { return sessions_; }
  const SessionSet& sessions() const { return sessions_; }

 private:
  SessionSet sessions_;  ///< outlives the context: waits that are dropped with it know their sessions
  boost::asio::io_context context_;
  boost::asio::steady_timer timer_;
  Moment timer_set_for_ = kNever;
  std::atomic<bool> is_woken_ = false;
};

/// Reports signals on the loop's thread, for as long as it lives.
class Signals {
 public:
  Signals(Loop& loop, std::initializer_list<int> numbers, std::function<void(int)> tell);

 private:
  void wait();

  boost::asio::signal_set set_;
  std::function<void(int)> tell_;
};

}  // namespace delayq::net
