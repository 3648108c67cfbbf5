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

/// A file that lines are appended to, with a new one for each day. With the first line of another day (UTC),
/// the file is renamed after the day of its lines, to "name.2026-11-14", and files older than the last
/// `keep_days` days are removed. The time of a line is an argument; the day of lines of an earlier run is the
/// day of the file's modification time.
///
/// Lines that cannot be written are lost, and counted: a server does not stop because of its log. Not
/// thread-safe.
class DailyFile {
 public:
  struct Options {
    std::string path;
    uint32_t keep_days = 0;  ///< 0: all of them
  };

  /// Creates the file and its folders if they do not exist. Fails with kUnavailable.
  static Result<std::unique_ptr<DailyFile>> open(Options options);
  ~DailyFile();
  DailyFile(const DailyFile&) = delete;
  DailyFile& operator=(const DailyFile&) = delete;

  /// Writes one line or several of the same day, each with its end. A day before that of the last lines does
  /// not start a new file.
  void write(Moment at, std::string_view lines);
  /// Opens the file by its name again, after another program has moved it. On an error the old one stays in
  /// use.
  Status reopen();
  uint64_t lost_bytes() const { return lost_bytes_; }

 private:
  explicit DailyFile(Options options) : options_(std::move(options)) {}
  void rotate(std::chrono::sys_days today);
  void remove_before(std::chrono::sys_days oldest);

  Options options_;
  int descriptor_ = -1;
  bool is_a_file_ = false;  ///< anything else, such as a terminal or a pipe, is never renamed
  std::optional<std::chrono::sys_days> day_;  ///< of its last lines; none while it is empty
  uint64_t lost_bytes_ = 0;
};

}  // namespace delayq
