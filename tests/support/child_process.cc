#include "tests/support/child_process.h"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <poll.h>
#include <stdexcept>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace delayq::support {

namespace {

/// How long has_ended() waits.
constexpr int kEndStepMs = 5;

/// In the child, between fork and exec: only calls that are safe there.
[[noreturn]] void become(char* const* arguments, const char* log, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(126);  // it died before the line above
  const int out = ::open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const int in = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::dup2(in, 0);
  ::dup2(out, 1);
  ::dup2(out, 2);
  ::execvp(arguments[0], arguments);
  ::_exit(127);
}

}  // namespace

std::string whole_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

void ChildProcess::start(std::vector<std::string> words, const std::filesystem::path& log) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const std::string log_name = log;
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) become(pointers.data(), log_name.c_str(), parent);
  if (child < 0) throw std::runtime_error("no new process");
  pid_ = child;
  pid_file_descriptor_ = static_cast<int>(::syscall(SYS_pidfd_open, child, 0));
}

bool ChildProcess::has_ended() const {
  pollfd end{pid_file_descriptor_, POLLIN, 0};
  return ::poll(&end, 1, kEndStepMs) != 0;
}

void ChildProcess::kill() {
  if (!is_running()) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  ::close(pid_file_descriptor_);
  pid_ = 0;
}

void ChildProcess::pause() const { ::kill(pid_, SIGSTOP); }
void ChildProcess::resume() const { ::kill(pid_, SIGCONT); }

}  // namespace delayq::support
