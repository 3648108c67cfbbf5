#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace delayq::support {

/// A program that a test starts. The destructor kills it by its pid, and the kernel kills it if the test dies
/// first. It is bound to the thread that starts it, which must outlive it.
class ChildProcess {
 public:
  ChildProcess() = default;
  ~ChildProcess() { kill(); }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// Starts it; what it writes is appended to `log`. REQUIRES: it is not running.
  void start(std::vector<std::string> words, const std::filesystem::path& log);
  bool is_running() const { return pid_ > 0; }
  /// Waits some milliseconds for its end. Returns whether it has ended, by itself.
  bool has_ended() const;
  /// kill -9, and waits until it has ended.
  void kill();
  /// SIGSTOP: connections stay open, but there are no replies.
  void pause() const;
  void resume() const;

 private:
  int pid_ = 0;
  int pid_file_descriptor_ = -1;
};

std::string whole_file(const std::filesystem::path& path);

}  // namespace delayq::support
