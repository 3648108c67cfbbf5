#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/random.h"
#include "engine/journal/disk.h"
#include "tests/support/volatile_bytes.h"

namespace delayq::support {

/// A kind of operation that a test can make fail.
enum class DiskFault : uint8_t {
  kWrite,          ///< no bytes, or a part of them, are written
  kSync,           ///< dirty bytes may be lost silently (see VolatileBytes::fail_sync)
  kRead,           ///< an unreadable sector
  kAllocate,       ///< no space is reserved
  kCreate,         ///< the file is not created
  kRemove,         ///< the file is not removed
  kSyncDirectory,  ///< no change of the directory became durable
};
inline constexpr size_t kDiskFaultCount = 7;
std::string_view name_of(DiskFault fault);

/// A directory in memory that simulates what real disks do to programs.
///
/// Writes are volatile until File::sync; names (create, remove, rename) are volatile until sync_directory.
/// power_cut() keeps a random part of the volatile changes. The same seed gives the same behaviour: every
/// choice comes from the Random given at construction.
///
/// After power_cut() or kill(), open handles return errors, and the lock is free again.
///
/// Threads: none. Must outlive the files it opened.
class VirtualDisk final : public journal::Disk {
 public:
  explicit VirtualDisk(uint64_t seed);
  ~VirtualDisk() override;

  std::string name() const override { return "virtual"; }
  Result<std::vector<std::string>> list() override;
  Result<std::shared_ptr<journal::File>> create(std::string_view name) override;
  Result<std::shared_ptr<journal::File>> open(std::string_view name) override;
  Status remove(std::string_view name) override;
  Status rename(std::string_view from, std::string_view to) override;
  Status sync_directory() override;
  Result<uint64_t> free_bytes() override;
  Result<std::unique_ptr<Lock>> lock() override;

  // ---- crashes
  /// The machine loses power and comes back.
  void power_cut();
  /// The process dies; the machine, and with it the page cache, continues.
  void kill();
  /// After `changes` more changing operations (write, sync, create, ...) every operation fails, as for a
  /// program that died in the middle of one. Call power_cut() or kill() after it.
  void stop_after(uint64_t changes) { changes_left_ = changes; }
  /// The same at once.
  void stop() { stopped_ = true; }
  bool stopped() const { return stopped_; }

  // ---- faults
  /// Makes one operation of that kind fail, after `skip` others.
  void fail(DiskFault fault, uint64_t skip);
  void forget_faults();
  /// How many planted faults, and failures for lack of space, have happened so far.
  uint64_t faults_fired() const { return faults_fired_; }
  /// Space for everything in the directory. Writes and allocations beyond it get kDiskFull.
  void set_capacity(uint64_t bytes) { capacity_ = bytes; }
  uint64_t used_bytes() const;
  /// In how many of 256 cases read_cached() returns that it would have to wait.
  void set_cache_misses(unsigned of_256) { cache_misses_ = of_256; }
  /// From now on File::sync and sync_directory return success and do nothing, like a drive that lies.
  void set_syncs_lie(bool lie) { syncs_lie_ = lie; }

  struct Damage {
    std::string file;
    uint64_t offset = 0;
    unsigned bit = 0;
  };
  /// Flips one bit of a synced byte. nullopt: there was none.
  std::optional<Damage> flip_bit();
  /// Flips the same bit again.
  void undo(const Damage& damage);
  /// Removes a file, exchanges the names of two, or copies one over another's name, as an operator's mistake
  /// or a bad copy would. Only files for whose names `concerns` returns true. nullopt: there were none.
  struct Mishap {
    std::string what;
    std::vector<std::string> files;
  };
  std::optional<Mishap> misplace(const std::function<bool(const std::string& name)>& concerns);
  /// Undoes the last misplace().
  void put_back();
  /// Another disk with the visible contents of this one, all of it durable.
  std::unique_ptr<VirtualDisk> clone(uint64_t seed) const;

  /// `trace` is called with one line for each changing operation and each fault. For replays.
  void set_trace(std::function<void(const std::string&)> trace) { trace_ = std::move(trace); }

 private:
  class OpenFile;
  class Guard;

  /// A file's bytes. Names and handles keep it alive.
  struct Inode {
    VolatileBytes bytes;
    uint32_t handles = 0;
  };
  using InodePtr = std::shared_ptr<Inode>;
  using Names = std::map<std::string, InodePtr, std::less<>>;

  /// A change of the directory that is not durable yet. For a create `from` is empty, for a remove `to` is.
  struct NameChange {
    std::string from;
    std::string to;
    InodePtr inode;
  };

  /// Whether the operation may continue. `happens` says whether the operation during which the disk
  /// stops still takes effect.
  struct Gate {
    bool open;
    bool happens;
  };

  Gate pass_change(std::string_view what, std::string_view file);
  bool fires(DiskFault fault);
  Status room_for(const Inode& inode, uint64_t new_size, std::string_view op);
  void change_name(NameChange change);
  static void apply(const NameChange& change, Names& to);
  void end_life();
  void trace(std::string_view what, std::string_view file, std::string_view note = {}) const;

  Random random_;
  Names names_;          // as programs see them
  Names durable_names_;  // as the disk holds them
  std::vector<NameChange> name_changes_;
  Names before_mishap_;                       // as durable_names_
  std::vector<std::weak_ptr<Inode>> inodes_;  // all that may still use space

  uint64_t life_ = 0;
  std::weak_ptr<int> lock_;
  bool stopped_ = false;
  std::optional<uint64_t> changes_left_;
  std::array<std::optional<uint64_t>, kDiskFaultCount> planted_{};
  uint64_t faults_fired_ = 0;
  uint64_t capacity_ = UINT64_MAX;
  unsigned cache_misses_ = 0;
  bool syncs_lie_ = false;
  std::function<void(const std::string&)> trace_;
};

}  // namespace delayq::support
