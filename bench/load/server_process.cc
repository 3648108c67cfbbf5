#include "bench/load/server_process.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <fmt/format.h>

namespace delayq::bench {

namespace {

// A store of millions of jobs takes its time to come up, and to be flushed.
constexpr Millis kStartLimit = std::chrono::seconds(120);
constexpr Millis kStopLimit = std::chrono::seconds(30);
constexpr Millis kBetweenConnects{5};

Error start_failed(std::string detail) { return {ErrorCode::kUnavailable, "start", std::move(detail), {}}; }

/// The child's side of fork: only calls that are safe there.
[[noreturn]] void become(const std::vector<char*>& arguments, const char* log, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(126);
  const int nothing = ::open("/dev/null", O_RDONLY);
  const int output = ::open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (nothing < 0 || output < 0 || ::dup2(nothing, 0) < 0 || ::dup2(output, 1) < 0 || ::dup2(output, 2) < 0) {
    ::_exit(126);
  }
  ::execvp(arguments[0], arguments.data());
  ::_exit(127);
}

std::string end_of_file(const std::string& path) {
  std::ifstream file(path);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  constexpr size_t kShown = 400;
  return text.size() <= kShown ? text : text.substr(text.size() - kShown);
}

}  // namespace

bool is_installed(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "/usr/bin" : path;
  while (!rest.empty()) {
    const size_t colon = std::min(rest.find(':'), rest.size());
    const std::string candidate = fmt::format("{}/{}", rest.substr(0, colon), program);
    if (::access(candidate.c_str(), X_OK) == 0) return true;
    rest.remove_prefix(std::min(colon + 1, rest.size()));
  }
  return false;
}

Result<std::unique_ptr<ServerProcess>> ServerProcess::start(std::vector<std::string> command, uint16_t port,
                                                            const std::string& directory, Deadline deadline) {
  const std::string log = directory + "/output.log";
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return start_failed("cannot fork");
  if (pid == 0) become(arguments, log.c_str(), parent);

  Descriptor handle(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  std::unique_ptr<ServerProcess> server(new ServerProcess(pid, std::move(handle), port));
  if (!server->handle_.is_open()) return start_failed("the kernel gives no handle of a process");
  const Deadline limit = std::min(deadline, std::chrono::steady_clock::now() + kStartLimit);
  while (time_left(limit) > Millis{0}) {
    if (server->exited_within(kBetweenConnects)) {
      return start_failed(fmt::format("{} ended at once: {}", command[0], end_of_file(log)));
    }
    if (connect_to(loopback(port)).ok()) return server;
  }
  return start_failed(fmt::format("{} does not listen: {}", command[0], end_of_file(log)));
}

ServerProcess::ServerProcess(pid_t pid, Descriptor handle, uint16_t port)
    : pid_(pid), handle_(std::move(handle)), port_(port) {}

ServerProcess::~ServerProcess() {
  // Until waitpid has taken its end, the pid is the child's and nobody else's.
  ::kill(pid_, SIGTERM);
  if (!exited_within(kStopLimit)) ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

bool ServerProcess::exited_within(Millis wait) const {
  pollfd ended{handle_.get(), POLLIN, 0};
  return ::poll(&ended, 1, static_cast<int>(wait.count())) > 0;
}

uint64_t ServerProcess::resident_bytes() const {
  std::ifstream statm(fmt::format("/proc/{}/statm", pid_));
  uint64_t total = 0;
  uint64_t resident = 0;
  statm >> total >> resident;
  return resident * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace delayq::bench
