#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "core/result.h"
#include "core/time.h"

namespace delayq {

/// Does `work` in a process of its own, without a terminal, and waits until that calls the function it was
/// given: it is ready. Answers, in the process that called, 0 then; or what `work` answered when it ended
/// before. Until it is ready `work` has the caller's standard output and error, to say what is wrong; then
/// they lead nowhere. The working directory stays. REQUIRES: no other threads.
int run_in_background(const std::function<int(const std::function<void()>& tell_ready)>& work);

/// Ends the process, without any more cleaning up, when it is not destroyed in time. For the last steps of a
/// program, where a thread that hangs in the kernel would be joined for ever.
class [[nodiscard]] ExitDeadline {
 public:
  /// `late` is called on another thread right before the end, to say so. It may not depend on what is being
  /// destroyed meanwhile.
  ExitDeadline(Millis time, int exit_code, std::function<void()> late);
  ~ExitDeadline();
  ExitDeadline(const ExitDeadline&) = delete;
  ExitDeadline& operator=(const ExitDeadline&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;
  std::thread thread_;
};

/// A file with this process's number, locked for as long as this lives and removed afterwards. The lock
/// decides, not the number: a file that a killed server left behind is taken over.
class PidFile {
 public:
  /// kUnavailable when another process holds it (the detail says which), or when it cannot be written. To be
  /// called after a fork(): the lock and the number are those of the caller.
  static Result<std::unique_ptr<PidFile>> take(const std::string& path);
  ~PidFile();
  PidFile(const PidFile&) = delete;
  PidFile& operator=(const PidFile&) = delete;

 private:
  PidFile(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

  std::string path_;
  int descriptor_;
};

/// Tells systemd how we are, over the datagrams of sd_notify(3). Where no service manager asked for that, it
/// says nothing. What cannot be delivered within a second is dropped: a server does not stop for it. Threads:
/// none.
class ServiceManager {
 public:
  /// `variable` returns the value of a name, or null, as getenv() does. NOTIFY_SOCKET is a path, or "@name"
  /// for an abstract socket; WATCHDOG_USEC asks for a sign of life that often, of process WATCHDOG_PID if
  /// that is there.
  explicit ServiceManager(const std::function<const char*(const char*)>& variable);
  ~ServiceManager();
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;

  /// It serves; `status` is one line for a person. Also what ends a reload.
  void ready(std::string_view status);
  /// It reloads its configuration; `since_boot` is the time of the monotonic clock.
  void reloading(std::chrono::microseconds since_boot);
  /// It stops, and may take so long.
  void stopping(Millis grace);

  /// To be called whenever the server has really done a turn of its work: sends the sign of life when it is
  /// time for one. Returns when the next turn must have been done by, or kNever. A clock that is set does no
  /// harm.
  Moment turned(Moment now);

 private:
  void send(std::string_view message) const;

  std::string address_;  ///< of the socket, as the kernel wants it; empty: there is no manager
  int socket_ = -1;
  Millis every_{};  ///< signs of life; zero: none
  Moment next_sign_{};
};

}  // namespace delayq
