#pragma once

#include <chrono>
#include <csignal>
#include <functional>
#include <string>
#include <string_view>
#include <sys/signalfd.h>
#include <unistd.h>
#include <vector>

#include "core/result.h"

namespace delayq::cli {

/// Makes SIGINT and SIGTERM readable from a descriptor, instead of their usual effect, and ignores SIGPIPE.
class [[nodiscard]] SignalReader {
 public:
  SignalReader() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, &before_);
    descriptor_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    std::signal(SIGPIPE, SIG_IGN);  // a reader that closes early
  }
  ~SignalReader() {
    // Signals that arrived were handled, and must not end the program now.
    signalfd_siginfo info{};
    while (read(descriptor_, &info, sizeof info) == sizeof info) {
    }
    close(descriptor_);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SignalReader(const SignalReader&) = delete;
  SignalReader& operator=(const SignalReader&) = delete;

  int descriptor() const { return descriptor_; }

 private:
  sigset_t before_{};
  int descriptor_ = -1;
};

/// A command that runs with a text on its standard input. Its standard output is ours; what it writes to its
/// standard error is passed on, and the last line remembered. It has a process group of its own, so that a
/// Ctrl-C for us does not reach it.
class Child {
 public:
  using Clock = std::chrono::steady_clock;

  struct Options {
    std::vector<std::string> words;        ///< the program, looked up in PATH, and its arguments
    std::vector<std::string> environment;  ///< "NAME=value", besides our own environment
    std::string_view input;                ///< must live as long as the child
    std::function<void(std::string_view)> on_error_output;
  };

  /// How it ended.
  struct End {
    int code = 0;           ///< of exit()
    int signal = 0;         ///< that killed it; 0: none did
    std::string last_line;  ///< of its standard error, which is not empty; empty: it wrote nothing

    bool is_success() const { return code == 0 && signal == 0; }
    /// What went wrong in a few words: the last line, or the code, or the signal.
    std::string reason() const;
  };

  /// kInvalid when there is no such program.
  static Result<Child> start(Options options);

  /// A child that still runs is killed.
  ~Child();
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;

  /// Writes its input and reads its errors until it has ended, the deadline has passed, or `wake` is readable
  /// (-1: none). Returns true if it has ended.
  bool run_until(Clock::time_point deadline, int wake);
  /// Sends a signal to it and what it started.
  void signal(int number) const;
  /// REQUIRES: run_until() returned true.
  const End& end() const { return end_; }

 private:
  Child() = default;

  void write_input();
  void read_error_output();
  void note(std::string_view text);
  void reap();

  int process_ = -1;  ///< a descriptor of it, which is readable when it has ended
  int id_ = -1;       ///< of the process, and of its group; -1: there is none any more
  int input_ = -1;    ///< we write
  int errors_ = -1;   ///< we read
  std::string_view left_;
  std::function<void(std::string_view)> on_error_output_;
  std::string line_;  ///< of its standard error, not finished yet
  End end_;
};

}  // namespace delayq::cli
