#include "ops/pid_file.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>

namespace delayq {

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

/// Whether the path still means the file that was opened: its last holder may have removed it just then.
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

}  // namespace delayq
