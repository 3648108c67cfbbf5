#pragma once

#include <memory>
#include <string>

#include "core/result.h"

namespace delayq {

/// A file with this process's number, locked for as long as this lives and removed afterwards. The lock
/// decides, not the number: a file that a killed server left behind is taken over.
class PidFile {
 public:
  /// kUnavailable when another process holds it (the detail says which), or when it cannot be written. To be
  /// called after a fork(): the lock and the number are those of the caller.
  static Result<std::unique_ptr<PidFile>> take(const std::string& path);
  ~PidFile();
  PidFile(const PidFile&) = delete;
  PidFile& operator=(const PidFile&) = delete;

 private:
  PidFile(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

  std::string path_;
  int descriptor_;
};

}  // namespace delayq
