#include "ops/background.h"

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <iostream>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.h"

namespace delayq {

namespace {

int failed(const char* what) {
  std::cerr << "delayq: cannot go to the background: " << what << ": " << std::strerror(errno) << "\n";
  return traits_of(ErrorCode::kUnavailable).exit_code;
}

/// The code that comes from the background; or, when that ended without a word, a defect of ours.
int wait_for_word(int from) {
  uint8_t code = 0;
  ssize_t size = 0;
  do {
    size = ::read(from, &code, sizeof code);
  } while (size < 0 && errno == EINTR);
  if (size == sizeof code) return code;
  std::cerr << "delayq: the server ended before it was ready\n";
  return traits_of(ErrorCode::kInternal).exit_code;
}

void say(int& to, int code) {
  if (to < 0) return;
  const auto byte = static_cast<uint8_t>(code);
  [[maybe_unused]] const ssize_t written = ::write(to, &byte, sizeof byte);  // the caller may be gone
  ::close(to);
  to = -1;
}

void leave_the_terminal() {
  std::cout << std::flush;
  const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nowhere < 0) return;
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nowhere, descriptor);
  ::close(nowhere);
}

}  // namespace

int run_in_background(const std::function<int(const std::function<void()>& tell_ready)>& work) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return failed("pipe");
  std::cout << std::flush;  // or it would be said by both
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) return failed("fork");
  if (child > 0) {
    ::close(ends[1]);
    ::waitpid(child, nullptr, 0);  // the one in between, which ends at once
    const int code = wait_for_word(ends[0]);
    ::close(ends[0]);
    return code;
  }
  ::close(ends[0]);
  ::setsid();
  // Once more: who leads no session never gets a terminal by opening one.
  const pid_t grandchild = ::fork();
  if (grandchild != 0) ::_exit(grandchild < 0 ? failed("fork") : EXIT_SUCCESS);
  int to = ends[1];
  const int code = work([&to] {
    leave_the_terminal();
    say(to, EXIT_SUCCESS);
  });
  say(to, code);
  std::exit(code);
}

}  // namespace delayq
