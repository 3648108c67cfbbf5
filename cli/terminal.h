#pragma once

#include <signal.h>  // NOLINT(modernize-deprecated-headers): sigset_t
#include <string>
#include <termios.h>
#include <vector>

#include "core/time.h"

namespace delayq::cli {

/// The terminal of this process as a screen to draw on, with keys and without echo. When it ends, by whatever
/// way but SIGKILL, everything is as before.
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

  /// Of the terminal that standard output is; 80 x 24 when it is none, or does not tell.
  static Size size();
  void draw(const std::vector<std::string>& lines) const;
  /// Waits for somebody to do something, at most so long.
  Event wait(Millis patience);
  /// REQUIRES: wait() said kKey.
  char key() const { return key_; }

 private:
  Event read_signal() const;
  Event read_key();

  termios before_{};
  bool has_keys_;
  sigset_t mask_before_{};
  int signals_ = -1;
  char key_ = 0;
};

}  // namespace delayq::cli
