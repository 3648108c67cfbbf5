#pragma once

#include <csignal>
#include <sys/signalfd.h>
#include <unistd.h>

namespace delayq::cli {

/// SIGINT and SIGTERM as something to read; they do nothing else meanwhile, and SIGPIPE nothing at all.
class [[nodiscard]] SignalReader {
 public:
  SignalReader() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, &before_);
    descriptor_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    std::signal(SIGPIPE, SIG_IGN);  // somebody who does not read to the end
  }
  ~SignalReader() {
    // Those that came have done what they were for, and are not to end the program now.
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

}  // namespace delayq::cli
