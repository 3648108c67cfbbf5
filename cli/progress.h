#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/cli.h"

namespace delayq::cli {

/// How far long work is, on standard error when that is a terminal; nothing otherwise. It is gone when the
/// work is over.
class [[nodiscard]] Progress {
 public:
  /// `total` is in the unit of show()'s `done`; 0: unknown.
  Progress(const Surroundings& world, std::string what, uint64_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Cheap when it was called a moment ago.
  void show(uint64_t done, uint64_t count);

  /// "pushing [#####.......]  42 %  1,234", or without the bar when the total is unknown.
  static std::string text(const std::string& what, uint64_t done, uint64_t total, uint64_t count);

 private:
  const Surroundings& world_;
  std::string what_;
  uint64_t total_;
  Moment shown_{};
};

/// Of all files together, for a Progress; 0 when it cannot be told, as of a pipe.
uint64_t total_bytes(const std::vector<std::string>& files);

}  // namespace delayq::cli
