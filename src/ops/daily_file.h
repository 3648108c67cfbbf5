#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/result.h"
#include "core/time.h"

namespace delayq {

/// A file that lines are appended to, with a new one for each day. When the first line of another day (UTC)
/// comes, what is there is renamed after the day of its own lines, to "name.2026-11-14", and files of days
/// before the last `keep_days` are removed. The time of a line is an argument; what day the lines of an
/// earlier run are of is told by the file's own time.
///
/// What cannot be written is lost, and counted: a server does not stop for its log. Threads: none, and no
/// locks.
class DailyFile {
 public:
  struct Options {
    std::string path;
    uint32_t keep_days = 0;  ///< 0: all of them
  };

  /// Makes the file, and the folders on the way, when they are not there. kUnavailable when that cannot be.
  static Result<std::unique_ptr<DailyFile>> open(Options options);
  ~DailyFile();
  DailyFile(const DailyFile&) = delete;
  DailyFile& operator=(const DailyFile&) = delete;

  /// One line or several of the same day, each with its end. A day before that of the last lines starts no
  /// new file.
  void write(Moment at, std::string_view lines);
  /// Opens the file by its name again, for when another program has moved it away. On an error the old one is
  /// used on.
  Status reopen();
  uint64_t lost_bytes() const { return lost_bytes_; }

 private:
  explicit DailyFile(Options options) : options_(std::move(options)) {}
  void rotate(std::chrono::sys_days today);
  void remove_before(std::chrono::sys_days oldest);

  Options options_;
  int descriptor_ = -1;
  bool is_a_file_ = false;  ///< what is no file, such as a terminal or a pipe, is never renamed
  std::optional<std::chrono::sys_days> day_;  ///< of its last lines; none while it is empty
  uint64_t lost_bytes_ = 0;
};

}  // namespace delayq
