#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <absl/container/flat_hash_set.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "core/time.h"

namespace delayq::net {

class Session;

/// Whoever has something to send at the end of a turn.
class AtTurnEnd {
 public:
  virtual ~AtTurnEnd() = default;
  /// Answers whether it read something meanwhile: then there is new work.
  virtual bool finish_turn() = 0;
};

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
  /// The clock that nobody sets, for how long something takes: again the one place.
  using Steady = std::chrono::steady_clock::time_point;
  static Steady steady_now();
  /// Both at the same moment, as exactly as can be told: what is between the two readings of the steady clock
  /// around the other one is hardly ever more than a microsecond.
  struct Clocks {
    std::chrono::microseconds wall;
    Steady steady;
  };
  static Clocks clocks();

  /// Waits until `deadline`, or until something happened, and handles all that has happened. `kNever` waits
  /// for as long as it takes.
  void wait_until(Moment deadline);
  /// Sends what is to be sent. Answers whether a connection read something meanwhile: then there is new work.
  bool finish_turn();
  /// Lets `whoever` finish this turn. To be called once a turn: it is not looked up whether it is there
  /// already.
  void touch(std::shared_ptr<AtTurnEnd> whoever) { touched_.push_back(std::move(whoever)); }
  /// Ends a wait_until(), or the next one. The one method that any thread may call.
  void wake();

  boost::asio::io_context& context() { return context_; }
  size_t sessions() const { return sessions_.size(); }

 private:
  friend class Session;

  boost::asio::io_context context_;
  boost::asio::steady_timer timer_;
  Moment timer_set_for_ = kNever;
  std::atomic<bool> is_woken_ = false;
  std::vector<std::shared_ptr<AtTurnEnd>> touched_;  ///< those with something to do at the end of this turn
  std::string scratch_;  ///< every read goes here first: idle connections own no buffer
  absl::flat_hash_set<std::shared_ptr<Session>>
      sessions_;  ///< those that are open: they live as long as they are here
};

}  // namespace delayq::net
