#include "cli/terminal.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <poll.h>
#include <string_view>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace delayq::cli {

namespace {

// The alternate screen, and no cursor on it.
constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l";
constexpr std::string_view kLeave = "\x1b[?25h\x1b[?1049l";
constexpr char kControlC = 3;

void put(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDOUT_FILENO, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace

Terminal::Terminal() : has_keys_(tcgetattr(STDIN_FILENO, &before_) == 0) {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH}) sigaddset(&set, number);
  pthread_sigmask(SIG_BLOCK, &set, &mask_before_);
  signals_ = signalfd(-1, &set, SFD_CLOEXEC);
  if (has_keys_) {
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG);
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  }
  put(kEnter);
}

Terminal::~Terminal() {
  put(kLeave);
  if (has_keys_) tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  close(signals_);
  pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

Terminal::Size Terminal::size() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {80, 24};
  return {size.ws_col, size.ws_row};
}

void Terminal::draw(const std::vector<std::string>& lines) const {
  std::string text = "\x1b[H";
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) text += "\r\n";
    text += lines[i] + "\x1b[K";
  }
  put(text + "\x1b[J");
}

Terminal::Event Terminal::wait(Millis patience) {
  std::array<pollfd, 2> entries{{{.fd = signals_, .events = POLLIN, .revents = 0},
                                 {.fd = has_keys_ ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0}}};
  if (poll(entries.data(), entries.size(), static_cast<int>(std::max<int64_t>(patience.count(), 0))) <= 0)
    return Event::kNothing;
  return entries[0].revents != 0 ? read_signal() : read_key();
}

Terminal::Event Terminal::read_signal() const {
  signalfd_siginfo info{};
  if (read(signals_, &info, sizeof info) != sizeof info) return Event::kNothing;
  return info.ssi_signo == SIGWINCH ? Event::kResized : Event::kStop;
}

Terminal::Event Terminal::read_key() {
  std::array<char, 16> bytes;
  const ssize_t got = read(STDIN_FILENO, bytes.data(), bytes.size());
  if (got <= 0) return Event::kStop;  // the terminal is gone
  const std::string_view text(bytes.data(), static_cast<size_t>(got));
  if (text == "\x1b[A" || text == "\x1bOA") return Event::kUp;
  if (text == "\x1b[B" || text == "\x1bOB") return Event::kDown;
  if (text == "\x1b[5~") return Event::kPageUp;
  if (text == "\x1b[6~") return Event::kPageDown;
  if (text[0] == kControlC) return Event::kStop;
  key_ = text[0];
  return Event::kKey;
}

}  // namespace delayq::cli
