#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <absl/functional/any_invocable.h>

#include "engine/journal/disk.h"
#include "engine/journal/segments.h"
#include "engine/requests.h"

namespace delayq::journal {

/// Where backups go: one directory for each, which gets its final name only when it is complete.
/// Called from the copy lane.
class Shelf {
 public:
  virtual ~Shelf() = default;

  /// For messages and reports.
  virtual std::string path_of(std::string_view name) const = 0;
  /// Creates an empty directory with the temporary name "<name>.partial". Removes the remains of an
  /// interrupted backup there. kConflict: a backup with this name exists.
  virtual Result<std::unique_ptr<Disk>> begin(std::string_view name) = 0;
  /// Gives the directory its final name, durably.
  virtual Status finish(std::string_view name) = 0;
  /// Removes an unfinished backup, as far as possible.
  virtual void abandon(std::string_view name) = 0;
};

/// Copies the synced part of every segment, as of one moment. This is the least that a power loss at
/// that moment would leave, so opening the copy is an ordinary recovery, and no change that was
/// replied to is missing.
///
/// The engine keeps working meanwhile: synced bytes are never written again, and a segment that compaction
/// removes stays readable while it is open here. (Its disk space is freed only afterwards.)
///
/// The copy has a manifest of its own, with the size of every segment, so that an
/// incomplete copy is detected.
///
/// Bytes are copied in pieces, each synced before the next, on a separate lane: a commit never has more than
/// one piece ahead of it in the disk's queue.
class Backup {
 public:
  using Done = absl::AnyInvocable<void(Result<BackupReport>)>;
  struct Order {
    std::string name;
    Shelf* shelf = nullptr;
    uint64_t disk_reserve = 0;  ///< must stay free on the disk of the backups
    uint64_t jobs = 0;          ///< for the report
    uint64_t directory = 0;     ///< for the copy's manifest
    uint32_t epoch = 0;
  };

  Backup(Io& io, Segments& segments) : io_(io), segments_(segments) {}

  /// Only one backup at a time: returns false if there is one already.
  bool reserve() { return is_reserved_ ? false : (is_reserved_ = true); }
  void give_back() { is_reserved_ = false; }
  /// Copies what is synced now. REQUIRES: reserved. The reservation ends before `done` is called.
  void start(Order order, Done done);
  /// The engine is being destroyed: a backup in progress is abandoned without a reply when the
  /// lanes are next drained.
  void stop() { stops_ = true; }

 private:
  struct Source {
    std::string name;
    std::shared_ptr<File> file;
    uint64_t size = 0;
  };
  /// Used by the copy lane while a step runs, and by the engine's thread between steps.
  struct Copy {
    Order order;
    Done done;
    std::vector<Source> sources;
    Manifest manifest;  ///< of the copy
    std::unique_ptr<Disk> target;
    std::shared_ptr<File> file;  ///< being written
    size_t at = 0;               ///< index of the current source
    uint64_t offset = 0;
    std::vector<std::byte> piece;
    BackupReport report;
    bool is_complete = false;
    Status outcome;  ///< of the last step

    Status step();
    Status begin();
    Status copy_piece();
    Status finish();
  };

  void next(std::shared_ptr<Copy> copy);
  void after_step(std::shared_ptr<Copy> copy);

  Io& io_;
  Segments& segments_;
  bool is_reserved_ = false;
  bool stops_ = false;
};

}  // namespace delayq::journal
