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
/// libcurl says of every call that it does not wait for its connection's socket any more, and of the next one
/// that it does again. Telling the kernel both times would be the most expensive part of a call, so a socket
/// that nobody waits for stays where it is until it has something to tell.
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

  /// From now on until closing(), a number that watch() may keep with the kernel while nobody waits.
  void opened(int fd);
  void closing(int fd);
  /// Waits for EPOLLIN or EPOLLOUT or both on this socket; 0: no more.
  void watch(int fd, uint32_t what);
  /// Ends a wait() after this time; negative: never. Whichever was set last counts. Zero is not waited for.
  void set_timer(Millis after) { timer_ = after, is_timer_set_ = false; }
  /// Whether the timer was set to zero, which then is set no more.
  bool take_due() {
    if (timer_ != Millis::zero()) return false;
    set_timer(Millis{-1});
    return true;
  }

  /// Waits until something happened. The events are good until the next wait(); `is_timed_out` says that the
  /// timer ran out, which then is set no more.
  const std::vector<Event>& wait(bool& is_timed_out);
  /// Ends a wait(), or the next one. The one method that any thread may call.
  void wake();

 private:
  struct Known {
    uint32_t wanted = 0;  ///< what libcurl waits for
    uint32_t told = 0;    ///< what the kernel was told
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
