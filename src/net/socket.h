#pragma once

#include <chrono>
#include <string>

namespace delayq::net {

/// The monotonic clock, to measure durations.
using Steady = std::chrono::steady_clock::time_point;

/// What a session needs of its socket besides the bytes, which its Stream carries: to be called when
/// something can be done. No call answers from within. After close() none answers at all.
class Socket {
 public:
  virtual ~Socket() = default;

  /// Calls Session::on_input() once: bytes, their end, or an error can be received.
  virtual void wait_for_input() = 0;
  /// Calls Session::on_room() once: something can be sent.
  virtual void wait_for_room() = 0;
  /// Calls Session::on_alarm() at `at`. There is one alarm: it replaces the one before.
  virtual void set_alarm(Steady at) = 0;
  /// Tells the other side that nothing more will be sent.
  virtual void end_output() = 0;
  virtual void close() = 0;
  /// The address of the other end: "127.0.0.1:40312". Empty if it is not known.
  virtual std::string peer() const = 0;
  virtual Steady now() const = 0;
};

}  // namespace delayq::net
