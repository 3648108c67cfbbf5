#pragma once

#include <memory>
#include <string>

#include "core/limits.h"
#include "core/result.h"
#include "engine/journal/backup.h"
#include "engine/journal/disk.h"

namespace delayq::journal {

/// A directory of the real file system. Thread-safe as Disk and File ask for.
class PosixDisk final : public Disk {
 public:
  /// Makes the directory (and its parents) when it is missing.
  static Result<std::unique_ptr<PosixDisk>> open(const std::string& directory);
  /// For who only looks (scratch_disk.h): files are opened to be read, and the lock keeps out writers without
  /// a trace. Nothing is made.
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

/// A directory of the real file system with a directory for each copy. Made when the first copy is.
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
