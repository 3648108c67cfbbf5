#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): sigset_t
#include <string>
#include <string_view>
#include <termios.h>
#include <vector>

#include "cli/cli.h"
#include "cli/connection.h"
#include "core/time.h"

namespace delayq::cli {

// How much room a text takes on a terminal, whose characters are not all equally wide: those of Chinese,
// Japanese and Korean, and most pictures, take two columns, marks that go above another character take none.
// Bytes that are not UTF-8 take one each.

/// Of a text without control characters.
size_t columns_of(std::string_view text);

/// The beginning of a text that takes at most this many columns. A wide character of which only half would
/// fit is left out.
std::string cut_to_columns(std::string_view text, size_t most);

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

/// The terminal of this process as a screen to draw on, with keys and without echo. However the program ends,
/// except by SIGKILL, the terminal is restored.
class Terminal {
 public:
  enum class Event : char { kNothing, kKey, kUp, kDown, kPageUp, kPageDown, kResized, kStop };
  struct Size {
    size_t width, height;
  };

  Terminal();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  /// Of the terminal that standard output is; 80 x 24 if it is not a terminal, or its size is unknown.
  static Size size();
  void draw(const std::vector<std::string>& lines) const;
  /// Waits for a key or a signal, at most this long. Keys that were pressed while this thread waited for a
  /// server come first; of these, q and Ctrl-C end the wait for the server.
  Event wait(Millis patience);
  /// REQUIRES: wait() said kKey.
  char key() const { return key_; }

 private:
  struct Input {
    Event event = Event::kNothing;
    char key = 0;  ///< of kKey
    bool is_end() const { return event == Event::kStop || (event == Event::kKey && key == 'q'); }
  };
  Input read(Millis patience) const;
  Input read_signal() const;
  static Input read_key();
  /// Keeps what was pressed. Returns whether the user wants to end.
  bool note();

  termios before_{};
  bool has_keys_;
  sigset_t mask_before_{};
  int signals_ = -1;
  char key_ = 0;
  std::deque<Input> noted_;
  std::optional<WaitGuard> guard_;
};

/// Shows the progress of long work on standard error, if that is a terminal. The line is removed at the end.
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

/// The size of all files together, for a Progress; 0 when it is unknown, as for a pipe.
uint64_t total_bytes(const std::vector<std::string>& files);

}  // namespace delayq::cli
