#pragma once

#include <memory>
#include <string>

#include "core/limits.h"
#include "core/result.h"
#include "engine/journal/backup.h"
#include "engine/journal/disk.h"

namespace delayq::journal {

/// A directory of the real file system. Thread-safe as Disk and File require.
class PosixDisk final : public Disk {
 public:
  /// Creates the directory (and its parents) if it is missing.
  static Result<std::unique_ptr<PosixDisk>> open(const std::string& directory);
  /// For read-only use (scratch_disk.h): opens files for reading only; the lock keeps writers out and leaves
  /// no file behind. Creates nothing.
  static Result<std::unique_ptr<PosixDisk>> open_to_read(const std::string& directory);
  ~PosixDisk() override;
  PosixDisk(const PosixDisk&) = delete;
  PosixDisk& operator=(const PosixDisk&) = delete;

  std::string name() const override { return path_; }
  Result<std::vector<std::string>> list() override;
  Result<std::shared_ptr<File>> create(std::string_view name) override;
  Result<std::shared_ptr<File>> open(std::string_view name) override;
  Status remove(std::string_view name) override;
  Status rename(std::string_view from, std::string_view to) override;
  Status sync_directory() override;
  Result<uint64_t> free_bytes() override;
  Result<std::unique_ptr<Lock>> lock() override;

 private:
  PosixDisk(std::string path, int directory, bool only_reads)
      : path_(std::move(path)), directory_(directory), only_reads_(only_reads) {}
  static Result<std::unique_ptr<PosixDisk>> open_existing(const std::string& directory, bool only_reads);
  Result<std::unique_ptr<Lock>> lock_to_read();
  Error not_locked(int lock) const;
  Result<std::shared_ptr<File>> open_with(std::string_view name, int flags);

  std::string path_;
  int directory_;
  bool only_reads_;
};

/// A directory of the real file system with one directory for each backup. Created with the first backup.
class PosixShelf final : public Shelf {
 public:
  explicit PosixShelf(std::string directory) : directory_(std::move(directory)) {}

  std::string path_of(std::string_view name) const override;
  Result<std::unique_ptr<Disk>> begin(std::string_view name) override;
  Status finish(std::string_view name) override;
  void abandon(std::string_view name) override;

 private:
  std::string partial(std::string_view name) const { return path_of(name).append(kPartialEnding); }

  std::string directory_;
};

}  // namespace delayq::journal
