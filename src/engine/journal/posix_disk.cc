#include "engine/journal/posix_disk.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

namespace delayq::journal {

namespace {

constexpr const char* kLockName = "lock";

/// The first write into allocated space makes its sync slower, because the file system must update its own
/// tables (bench/micro/small_commit_micro.cc). So a small write also writes zeros after it, and the following
/// writes use space that was written before. For large writes this would only write everything twice.
constexpr size_t kZerosAhead = size_t{256} << 10;
constexpr size_t kSmallWrite = size_t{64} << 10;
const std::array<std::byte, kZerosAhead> kZeros{};

Error failure(std::string_view op, std::string_view path) {
  const int reason = errno;
  const ErrorCode code =
      reason == ENOSPC || reason == EDQUOT ? ErrorCode::kDiskFull : ErrorCode::kUnavailable;
  return {code, fmt::format("disk.{}", op),
          fmt::format("{}: {}", path, std::generic_category().message(reason))};
}

class PosixFile final : public File {
 public:
  PosixFile(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  ~PosixFile() override { ::close(descriptor_); }
  PosixFile(const PosixFile&) = delete;
  PosixFile& operator=(const PosixFile&) = delete;

  Status write(uint64_t offset, std::span<const std::byte> bytes) override {
    const uint64_t end = offset + bytes.size();
    if (Status status = write_all(offset, bytes); !status.ok()) return status;
    if (end <= written_) return {};
    written_ = end;
    if (bytes.size() <= kSmallWrite && end < allocated_) {
      const size_t ahead = std::min<uint64_t>(kZerosAhead, allocated_ - end);
      // A failure here only costs time.
      if (write_all(end, std::span(kZeros).first(ahead)).ok()) written_ += ahead;
    }
    return {};
  }

  Status sync() override { return ::fdatasync(descriptor_) == 0 ? Status{} : Status(failure("sync", path_)); }

  Result<size_t> read(uint64_t offset, std::span<std::byte> into) override {
    size_t done = 0;
    while (done < into.size()) {
      const ssize_t got =
          ::pread(descriptor_, into.data() + done, into.size() - done, static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return failure("read", path_);
      if (got == 0) break;
      done += static_cast<size_t>(got);
    }
    return done;
  }

  bool read_cached(uint64_t offset, std::span<std::byte> into) override {
    const iovec target{into.data(), into.size()};
    return ::preadv2(descriptor_, &target, 1, static_cast<off_t>(offset), RWF_NOWAIT) ==
           static_cast<ssize_t>(into.size());
  }

  Result<uint64_t> size() override {
    struct stat info {};
    if (::fstat(descriptor_, &info) != 0) return failure("size", path_);
    return static_cast<uint64_t>(info.st_size);
  }

  Status allocate(uint64_t size) override {
    if (::fallocate(descriptor_, 0, 0, static_cast<off_t>(size)) == 0) {
      allocated_ = size;
      return {};
    }
    // The file system cannot allocate in advance: the file grows as it is written.
    if (errno == EOPNOTSUPP || errno == ENOSYS) return {};
    return failure("allocate", path_);
  }

  Status truncate(uint64_t size) override {
    return ::ftruncate(descriptor_, static_cast<off_t>(size)) == 0 ? Status{}
                                                                   : Status(failure("truncate", path_));
  }

 private:
  Status write_all(uint64_t offset, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return failure("write", path_);
      bytes = bytes.subspan(static_cast<size_t>(written));
      offset += static_cast<uint64_t>(written);
    }
    return {};
  }

  std::string path_;
  int descriptor_;
  uint64_t allocated_ = 0;  ///< by this process; 0: none
  uint64_t written_ = 0;    ///< end of the written space
};

class FileLock final : public Disk::Lock {
 public:
  /// `file` is -1 if only the directory is locked.
  FileLock(int file, int directory) : file_(file), directory_(directory) {}
  ~FileLock() override {
    if (file_ >= 0) ::close(file_);
    ::close(directory_);
  }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int file_;
  int directory_;
};

/// Locks the directory itself, because a user may take the lock file in it for a leftover and remove it.
/// Returns a descriptor, or -1 with the reason in errno: EWOULDBLOCK if another process has the lock.
int lock_directory(int directory, int operation) {
  const int descriptor = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0 || ::flock(descriptor, operation | LOCK_NB) == 0) return descriptor;
  const int reason = errno;
  ::close(descriptor);
  errno = reason;
  return -1;
}

/// Makes the name of `path` durable in its parent directory.
Status sync_name(const std::filesystem::path& path) {
  const std::string parent = path.parent_path();
  int descriptor = ::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool may_read = descriptor >= 0;
  // The parent directory may not be readable: then the whole file system is synced.
  if (!may_read) descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return failure("open", path.string());
  const int outcome = may_read ? ::fsync(descriptor) : ::syncfs(descriptor);
  Status status = outcome == 0 ? Status{} : Status(failure("sync", parent));
  ::close(descriptor);
  return status;
}

/// Creates the directory and its missing parents and makes their names durable: files synced in a directory
/// are lost if its name is. The name of the directory itself is always synced, because a process that created
/// it may have been killed before it did so.
Status make_directory(const std::string& directory) {
  std::error_code error;
  // Without a slash at the end, which would make the path its own parent.
  std::filesystem::path path = std::filesystem::absolute(directory, error).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  std::vector<std::filesystem::path> names{path};
  for (std::filesystem::path above = path.parent_path(); !std::filesystem::exists(above, error);
       above = above.parent_path())
    names.push_back(above);
  std::filesystem::create_directories(path, error);
  if (error) {
    return Error{ErrorCode::kUnavailable, "disk.open", fmt::format("{}: {}", directory, error.message())};
  }
  for (const std::filesystem::path& name : names) {
    if (name == name.root_path()) continue;
    if (Status status = sync_name(name); !status.ok()) return status;
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<PosixDisk>> PosixDisk::open(const std::string& directory) {
  if (Status status = make_directory(directory); !status.ok()) return status.error();
  return open_existing(directory, false);
}

Result<std::unique_ptr<PosixDisk>> PosixDisk::open_to_read(const std::string& directory) {
  return open_existing(directory, true);
}

Result<std::unique_ptr<PosixDisk>> PosixDisk::open_existing(const std::string& directory, bool only_reads) {
  const int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return failure("open", directory);
  return std::unique_ptr<PosixDisk>(new PosixDisk(directory, descriptor, only_reads));
}

PosixDisk::~PosixDisk() { ::close(directory_); }

Result<std::vector<std::string>> PosixDisk::list() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(path_, error)) {
    if (entry.is_regular_file(error)) names.push_back(entry.path().filename());
  }
  if (error)
    return Error{ErrorCode::kUnavailable, "disk.list", fmt::format("{}: {}", path_, error.message())};
  return names;
}

Result<std::shared_ptr<File>> PosixDisk::open_with(std::string_view name, int flags) {
  const std::string text(name);
  const int descriptor = ::openat(directory_, text.c_str(), flags | O_CLOEXEC, 0640);
  if (descriptor < 0) return failure("open", path_ + "/" + text);
  return std::shared_ptr<File>(std::make_shared<PosixFile>(path_ + "/" + text, descriptor));
}

Result<std::shared_ptr<File>> PosixDisk::create(std::string_view name) {
  return open_with(name, O_RDWR | O_CREAT | O_EXCL);
}

Result<std::shared_ptr<File>> PosixDisk::open(std::string_view name) {
  return open_with(name, only_reads_ ? O_RDONLY : O_RDWR);
}

Status PosixDisk::remove(std::string_view name) {
  const std::string text(name);
  return ::unlinkat(directory_, text.c_str(), 0) == 0 ? Status{}
                                                      : Status(failure("remove", path_ + "/" + text));
}

Status PosixDisk::rename(std::string_view from, std::string_view to) {
  const std::string old_name(from);
  const std::string new_name(to);
  if (::renameat(directory_, old_name.c_str(), directory_, new_name.c_str()) == 0) return {};
  return failure("rename", path_ + "/" + old_name);
}

Status PosixDisk::sync_directory() {
  return ::fsync(directory_) == 0 ? Status{} : Status(failure("sync", path_));
}

Result<uint64_t> PosixDisk::free_bytes() {
  struct statvfs info {};
  if (::fstatvfs(directory_, &info) != 0) return failure("free", path_);
  return static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
}

Error PosixDisk::not_locked(int lock) const {
  if (errno != EWOULDBLOCK) return failure("lock", path_);
  std::array<char, 32> holder{};
  const ssize_t size = ::pread(lock, holder.data(), holder.size() - 1, 0);
  return {ErrorCode::kUnavailable, "disk.lock",
          fmt::format("{} is in use by another delayq{}; stop it, or choose another data directory", path_,
                      size > 0 ? fmt::format(" (process {})", holder.data()) : "")};
}

Result<std::unique_ptr<Disk::Lock>> PosixDisk::lock_to_read() {
  const int descriptor = ::openat(directory_, kLockName, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0 && errno != ENOENT) return failure("lock", path_);
  const bool is_free = descriptor < 0 || ::flock(descriptor, LOCK_SH | LOCK_NB) == 0;
  if (const int directory = is_free ? lock_directory(directory_, LOCK_SH) : -1; directory >= 0)
    return std::unique_ptr<Lock>(std::make_unique<FileLock>(descriptor, directory));
  const Error error = not_locked(descriptor);
  if (descriptor >= 0) ::close(descriptor);
  return error;
}

Result<std::unique_ptr<Disk::Lock>> PosixDisk::lock() {
  if (only_reads_) return lock_to_read();
  const int descriptor = ::openat(directory_, kLockName, O_RDWR | O_CREAT | O_CLOEXEC, 0640);
  if (descriptor < 0) return failure("lock", path_);
  const int directory =
      ::flock(descriptor, LOCK_EX | LOCK_NB) == 0 ? lock_directory(directory_, LOCK_EX) : -1;
  if (directory < 0) {
    const Error error = not_locked(descriptor);
    ::close(descriptor);
    return error;
  }
  // Only for the message above; the lock itself belongs to the kernel and ends with the process.
  const std::string mine = std::to_string(::getpid());
  if (::ftruncate(descriptor, 0) != 0 ||
      ::pwrite(descriptor, mine.data(), mine.size(), 0) != static_cast<ssize_t>(mine.size())) {
    const Error error = failure("lock", path_);
    ::close(descriptor);
    ::close(directory);
    return error;
  }
  return std::unique_ptr<Lock>(std::make_unique<FileLock>(descriptor, directory));
}

namespace {

Error failure(const std::string& path, const std::error_code& error) {
  return {ErrorCode::kUnavailable, "backup", fmt::format("{}: {}", path, error.message())};
}

}  // namespace

std::string PosixShelf::path_of(std::string_view name) const {
  return (std::filesystem::path(directory_) / name).string();
}

Result<std::unique_ptr<Disk>> PosixShelf::begin(std::string_view name) {
  std::error_code error;
  if (std::filesystem::exists(path_of(name), error)) {
    return Error{ErrorCode::kConflict, "backup",
                 fmt::format("{} is there already; remove it, or choose another name", path_of(name))};
  }
  std::filesystem::remove_all(partial(name), error);
  if (error) return failure(partial(name), error);
  Result<std::unique_ptr<PosixDisk>> disk = PosixDisk::open(partial(name));
  if (!disk.ok()) return disk.error();
  return std::unique_ptr<Disk>(std::move(*disk));
}

Status PosixShelf::finish(std::string_view name) {
  std::error_code error;
  std::filesystem::rename(partial(name), path_of(name), error);
  if (error) return failure(partial(name), error);
  Result<std::unique_ptr<PosixDisk>> shelf = PosixDisk::open(directory_);
  Status status = shelf.ok() ? (*shelf)->sync_directory() : Status(shelf.error());
  // A name that is not durable must not count as success: rename it back.
  if (!status.ok()) std::filesystem::rename(path_of(name), partial(name), error);
  return status;
}

void PosixShelf::abandon(std::string_view name) {
  std::error_code ignored;
  std::filesystem::remove_all(partial(name), ignored);
}

ThreadedIo::ThreadedIo(Clock clock) : clock_(std::move(clock)) {
  for (Worker& worker : workers_) {
    worker.thread = std::thread([this, &worker] { serve(worker); });
  }
}

ThreadedIo::~ThreadedIo() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
    for (Worker& worker : workers_) worker.has_tasks.notify_one();
  }
  for (Worker& worker : workers_) worker.thread.join();
}

void ThreadedIo::run(Lane lane, Step work, Step done) {
  Worker& worker = workers_[static_cast<size_t>(lane)];
  const std::lock_guard lock(mutex_);
  ++unfinished_;
  worker.tasks.push_back({std::move(work), std::move(done)});
  worker.has_tasks.notify_one();
}

void ThreadedIo::serve(Worker& worker) {
  std::unique_lock lock(mutex_);
  for (;;) {
    worker.has_tasks.wait(lock, [&] { return stops_ || !worker.tasks.empty(); });
    if (worker.tasks.empty()) return;
    Task task = std::move(worker.tasks.front());
    worker.tasks.pop_front();
    lock.unlock();
    task.work();
    lock.lock();
    done_.push_back(std::move(task.done));
    any_done_ = true;
    has_done_.notify_one();
    if (wakeup_) wakeup_();
  }
}

bool ThreadedIo::poll() {
  if (!any_done_) return false;
  std::vector<Step> steps;
  {
    const std::lock_guard lock(mutex_);
    steps.swap(done_);
    any_done_ = false;
  }
  for (Step& step : steps) step();
  const std::lock_guard lock(mutex_);
  unfinished_ -= steps.size();
  return !steps.empty();
}

void ThreadedIo::drain() {
  for (;;) {
    poll();
    std::unique_lock lock(mutex_);
    if (unfinished_ == 0) return;
    has_done_.wait(lock, [&] { return any_done_.load(); });
  }
}

void ThreadedIo::set_wakeup(std::function<void()> wakeup) {
  const std::lock_guard lock(mutex_);
  wakeup_ = std::move(wakeup);
}

}  // namespace delayq::journal
