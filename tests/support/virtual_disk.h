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

/// One kind of operation that can be told to fail.
enum class DiskFault : uint8_t {
  kWrite,          ///< nothing or a part of the bytes is written
  kSync,           ///< what was dirty may be gone without another word (see VolatileBytes::fail_sync)
  kRead,           ///< an unreadable sector
  kAllocate,       ///< no room is reserved
  kCreate,         ///< the file is not there
  kRemove,         ///< the file stays
  kSyncDirectory,  ///< nothing of the directory became durable
};
inline constexpr size_t kDiskFaultCount = 7;
std::string_view name_of(DiskFault fault);

/// A directory in memory that does to its user what real disks do.
///
/// Writes are volatile until File::sync; names (create, remove, rename) until sync_directory. power_cut()
/// lets any part of what was volatile happen. One seed, one behaviour: every choice comes from the Random
/// given at construction.
///
/// A life ends with power_cut() or kill(): open handles answer errors from then on, and the lock is free
/// again.
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

  // ---- the ends of a life
  /// The machine loses power and comes back.
  void power_cut();
  /// The process dies; the machine, and with it the page cache, goes on.
  void kill();
  /// After `changes` more changing operations (write, sync, create, ...) nothing answers any more, as seen by
  /// a program that died in the middle of one. Follow it with power_cut() or kill().
  void stop_after(uint64_t changes) { changes_left_ = changes; }
  /// The same at once.
  void stop() { stopped_ = true; }
  bool stopped() const { return stopped_; }

  // ---- faults
  /// The operation of that kind that comes after `skip` others fails, once.
  void fail(DiskFault fault, uint64_t skip);
  void forget_faults();
  /// How many planted faults, and refusals for lack of room, have happened so far.
  uint64_t faults_fired() const { return faults_fired_; }
  /// Room on the disk for everything in the directory. Writes and allocations beyond it get kDiskFull.
  void set_capacity(uint64_t bytes) { capacity_ = bytes; }
  uint64_t used_bytes() const;
  /// In how many of 256 cases read_cached() answers that it would have to wait.
  void set_cache_misses(unsigned of_256) { cache_misses_ = of_256; }
  /// From now on File::sync and sync_directory answer success and do nothing: a drive that lies.
  void set_syncs_lie(bool lie) { syncs_lie_ = lie; }

  struct Damage {
    std::string file;
    uint64_t offset = 0;
    unsigned bit = 0;
  };
  /// One bit of some byte that was synced turns over. nullopt: there was none.
  std::optional<Damage> flip_bit();
  /// The same bit again.
  void undo(const Damage& damage);
  /// A file vanishes, two exchange their names, or one is there under another's name: what a hand or a bad
  /// copy does. Only among files whose names `concerns` is true for. nullopt: there were none.
  struct Mishap {
    std::string what;
    std::vector<std::string> files;
  };
  std::optional<Mishap> misplace(const std::function<bool(const std::string& name)>& concerns);
  /// Undoes the last misplace().
  void put_back();
  /// Another disk that holds what this one shows, all of it durable.
  std::unique_ptr<VirtualDisk> clone(uint64_t seed) const;

  /// Called with one line for each changing operation and each fault. For replays.
  void set_trace(std::function<void(const std::string&)> trace) { trace_ = std::move(trace); }

 private:
  class OpenFile;
  class Guard;

  /// A file's bytes and who still needs them. Names and handles both keep one alive.
  struct Inode {
    VolatileBytes bytes;
    uint32_t handles = 0;
  };
  using InodePtr = std::shared_ptr<Inode>;
  using Names = std::map<std::string, InodePtr, std::less<>>;

  /// A change of the directory that is not durable yet. create: no `from`; remove: no `to`.
  struct NameChange {
    std::string from;
    std::string to;
    InodePtr inode;
  };

  /// Whether the operation may go on; `happens` tells whether the one that meets the end still takes place.
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
  std::vector<std::weak_ptr<Inode>> inodes_;  // all that may still use room

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
