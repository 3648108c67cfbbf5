#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "engine/journal/backup.h"
#include "tests/support/virtual_disk.h"

namespace delayq::support {

/// Backups on virtual disks. A name given by finish() is durable; before that, the rules
/// of VirtualDisk apply.
class VirtualShelf final : public journal::Shelf {
 public:
  explicit VirtualShelf(uint64_t seed) : random_(seed) {}

  std::string path_of(std::string_view name) const override { return "shelf/" + std::string(name); }

  Result<std::unique_ptr<journal::Disk>> begin(std::string_view name) override {
    if (copies_.contains(name)) return Error{ErrorCode::kConflict, "backup", "it is there already"};
    auto disk = std::make_unique<VirtualDisk>(random_.next());
    disk->set_capacity(capacity_);
    partial_.insert_or_assign(std::string(name), disk.get());
    owned_.push_back(std::move(disk));
    return std::unique_ptr<journal::Disk>(std::make_unique<Borrowed>(*owned_.back()));
  }

  Status finish(std::string_view name) override {
    if (fails_to_finish_) return Error{ErrorCode::kUnavailable, "backup", "the name could not be given"};
    const auto found = partial_.find(name);
    copies_.emplace(found->first, found->second);
    partial_.erase(found);
    return {};
  }

  void abandon(std::string_view name) override {
    if (const auto found = partial_.find(name); found != partial_.end()) partial_.erase(found);
  }

  /// Returns the backup with this name, or null.
  VirtualDisk* find(std::string_view name) const {
    const auto found = copies_.find(name);
    return found == copies_.end() ? nullptr : found->second;
  }
  bool has_partial(std::string_view name) const { return partial_.contains(name); }
  size_t size() const { return copies_.size(); }
  void remove(std::string_view name) { copies_.erase(copies_.find(name)); }

  void power_cut() {
    for (const auto& disk : owned_) disk->power_cut();
  }
  /// Applies to disks that are begun from now on.
  void set_capacity(uint64_t bytes) { capacity_ = bytes; }
  void fail_to_finish(bool fails) { fails_to_finish_ = fails; }
  /// Returns the disk of an unfinished backup, or null.
  VirtualDisk* find_partial(std::string_view name) const {
    const auto found = partial_.find(name);
    return found == partial_.end() ? nullptr : found->second;
  }

 private:
  /// Forwards everything: the disk outlives the copying.
  class Borrowed final : public journal::Disk {
   public:
    explicit Borrowed(VirtualDisk& disk) : disk_(disk) {}
    std::string name() const override { return disk_.name(); }
    Result<std::vector<std::string>> list() override { return disk_.list(); }
    Result<std::shared_ptr<journal::File>> create(std::string_view name) override {
      return disk_.create(name);
    }
    Result<std::shared_ptr<journal::File>> open(std::string_view name) override { return disk_.open(name); }
    Status remove(std::string_view name) override { return disk_.remove(name); }
    Status rename(std::string_view from, std::string_view to) override { return disk_.rename(from, to); }
    Status sync_directory() override { return disk_.sync_directory(); }
    Result<uint64_t> free_bytes() override { return disk_.free_bytes(); }
    Result<std::unique_ptr<Lock>> lock() override { return disk_.lock(); }

   private:
    VirtualDisk& disk_;
  };

  Random random_;
  std::vector<std::unique_ptr<VirtualDisk>> owned_;
  std::map<std::string, VirtualDisk*, std::less<>> partial_;
  std::map<std::string, VirtualDisk*, std::less<>> copies_;
  uint64_t capacity_ = UINT64_MAX;
  bool fails_to_finish_ = false;
};

}  // namespace delayq::support
