#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <absl/functional/any_invocable.h>

#include "core/result.h"

namespace delayq::journal {

/// One open file of the journal. All disk access of the engine goes through File and Disk, so that the
/// simulator can cut the power, tear writes, fail a sync, flip bits and fill the disk.
///
/// Threads: one thread writes (write, sync, allocate, truncate); any thread may read at the same time. A file
/// may be removed from its Disk while it is open; it then stays readable until it is closed.
class File {
 public:
  virtual ~File() = default;

  /// Writes all of `bytes` and extends the file if needed. Not durable before sync().
  virtual Status write(uint64_t offset, std::span<const std::byte> bytes) = 0;
  /// After success, everything written before is on disk. After a failure, nothing may be assumed about it.
  virtual Status sync() = 0;
  /// Returns how many bytes were read: fewer than requested only at the end of the file.
  /// May wait for the disk.
  virtual Result<size_t> read(uint64_t offset, std::span<std::byte> into) = 0;
  /// The same without ever waiting for the disk. Returns false if the bytes are not in memory, or if this is
  /// unknown; then use read().
  virtual bool read_cached(uint64_t offset, std::span<std::byte> into) = 0;
  virtual Result<uint64_t> size() = 0;
  /// Reserves space so that writes below `size` cannot fail for lack of it. The reserved part reads as zeros.
  virtual Status allocate(uint64_t size) = 0;
  virtual Status truncate(uint64_t size) = 0;
};

/// One directory of files. Names are plain (no '/'). A created, renamed or removed file is durable
/// after sync_directory().
class Disk {
 public:
  virtual ~Disk() = default;

  /// A name for messages: the directory's path.
  virtual std::string name() const = 0;
  virtual Result<std::vector<std::string>> list() = 0;
  /// Fails if the file exists.
  virtual Result<std::shared_ptr<File>> create(std::string_view name) = 0;
  virtual Result<std::shared_ptr<File>> open(std::string_view name) = 0;
  virtual Status remove(std::string_view name) = 0;
  virtual Status rename(std::string_view from, std::string_view to) = 0;
  virtual Status sync_directory() = 0;
  virtual Result<uint64_t> free_bytes() = 0;

  /// The directory is locked while the guard lives. A second process (or a second guard) is refused with
  /// kUnavailable and a message that names the holder if it is known.
  class [[nodiscard]] Lock {
   public:
    virtual ~Lock() = default;
  };
  virtual Result<std::unique_ptr<Lock>> lock() = 0;
};

/// Runs blocking file operations. The engine itself never waits: it passes work to a lane and continues.
///
/// The work of one lane runs in the order given, one after the other; different lanes run in parallel.
enum class Lane : uint8_t {
  kWrite,  ///< commits, new segments, removals
  kRead,   ///< bodies that are not in memory, segments being compacted
  kCopy,   ///< backups: long, and no client request depends on them
};
inline constexpr size_t kLaneCount = 3;

class Io {
 public:
  using Step = absl::AnyInvocable<void()>;

  virtual ~Io() = default;

  /// Runs `work` on the lane's thread; then poll() runs `done` on the engine's thread.
  virtual void run(Lane lane, Step work, Step done) = 0;
  /// Runs the pending `done` steps. Returns whether there were any. Called from the engine's thread.
  virtual bool poll() = 0;
  /// Waits until all work passed so far is finished and its `done` has run. Used for closing.
  virtual void drain() = 0;
  /// `wakeup` is called from a lane's thread whenever poll() has a new step to run.
  virtual void set_wakeup(std::function<void()> wakeup) = 0;
  /// The difference of two values is the time that something took. For statistics only; constant where there
  /// is no clock. Called from any thread.
  virtual std::chrono::microseconds clock() const { return {}; }
};

}  // namespace delayq::journal
