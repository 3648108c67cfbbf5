#include "cli/child.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "cli/terminal.h"
#include "core/limits.h"

namespace delayq::cli {

namespace {

void close_if_open(int& descriptor) {
  if (descriptor >= 0) close(descriptor);
  descriptor = -1;
}

/// In the form that posix_spawn() needs.
std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> result;
  for (std::string& word : words) result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

/// Appends our own environment, except the names that are there already.
void append_environment(std::vector<std::string>& environment) {
  const size_t given = environment.size();
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view variable = *each;
    const std::string_view name = variable.substr(0, variable.find('=') + 1);
    const bool is_given =
        std::any_of(environment.begin(), environment.begin() + static_cast<ptrdiff_t>(given),
                    [&](const std::string& other) { return other.starts_with(name); });
    if (!is_given) environment.emplace_back(variable);
  }
}

/// Starts it with `input` and `errors` as its standard streams. Returns an error number.
int spawn(Child::Options& options, int input, int errors, pid_t& id) {
  std::vector<std::string> environment = std::move(options.environment);
  append_environment(environment);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // It must not inherit our signal handling.
  sigset_t usual;
  sigemptyset(&usual);
  posix_spawnattr_setsigmask(&attributes, &usual);
  for (const int number : {SIGPIPE, SIGINT, SIGTERM}) sigaddset(&usual, number);
  posix_spawnattr_setsigdefault(&attributes, &usual);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  const int error = posix_spawnp(&id, options.words[0].c_str(), &actions, &attributes,
                                 pointers(options.words).data(), pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

}  // namespace

std::string Child::End::reason() const {
  if (!last_line.empty()) return last_line;
  if (signal != 0) return fmt::format("killed by signal {} ({})", signal, strsignal(signal));
  return fmt::format("exit code {}", code);
}

Result<Child> Child::start(Options options) {
  std::array<int, 2> input{-1, -1};
  std::array<int, 2> errors{-1, -1};
  pid_t id = -1;
  int error = pipe2(input.data(), O_CLOEXEC) == 0 && pipe2(errors.data(), O_CLOEXEC) == 0 ? 0 : errno;
  if (error == 0) error = spawn(options, input[0], errors[1], id);
  close_if_open(input[0]);
  close_if_open(errors[1]);
  Child child;
  child.input_ = input[1];
  child.errors_ = errors[0];
  if (error != 0) {
    return invalid(fmt::format("--exec: {} cannot be started: {}", options.words[0],
                               std::generic_category().message(error)));
  }
  child.id_ = id;
  child.process_ = static_cast<int>(syscall(SYS_pidfd_open, id, 0));
  if (child.process_ < 0)
    return Error{
        ErrorCode::kInternal, {}, fmt::format("pidfd_open: {}", std::generic_category().message(errno))};
  fcntl(child.input_, F_SETFL, O_NONBLOCK);
  fcntl(child.errors_, F_SETFL, O_NONBLOCK);
  child.left_ = options.input;
  child.on_error_output_ = std::move(options.on_error_output);
  if (child.left_.empty()) close_if_open(child.input_);
  return child;
}

Child::Child(Child&& other) noexcept
    : process_(std::exchange(other.process_, -1)),
      id_(std::exchange(other.id_, -1)),
      input_(std::exchange(other.input_, -1)),
      errors_(std::exchange(other.errors_, -1)),
      left_(other.left_),
      on_error_output_(std::move(other.on_error_output_)),
      line_(std::move(other.line_)),
      end_(std::move(other.end_)) {}

Child::~Child() {
  if (id_ >= 0) {
    signal(SIGKILL);
    waitpid(id_, nullptr, 0);
  }
  close_if_open(process_);
  close_if_open(input_);
  close_if_open(errors_);
}

void Child::signal(int number) const {
  if (id_ >= 0) kill(-id_, number);
}

bool Child::run_until(Clock::time_point deadline, int wake) {
  while (id_ >= 0) {
    std::array<pollfd, 4> entries{{{.fd = process_, .events = POLLIN, .revents = 0},
                                   {.fd = input_, .events = POLLOUT, .revents = 0},
                                   {.fd = errors_, .events = POLLIN, .revents = 0},
                                   {.fd = wake, .events = POLLIN, .revents = 0}}};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    const auto timeout = static_cast<int>(std::clamp<int64_t>(left.count(), 0, 1'000'000'000));
    const int ready = poll(entries.data(), entries.size(), timeout);
    if (ready == 0) return false;
    if (ready < 0) continue;
    if (entries[1].revents != 0) write_input();
    if (entries[2].revents != 0) read_error_output();
    if (entries[0].revents != 0) reap();
    if (entries[3].revents != 0 && id_ >= 0) return false;
  }
  return true;
}

void Child::write_input() {
  const ssize_t written = write(input_, left_.data(), left_.size());
  if (written >= 0) {
    left_.remove_prefix(static_cast<size_t>(written));
  } else if (errno != EAGAIN && errno != EINTR) {
    left_ = {};  // it does not read all of its input, which is not an error
  }
  if (left_.empty()) close_if_open(input_);
}

void Child::read_error_output() {
  std::array<char, 4096> chunk;
  const ssize_t got = read(errors_, chunk.data(), chunk.size());
  if (got > 0) return note({chunk.data(), static_cast<size_t>(got)});
  if (got == 0 || (errno != EAGAIN && errno != EINTR)) close_if_open(errors_);
}

void Child::note(std::string_view text) {
  if (on_error_output_) on_error_output_(text);
  for (const char c : text) {
    if (c != '\n') {
      if (line_.size() < Limits::kReasonBytes) line_ += c;
      continue;
    }
    if (!line_.empty()) end_.last_line = std::exchange(line_, {});
  }
}

void Child::reap() {
  int status = 0;
  if (waitpid(id_, &status, WNOHANG) != id_) return;
  id_ = -1;
  // Its last output is in the pipe. Output that its own children still write is not waited for.
  pollfd entry{.fd = errors_, .events = POLLIN, .revents = 0};
  while (errors_ >= 0 && poll(&entry, 1, 0) > 0) {
    read_error_output();
    entry.fd = errors_;
  }
  if (!line_.empty()) end_.last_line = std::exchange(line_, {});
  end_.code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  end_.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

}  // namespace delayq::cli
