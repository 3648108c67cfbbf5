#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <absl/functional/any_invocable.h>

#include "engine/journal/disk.h"
#include "engine/journal/manifest.h"
#include "engine/journal/segments.h"
#include "engine/requests.h"

namespace delayq::journal {

/// Where copies go: a directory each, which has its name only when it is complete. Called from the copy lane.
class Shelf {
 public:
  virtual ~Shelf() = default;

  /// For messages and reports.
  virtual std::string path_of(std::string_view name) const = 0;
  /// An empty directory under another name, "<name>.partial". What an interrupted copy left there is removed.
  /// kConflict: there is a copy of that name.
  virtual Result<std::unique_ptr<Disk>> begin(std::string_view name) = 0;
  /// Gives it its name, durably.
  virtual Status finish(std::string_view name) = 0;
  /// Removes what was begun, as far as possible.
  virtual void abandon(std::string_view name) = 0;
};

/// Copies the synced part of every segment, as it is at one moment. That is what a power cut at this moment
/// could have left at worst, so opening the copy is what opening always is, and loses nothing that was
/// answered.
///
/// Nothing needs to be held back meanwhile: what was synced is never written again, and a segment that
/// cleaning removes stays readable for as long as it is open here. (Its room is free only afterwards.)
///
/// The copy has a manifest of its own, with the length of every segment, so that a part of it does not pass
/// for the whole.
///
/// Bytes go over in pieces, each synced before the next, on a lane of their own: a commit never has more than
/// one piece before it in the disk's queue.
class Backup {
 public:
  using Done = absl::AnyInvocable<void(Result<BackupReport>)>;
  struct Order {
    std::string name;
    Shelf* shelf = nullptr;
    uint64_t disk_reserve = 0;  ///< must stay free on the shelf's disk
    uint64_t jobs = 0;          ///< for the report
    uint64_t directory = 0;     ///< for the copy's manifest
    uint32_t epoch = 0;
  };

  Backup(Io& io, Segments& segments) : io_(io), segments_(segments) {}

  /// One at a time. False: there is one already.
  bool reserve() { return is_reserved_ ? false : (is_reserved_ = true); }
  void give_back() { is_reserved_ = false; }
  /// Copies what is synced now. REQUIRES: reserved; the place is given back before `done` is called.
  void start(Order order, Done done);
  /// The engine ends: what is under way is given up, without an answer, when the lanes are next drained.
  void stop() { stops_ = true; }

 private:
  struct Source {
    std::string name;
    std::shared_ptr<File> file;
    uint64_t size = 0;
  };
  /// Touched by the copy lane while a step runs, by the engine's thread between steps.
  struct Copy {
    Order order;
    Done done;
    std::vector<Source> sources;
    Manifest manifest;  ///< of the copy
    std::unique_ptr<Disk> target;
    std::shared_ptr<File> file;  ///< that is being written
    size_t at = 0;               ///< among the sources
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
