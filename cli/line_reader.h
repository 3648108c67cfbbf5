#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>

#include "core/result.h"

namespace delayq::cli {

/// Lines of a text of any length, one at a time, in bounded memory.
class LineReader {
 public:
  /// Above this a line is an error: it cannot be a job.
  static constexpr size_t kMostBytes = size_t{192} << 20;

  explicit LineReader(std::istream& in, size_t most_bytes = kMostBytes) : in_(in), most_(most_bytes) {}

  /// The next line without its end, or false behind the last one. kTooLarge: the line is too long.
  Result<bool> next(std::string& line);
  /// Of the line that next() brought last, from 1.
  uint64_t number() const { return number_; }
  /// Taken off the text so far.
  uint64_t bytes() const { return bytes_; }

 private:
  std::istream& in_;
  size_t most_;
  uint64_t number_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace delayq::cli
