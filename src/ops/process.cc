#include "ops/process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <iostream>
#include <optional>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"

namespace delayq {

namespace {

int failed(const char* what) {
  std::cerr << "delayq: cannot go to the background: " << what << ": " << std::strerror(errno) << "\n";
  return traits_of(ErrorCode::kUnavailable).exit_code;
}

/// The exit code sent by the background process; kInternal's if it ended without sending one.
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
  std::cout << std::flush;  // otherwise both processes would write it
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) return failed("fork");
  if (child > 0) {
    ::close(ends[1]);
    ::waitpid(child, nullptr, 0);  // the intermediate process, which ends at once
    const int code = wait_for_word(ends[0]);
    ::close(ends[0]);
    return code;
  }
  ::close(ends[0]);
  ::setsid();
  // The second fork: a process that is not a session leader never gets a terminal by opening one.
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

ExitDeadline::ExitDeadline(Millis time, int exit_code, std::function<void()> late)
    : thread_([this, time, exit_code, late = std::move(late)] {
        std::unique_lock lock(mutex_);
        if (changed_.wait_for(lock, time, [this] { return is_over_; })) return;
        late();
        std::_Exit(exit_code);
      }) {}

ExitDeadline::~ExitDeadline() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
    changed_.notify_one();
  }
  thread_.join();
}

namespace {

Error failed(const std::string& path, int problem) {
  return {ErrorCode::kUnavailable,
          "pid file",
          fmt::format("server.pid_file: {}: {}", path, std::generic_category().message(problem)),
          {}};
}

Error held(const std::string& path, int descriptor) {
  std::string number(32, '\0');
  const ssize_t size = ::pread(descriptor, number.data(), number.size(), 0);
  number.resize(size > 0 ? static_cast<size_t>(size) : 0);
  number.resize(std::min(number.size(), number.find_first_not_of("0123456789")));
  return {ErrorCode::kUnavailable,
          "pid file",
          fmt::format(
              "server.pid_file: {} is held by {}: a server is running already; stop it, or use another file",
              path, number.empty() ? "another process" : "process " + number),
          {}};
}

/// Whether the path still names the opened file: its last owner may have removed it meanwhile.
bool is_still(const std::string& path, int descriptor) {
  struct stat opened {};
  struct stat named {};
  return ::fstat(descriptor, &opened) == 0 && ::stat(path.c_str(), &named) == 0 &&
         opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

}  // namespace

Result<std::unique_ptr<PidFile>> PidFile::take(const std::string& path) {
  constexpr mode_t kMode = 0644;
  while (true) {
    const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kMode);
    if (descriptor < 0) return failed(path, errno);
    if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
      Error error = errno == EWOULDBLOCK ? held(path, descriptor) : failed(path, errno);
      ::close(descriptor);
      return error;
    }
    if (!is_still(path, descriptor)) {
      ::close(descriptor);
      continue;
    }
    auto file = std::unique_ptr<PidFile>(new PidFile(path, descriptor));
    const std::string number = fmt::format("{}\n", ::getpid());
    const bool is_written =
        ::ftruncate(descriptor, 0) == 0 &&
        ::pwrite(descriptor, number.data(), number.size(), 0) == static_cast<ssize_t>(number.size());
    if (!is_written) return failed(path, errno);
    return file;
  }
}

PidFile::~PidFile() {
  ::unlink(path_.c_str());
  ::close(descriptor_);
}

namespace {

std::optional<uint64_t> number_of(const char* text) {
  if (text == nullptr) return std::nullopt;
  const std::string_view digits(text);
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

/// Half of the time that the service manager allows, so that one keep-alive may be late.
Millis sign_interval(const std::function<const char*(const char*)>& variable) {
  const auto microseconds = number_of(variable("WATCHDOG_USEC"));
  if (!microseconds || *microseconds == 0) return {};
  const auto process = number_of(variable("WATCHDOG_PID"));
  if (process && *process != static_cast<uint64_t>(::getpid())) return {};
  constexpr uint64_t kDay = 86'400'000'000;
  return std::max(Millis{1}, Millis{static_cast<int64_t>(std::min(*microseconds, kDay) / 2'000)});
}

}  // namespace

ServiceManager::ServiceManager(const std::function<const char*(const char*)>& variable) {
  const char* const name = variable("NOTIFY_SOCKET");
  if (name == nullptr || (name[0] != '/' && name[0] != '@')) return;
  if (std::strlen(name) >= sizeof(sockaddr_un::sun_path)) return;
  address_ = name;
  if (address_[0] == '@') address_[0] = '\0';
  socket_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const timeval patience{.tv_sec = 1, .tv_usec = 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  every_ = sign_interval(variable);
}

ServiceManager::~ServiceManager() {
  if (socket_ >= 0) ::close(socket_);
}

void ServiceManager::send(std::string_view message) const {
  if (socket_ < 0) return;
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path, address_.data(), address_.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address_.size());
  ::sendto(socket_, message.data(), message.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&to),
           size);
}

void ServiceManager::ready(std::string_view status) {
  send(fmt::format("READY=1\nMAINPID={}\nSTATUS={}", ::getpid(), status));
}

void ServiceManager::reloading(std::chrono::microseconds since_boot) {
  send(fmt::format("RELOADING=1\nMONOTONIC_USEC={}", since_boot.count()));
}

void ServiceManager::stopping(Millis grace) {
  constexpr std::chrono::seconds kForTheRest{30};
  send(fmt::format("STOPPING=1\nSTATUS=stopping\nEXTEND_TIMEOUT_USEC={}",
                   std::chrono::microseconds{grace + kForTheRest}.count()));
}

Moment ServiceManager::turned(Moment now) {
  if (every_ == Millis::zero()) return kNever;
  // If the next keep-alive is further away than it can be, the clock was set back.
  if (now >= next_sign_ || next_sign_ > now + every_) {
    send("WATCHDOG=1");
    next_sign_ = now + every_;
  }
  return next_sign_;
}

}  // namespace delayq
