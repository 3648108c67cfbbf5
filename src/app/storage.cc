#include "app/storage.h"

#include <cassert>
#include <filesystem>

#include <fmt/format.h>

#include "app/redis_storage.h"
#include "core/limits.h"
#include "engine/journal/posix_disk.h"
#include "engine/journal/scratch_disk.h"
#include "engine/journal/segments.h"
#include "engine/memory/memory_engine.h"
#include "net/loop.h"

namespace delayq {

namespace {

std::chrono::microseconds steady_micros() {
  return std::chrono::duration_cast<std::chrono::microseconds>(net::Loop::steady_now().time_since_epoch());
}

/// Removes a slash at the end.
std::filesystem::path plain(const std::string& directory) {
  const std::filesystem::path path = std::filesystem::path(directory).lexically_normal();
  return path.has_filename() ? path : path.parent_path();
}

std::filesystem::path backups_beside(const std::string& directory) {
  return plain(directory).parent_path() / "backups";
}

class MemoryStorage final : public Storage {
 public:
  Engine& engine() override { return engine_; }
  std::string describe() override { return "in memory: jobs are gone when the server is"; }

 private:
  MemoryEngine engine_;
};

Result<std::unique_ptr<journal::Disk>> open_disk(const StorageOptions& options) {
  auto disk = options.only_looks ? journal::PosixDisk::open_to_read(options.directory)
                                 : journal::PosixDisk::open(options.directory);
  if (!disk.ok()) return disk.error();
  if (!options.only_looks) return std::unique_ptr<journal::Disk>(*std::move(disk));
  return std::unique_ptr<journal::Disk>(std::make_unique<journal::ScratchDisk>(*std::move(disk)));
}

class JournalStorage final : public Storage {
 public:
  JournalStorage(std::string directory, std::string backups, std::unique_ptr<journal::Disk> disk)
      : directory_(std::move(directory)), shelf_(std::move(backups)), disk_(std::move(disk)) {}

  Status open(journal::JournalOptions options, Moment now, bool must_exist) {
    const auto segments = journal::find_segments(*disk_);
    if (!segments.ok()) return segments.error();
    is_new_ = segments->empty();
    if (is_new_ && must_exist)
      return Error{ErrorCode::kNotFound, "open", fmt::format("{} {}", directory_, kNeverUsed), {}};
    options.backups = &shelf_;
    auto engine = journal::JournalEngine::open(*disk_, io_, options, now);
    if (!engine.ok()) return engine.error();
    engine_ = std::move(*engine);
    return {};
  }

  Engine& engine() override { return *engine_; }
  bool is_new() const override { return is_new_; }
  std::string describe() override {
    std::string text = fmt::format("journal in {}, {} jobs", directory_, engine_->usage().jobs);
    if (engine_->cut_bytes() > 0)
      text += fmt::format(", {} bytes of an unfinished commit cut off", engine_->cut_bytes());
    return text;
  }

 private:
  std::string directory_;
  journal::PosixShelf shelf_;
  std::unique_ptr<journal::Disk> disk_;
  bool is_new_ = false;
  journal::ThreadedIo io_{steady_micros};
  std::unique_ptr<journal::JournalEngine> engine_;
};

}  // namespace

Status check_not_partial(const std::string& directory) {
  const std::string name = plain(directory).filename();
  if (!name.ends_with(kPartialEnding)) return {};
  return in_verb(
      "open",
      invalid(fmt::format("{} is an unfinished backup: a copy is called so until all of it is there. Take a "
                          "finished one, or give the directory another name if it is something else",
                          directory)));
}

Moment Storage::now() const { return net::Loop::now(); }

Result<std::unique_ptr<Storage>> Storage::open(const StorageOptions& options, Moment now, net::Loop* loop) {
  if (options.engine == EngineKind::kRedis) {
    assert(loop != nullptr);
    return open_redis_storage(options, *loop);
  }
  if (options.engine == EngineKind::kMemory)
    return std::unique_ptr<Storage>(std::make_unique<MemoryStorage>());
  if (Status status = check_not_partial(options.directory); !status.ok()) return status.error();
  auto disk = open_disk(options);
  if (!disk.ok()) return disk.error();
  // An absolute path, since clients are told where a copy is.
  const std::string backups = std::filesystem::absolute(
      options.backups.empty() ? backups_beside(options.directory) : std::filesystem::path(options.backups));
  auto storage = std::make_unique<JournalStorage>(options.directory, backups, std::move(*disk));
  journal::JournalOptions journal = options.journal;
  journal.compacts = !options.only_looks;
  if (Status status = storage->open(journal, now, options.must_exist); !status.ok()) return status.error();
  return std::unique_ptr<Storage>(std::move(storage));
}

}  // namespace delayq
