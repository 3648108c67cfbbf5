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

/// Runs `work` in a background process without a terminal, and waits until `work` calls the function that it
/// is given, which means that it is ready. Then returns 0 in the calling process; if `work` ended before,
/// returns what `work` returned. Until it is ready, `work` has the caller's standard output and error, to
/// report problems; afterwards they are /dev/null. The working directory does not change. REQUIRES: no other
/// threads.
int run_in_background(const std::function<int(const std::function<void()>& tell_ready)>& work);

/// Ends the process at once, without clean-up, when this object is not destroyed in time. For the last steps
/// of a program, where a thread that hangs in the kernel would be joined for ever.
class [[nodiscard]] ExitDeadline {
 public:
  /// `late` is called on another thread right before the end, to log it. It must not use objects that may be
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
/// decides, not the number: a file left behind by a killed server is reused.
class PidFile {
 public:
  /// kUnavailable when another process holds it (the detail says which), or when it cannot be written. Call
  /// it after a fork(): the lock and the number are those of the calling process.
  static Result<std::unique_ptr<PidFile>> take(const std::string& path);
  ~PidFile();
  PidFile(const PidFile&) = delete;
  PidFile& operator=(const PidFile&) = delete;

 private:
  PidFile(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

  std::string path_;
  int descriptor_;
};

/// Reports the state of the server to systemd, with the datagrams of sd_notify(3); does nothing where no
/// service manager asked for that. A datagram that cannot be sent within a second is dropped, so that the
/// server does not hang. Not thread-safe.
class ServiceManager {
 public:
  /// `variable` returns the value of a name, or null, as getenv() does. NOTIFY_SOCKET is a path, or "@name"
  /// for an abstract socket; WATCHDOG_USEC asks for a keep-alive that often, from process WATCHDOG_PID if
  /// that is set.
  explicit ServiceManager(const std::function<const char*(const char*)>& variable);
  ~ServiceManager();
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;

  /// The server is ready; `status` is one line for a person. Also ends a reload.
  void ready(std::string_view status);
  /// The server reloads its configuration; `since_boot` is the time of the monotonic clock.
  void reloading(std::chrono::microseconds since_boot);
  /// The server stops, which may take this long.
  void stopping(Millis grace);

  /// Call it after each turn of the server's work: sends a keep-alive when it is due. Returns when the next
  /// turn must be done, or kNever. Works also when the clock is set.
  Moment turned(Moment now);

 private:
  void send(std::string_view message) const;

  std::string address_;  ///< of the socket, in the kernel's form; empty: there is no service manager
  int socket_ = -1;
  Millis every_{};  ///< between keep-alives; zero: none
  Moment next_sign_{};
};

}  // namespace delayq
