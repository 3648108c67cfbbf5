#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "core/time.h"

namespace delayq {

/// Tells systemd how we are, over the datagrams of sd_notify(3). Where no service manager asked for that, it
/// says nothing. What cannot be delivered within a second is dropped: a server does not stop for it. Threads:
/// none.
class ServiceManager {
 public:
  /// `variable` answers the value of a name, or null, as getenv() does. NOTIFY_SOCKET is a path, or "@name"
  /// for an abstract socket; WATCHDOG_USEC asks for a sign of life that often, of process WATCHDOG_PID if
  /// that is there.
  explicit ServiceManager(const std::function<const char*(const char*)>& variable);
  ~ServiceManager();
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;

  /// It serves; `status` is one line for a person. Also what ends a reload.
  void ready(std::string_view status);
  /// It reads its configuration anew; `since_boot` is what the monotonic clock says.
  void reloading(std::chrono::microseconds since_boot);
  /// It stops, and may take so long.
  void stopping(Millis grace);

  /// To be called whenever the server has really done a turn of its work: sends the sign of life when it is
  /// time for one. Answers when the next turn must have been done by, or kNever. A clock that is set does no
  /// harm.
  Moment turned(Moment now);

 private:
  void send(std::string_view message) const;

  std::string address_;  ///< of the socket, as the kernel wants it; empty: nobody listens
  int socket_ = -1;
  Millis every_{};  ///< signs of life; zero: none
  Moment next_sign_{};
};

}  // namespace delayq
