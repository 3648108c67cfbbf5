#pragma once

#include <string>

#include "core/limits.h"
#include "engine/journal/backup.h"

namespace delayq::journal {

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
