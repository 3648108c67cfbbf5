#include "bench/load/temp_directory.h"

#include <cstdlib>
#include <filesystem>

namespace delayq::bench {

TempDirectory::TempDirectory() {
  const char* const wanted = std::getenv("TMPDIR");
  std::error_code ignored;
  const std::filesystem::path parent =
      wanted != nullptr && *wanted != '\0' ? wanted : std::filesystem::current_path(ignored);
  std::string pattern = (parent / "delayq-bench-XXXXXX").string();
  if (::mkdtemp(pattern.data()) != nullptr) path_ = pattern;
}

TempDirectory::~TempDirectory() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace delayq::bench
