#include "engine/journal/posix_shelf.h"

#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "engine/journal/posix_disk.h"

namespace delayq::journal {

namespace {

Error failure(const std::string& path, const std::error_code& error) {
  return {ErrorCode::kUnavailable, "backup", fmt::format("{}: {}", path, error.message())};
}

}  // namespace

std::string PosixShelf::path_of(std::string_view name) const {
  return (std::filesystem::path(directory_) / name).string();
}

Result<std::unique_ptr<Disk>> PosixShelf::begin(std::string_view name) {
  std::error_code error;
  if (std::filesystem::exists(path_of(name), error)) {
    return Error{ErrorCode::kConflict, "backup",
                 fmt::format("{} is there already; remove it, or choose another name", path_of(name))};
  }
  std::filesystem::remove_all(partial(name), error);
  if (error) return failure(partial(name), error);
  Result<std::unique_ptr<PosixDisk>> disk = PosixDisk::open(partial(name));
  if (!disk.ok()) return disk.error();
  return std::unique_ptr<Disk>(std::move(*disk));
}

Status PosixShelf::finish(std::string_view name) {
  std::error_code error;
  std::filesystem::rename(partial(name), path_of(name), error);
  if (error) return failure(partial(name), error);
  Result<std::unique_ptr<PosixDisk>> shelf = PosixDisk::open(directory_);
  Status status = shelf.ok() ? (*shelf)->sync_directory() : Status(shelf.error());
  // A name that may be gone after a power cut was not given.
  if (!status.ok()) std::filesystem::rename(path_of(name), partial(name), error);
  return status;
}

void PosixShelf::abandon(std::string_view name) {
  std::error_code ignored;
  std::filesystem::remove_all(partial(name), ignored);
}

}  // namespace delayq::journal
