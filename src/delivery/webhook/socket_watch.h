#pragma once

#include <array>
#include <cstdint>
#include <sys/epoll.h>
#include <vector>

#include "core/result.h"
#include "core/time.h"

namespace delayq::webhook {

/// A file descriptor that is closed with its owner.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  Descriptor& operator=(Descriptor&&) = delete;

  int get() const { return fd_; }

 private:
  int fd_;
};

/// Waits for the sockets of one thread, for one timer, and for a wake-up from another thread.
///
/// After every call libcurl stops watching the connection's socket, and watches it again for the next call.
/// Two system calls for that would be the most expensive part of a call, so a socket that is not watched
/// stays registered until it has an event.
///
/// No clock is read here: the timer is the kernel's.
class SocketWatch {
 public:
  struct Event {
    int fd;
    uint32_t what;  ///< EPOLLIN, EPOLLOUT, EPOLLERR, EPOLLHUP
  };

  /// Fails when there are no descriptors left.
  static Result<SocketWatch> open();

  /// The socket may stay registered with the kernel while it is not watched, until closing().
  void opened(int fd);
  void closing(int fd);
  /// Watches this socket for EPOLLIN, EPOLLOUT or both; 0: stops watching it.
  void watch(int fd, uint32_t what);
  /// Ends a wait() after this time; negative: never; zero: at once. Overrides the time that was set before.
  void set_timer(Millis after) { timer_ = after, is_timer_set_ = false; }
  /// Returns whether the timer was set to zero, and switches it off.
  bool take_due() {
    if (timer_ != Millis::zero()) return false;
    set_timer(Millis{-1});
    return true;
  }

  /// Waits until something happens. The events are valid until the next wait(). `is_timed_out`: the timer has
  /// expired, and is off now.
  const std::vector<Event>& wait(bool& is_timed_out);
  /// Ends a wait(), or the next one. Only this method may be called from any thread.
  void wake();

 private:
  struct Known {
    uint32_t wanted = 0;  ///< what libcurl waits for
    uint32_t told = 0;    ///< what is registered with the kernel
    bool is_ours = false;
  };

  SocketWatch(int epoll, int wakeup, int timer);
  Known& known(int fd);
  void tell(int fd, uint32_t what);
  void arm();

  Descriptor epoll_;
  Descriptor wakeup_;
  Descriptor timer_fd_;
  Millis timer_{-1};
  bool is_timer_set_ = true;
  std::vector<Known> sockets_;  ///< by number: the kernel gives the lowest that is free
  std::vector<Event> events_;
};

}  // namespace delayq::webhook
