#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/time.h"

namespace delayq::cli {

// How a person reads it.

/// "in 29m58s", "2s ago", "now": as exact as is worth reading at that distance.
std::string relative(Moment now, Moment moment);

/// A job's text on one line of a terminal: without control characters or broken UTF-8, which could do
/// anything there, and cut to about `most` bytes.
std::string printable(std::string_view text, size_t most);
/// A line of JSON that means the same and is harmless on a terminal.
std::string printable_json(std::string_view json);

/// "1,234,567".
std::string grouped(int64_t number);
inline std::string grouped_count(uint64_t count) { return grouped(static_cast<int64_t>(count)); }

/// "1.5 MiB", "17 B".
std::string rough_size(int64_t bytes);

/// Rows of cells in aligned columns, two spaces apart. Cells that are numbers stand to the right. The first
/// row is the heading.
class Table {
 public:
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace delayq::cli
