#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/journal/disk.h"

namespace delayq::journal {

/// A read-only view of another disk for tools that only look at it. All changes made here (writes,
/// truncation, creation, removal) are kept in memory and discarded with this object. The other disk is read
/// and locked, but never changed.
///
/// So an engine can recover and run as usual, and the files on the other disk stay as they were.
class ScratchDisk final : public Disk {
 public:
  explicit ScratchDisk(std::unique_ptr<Disk> base) : base_(std::move(base)) {}

  std::string name() const override { return base_->name(); }
  Result<std::vector<std::string>> list() override;
  Result<std::shared_ptr<File>> create(std::string_view name) override;
  Result<std::shared_ptr<File>> open(std::string_view name) override;
  Status remove(std::string_view name) override;
  Status rename(std::string_view from, std::string_view to) override;
  Status sync_directory() override { return {}; }
  Result<uint64_t> free_bytes() override { return base_->free_bytes(); }
  Result<std::unique_ptr<Lock>> lock() override { return base_->lock(); }

 private:
  std::unique_ptr<Disk> base_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<File>, std::less<>> files_;  ///< created, renamed or opened here
  /// files of the base that were removed here
  std::set<std::string, std::less<>> gone_;
};

}  // namespace delayq::journal
