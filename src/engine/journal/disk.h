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

/// One open file of the journal. Everything the engine does to a disk goes through File and Disk, so that the
/// simulator can cut the power, tear writes, fail a sync, flip bits and fill the disk.
///
/// Threads: one thread writes (write, sync, allocate, truncate), any thread may read at the same time. A file
/// may be removed from its Disk while it is open; it then stays readable until it is closed.
class File {
 public:
  virtual ~File() = default;

  /// Writes all of `bytes`, growing the file when needed. Not durable before sync().
  virtual Status write(uint64_t offset, std::span<const std::byte> bytes) = 0;
  /// After success, everything written before is on the disk. After a failure nothing may be assumed about
  /// it.
  virtual Status sync() = 0;
  /// Answers how many bytes were read: fewer than asked for only at the end of the file. May wait for the
  /// disk.
  virtual Result<size_t> read(uint64_t offset, std::span<std::byte> into) = 0;
  /// The same without ever waiting for the disk. False: not in memory (or cannot be told), use read().
  virtual bool read_cached(uint64_t offset, std::span<std::byte> into) = 0;
  virtual Result<uint64_t> size() = 0;
  /// Reserves room so that writes below `size` cannot fail for lack of it; the file reads as zeros there.
  virtual Status allocate(uint64_t size) = 0;
  virtual Status truncate(uint64_t size) = 0;
};

/// One directory of files. Names are plain (no '/'). Creation and removal are durable after sync_directory().
class Disk {
 public:
  virtual ~Disk() = default;

  /// A name for messages: the directory's path.
  virtual std::string name() const = 0;
  virtual Result<std::vector<std::string>> list() = 0;
  /// Fails when the file exists.
  virtual Result<std::shared_ptr<File>> create(std::string_view name) = 0;
  virtual Result<std::shared_ptr<File>> open(std::string_view name) = 0;
  virtual Status remove(std::string_view name) = 0;
  virtual Status rename(std::string_view from, std::string_view to) = 0;
  virtual Status sync_directory() = 0;
  virtual Result<uint64_t> free_bytes() = 0;

  /// Held for as long as the guard lives. A second process (or a second guard) is refused with kUnavailable
  /// and a message that names the holder where it is known.
  class [[nodiscard]] Lock {
   public:
    virtual ~Lock() = default;
  };
  virtual Result<std::unique_ptr<Lock>> lock() = 0;
};

/// Where blocking file operations run. The engine itself never waits: it hands work to a lane and goes on.
///
/// Work of one lane runs one after the other, in the order given; the lanes run side by side.
enum class Lane : uint8_t {
  kWrite,  ///< commits, new segments, removals
  kRead,   ///< bodies that are not in memory, segments being cleaned
  kCopy,   ///< backups: long, and nobody waits for them
};
inline constexpr size_t kLaneCount = 3;

class Io {
 public:
  using Step = absl::AnyInvocable<void()>;

  virtual ~Io() = default;

  /// Runs `work` on the lane's thread, then lets poll() run `done` on the engine's thread.
  virtual void run(Lane lane, Step work, Step done) = 0;
  /// Runs what is done. Answers whether there was anything. Called from the engine's thread.
  virtual bool poll() = 0;
  /// Waits until all work given so far is finished and its `done` has run. For closing.
  virtual void drain() = 0;
  /// `wakeup` is called from a lane's thread whenever something was added for poll().
  virtual void set_wakeup(std::function<void()> wakeup) = 0;
  /// How long something took is the difference of two of these. For figures only; stands still where there is
  /// no clock. Called from any thread.
  virtual std::chrono::microseconds clock() const { return {}; }
};

}  // namespace delayq::journal
