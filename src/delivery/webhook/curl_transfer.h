#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <sys/epoll.h>
#include <vector>

#include <curl/curl.h>

#include "core/result.h"
#include "core/time.h"
#include "delivery/webhook/call.h"
#include "delivery/webhook/curl_caller.h"

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

/// What all transfers of one caller have in common. Outlives them.
struct TransferSettings {
  CurlCallerOptions options;
  curl_slist* known_hosts = nullptr;           ///< CURLOPT_RESOLVE
  std::function<void(curl_socket_t)> opened;   ///< a socket was opened
  std::function<void(curl_socket_t)> closing;  ///< and is about to be closed
};

/// One handle of libcurl, for one call at a time: it is set up once and reused.
class CurlTransfer {
 public:
  explicit CurlTransfer(TransferSettings& settings);
  ~CurlTransfer();
  CurlTransfer(const CurlTransfer&) = delete;
  CurlTransfer& operator=(const CurlTransfer&) = delete;

  /// Returns the handle, ready to be added to the multi handle; null when the call is malformed: then call
  /// finish().
  CURL* begin(uint32_t number, Call call);
  /// Returns the result, and forgets the call.
  CallResult finish(CURLcode code);

  CURL* handle() { return handle_; }
  uint32_t number() const { return number_; }
  static CurlTransfer& of(CURL* handle);

 private:
  void set_up();
  void set_method();
  void set_headers();
  CallResult failure(CURLcode code);
  size_t take_body(const char* bytes, size_t count);
  size_t take_header(std::string_view line);
  curl_socket_t open_socket(const curl_sockaddr& address);

  static size_t on_body(char* bytes, size_t size, size_t count, void* self);
  static size_t on_header(char* bytes, size_t size, size_t count, void* self);
  static curl_socket_t on_open(void* self, curlsocktype purpose, curl_sockaddr* address);
  static int on_close(void* settings, curl_socket_t socket);

  TransferSettings& settings_;
  CURL* handle_ = nullptr;
  char error_[CURL_ERROR_SIZE] = {};

  // The call:
  uint32_t number_ = 0;
  Call call_;
  std::vector<curl_slist> header_nodes_;  ///< point into the call; libcurl only reads them
  // And what came so far:
  std::string answer_;
  size_t body_bytes_ = 0;
  size_t header_bytes_ = 0;
  size_t header_lines_ = 0;
  bool is_cut_ = false;
  bool has_opened_ = false;
  std::string refusal_;  ///< why an address was not connected to
  std::optional<RetryAfter> retry_after_;
};

}  // namespace delayq::webhook
