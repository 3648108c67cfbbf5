#pragma once

#include <string>

namespace delayq::bench {

/// A directory below $TMPDIR, or where one is (so on the disk one works on, not on a RAM disk), that goes
/// when it ends. path() is empty when none could be made.
class [[nodiscard]] TempDirectory {
 public:
  TempDirectory();
  ~TempDirectory();
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace delayq::bench
