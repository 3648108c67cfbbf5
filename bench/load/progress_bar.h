#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace delayq::bench {

/// A bar on standard error, when that is a terminal; nothing otherwise. It is gone when it ends.
class [[nodiscard]] ProgressBar {
 public:
  ProgressBar(std::string what, uint64_t total);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// Cheap when it was called a moment ago.
  void show(uint64_t done);

  /// The bar as text, 60 columns or so.
  static std::string text(const std::string& what, uint64_t done, uint64_t total, double seconds);

 private:
  std::string what_;
  uint64_t total_;
  bool is_terminal_;
  std::chrono::steady_clock::time_point begun_;
  std::chrono::steady_clock::time_point shown_;
};

}  // namespace delayq::bench
