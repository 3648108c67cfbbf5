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

/// A disk as another one is, for those who only want to look: what is written, cut, made or removed here is
/// kept in memory, and forgotten with this object. The other disk is read and locked, and never changed.
///
/// So an engine can recover and go on as ever; what recovery makes tidy is as untidy as before afterwards.
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
  std::map<std::string, std::shared_ptr<File>, std::less<>> files_;  ///< made, renamed or opened here
  std::set<std::string, std::less<>> gone_;                          ///< names of the base that are no more
};

}  // namespace delayq::journal
