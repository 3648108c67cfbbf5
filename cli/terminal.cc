#include "cli/terminal.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <ostream>
#include <poll.h>
#include <string_view>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>

#include "core/duration.h"
#include "core/text.h"

namespace delayq::cli {

namespace {

struct Range {
  char32_t first, last;
};

/// The wide ones as std::format counts them (C++20, [format.string.std]).
constexpr std::array kWide{
    Range{0x1100, 0x115f},   Range{0x2329, 0x232a},   Range{0x2e80, 0x303e},   Range{0x3040, 0xa4cf},
    Range{0xac00, 0xd7a3},   Range{0xf900, 0xfaff},   Range{0xfe10, 0xfe19},   Range{0xfe30, 0xfe6f},
    Range{0xff00, 0xff60},   Range{0xffe0, 0xffe6},   Range{0x1f300, 0x1f64f}, Range{0x1f900, 0x1f9ff},
    Range{0x20000, 0x2fffd}, Range{0x30000, 0x3fffd},
};

/// Combining marks, joiners and variation selectors.
constexpr std::array kNarrowest{
    Range{0x0300, 0x036f}, Range{0x1ab0, 0x1aff}, Range{0x1dc0, 0x1dff}, Range{0x200b, 0x200f},
    Range{0x20d0, 0x20ff}, Range{0xfe00, 0xfe0f}, Range{0xfe20, 0xfe2f},
};

template <size_t kCount>
bool is_in(const std::array<Range, kCount>& ranges, char32_t code_point) {
  return std::any_of(ranges.begin(), ranges.end(), [code_point](const Range& range) {
    return range.first <= code_point && code_point <= range.last;
  });
}

/// Removes the first character of the text and returns its columns.
size_t take_columns(std::string_view& text) {
  const std::optional<char32_t> code_point = take_code_point(text);
  if (!code_point) {
    text.remove_prefix(1);
    return 1;
  }
  if (*code_point < 0x300) return 1;
  if (is_in(kNarrowest, *code_point)) return 0;
  return is_in(kWide, *code_point) ? 2 : 1;
}

}  // namespace

size_t columns_of(std::string_view text) {
  size_t columns = 0;
  while (!text.empty()) columns += take_columns(text);
  return columns;
}

std::string cut_to_columns(std::string_view text, size_t most) {
  std::string_view rest = text;
  size_t columns = 0;
  while (!rest.empty()) {
    std::string_view behind = rest;
    columns += take_columns(behind);
    if (columns > most) break;
    rest = behind;
  }
  return std::string(text.substr(0, text.size() - rest.size()));
}

namespace {

/// Half a second matters to a job that is due in two, not to one that is due next week.
Millis grain_at(Millis distance) {
  if (distance < std::chrono::seconds{1}) return Millis{1};
  if (distance < std::chrono::seconds{10}) return Millis{100};
  if (distance < std::chrono::hours{1}) return std::chrono::seconds{1};
  if (distance < std::chrono::days{2}) return std::chrono::minutes{1};
  return std::chrono::hours{1};
}

bool is_number(std::string_view cell) {
  return !cell.empty() && cell.find_first_not_of("0123456789,") == std::string_view::npos;
}

/// Whether a terminal only shows the character.
bool is_harmless(char32_t c) {
  // Characters that change the direction of the text can make it look like another one.
  const bool turns = (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
  return !is_control(c) && !turns;
}

}  // namespace

std::string relative(Moment now, Moment moment) {
  const Millis distance = moment > now ? moment - now : now - moment;
  const Millis shown = distance - distance % grain_at(distance);
  if (shown == Millis::zero()) return "now";
  const std::string text = format_duration(shown);
  return moment > now ? "in " + text : text + " ago";
}

std::string printable_json(std::string_view json) {
  std::string out;
  while (!json.empty()) {
    const std::string_view before = json;
    const std::optional<char32_t> code_point = take_code_point(json);
    if (!code_point) json.remove_prefix(1);
    // Only texts have such characters: JSON has none between them but spaces and line ends.
    if (code_point && *code_point >= 0x7f && !is_harmless(*code_point)) {
      out += fmt::format("\\u{:04x}", static_cast<uint32_t>(*code_point));
    } else {
      out += before.substr(0, before.size() - json.size());
    }
  }
  return out;
}

std::string printable(std::string_view text, size_t most) {
  std::string out;
  while (!text.empty()) {
    if (out.size() >= most) return out + "...";
    const std::string_view before = text;
    const std::optional<char32_t> code_point = take_code_point(text);
    if (!code_point) text.remove_prefix(1);
    const std::string_view bytes = before.substr(0, before.size() - text.size());
    if (code_point && is_harmless(*code_point)) {
      out += bytes;
    } else {
      for (const char byte : bytes)
        out += fmt::format("\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(byte)));
    }
  }
  return out;
}

std::string grouped(int64_t number) {
  std::string text = fmt::format("{}", number);
  const size_t first = number < 0 ? 1 : 0;
  for (size_t at = text.size(); at > first + 3;) {
    at -= 3;
    text.insert(at, ",");
  }
  return text;
}

std::string rough_size(int64_t bytes) {
  constexpr std::array<std::string_view, 5> kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  auto size = static_cast<double>(bytes);
  size_t unit = 0;
  while (size >= 1'024 && unit + 1 < kUnits.size()) {
    size /= 1'024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", size, kUnits[unit]);
}

std::string Table::text() const {
  std::vector<size_t> widths;
  std::vector<bool> numbers;
  for (size_t r = 0; r < rows_.size(); ++r) {
    widths.resize(std::max(widths.size(), rows_[r].size()));
    numbers.resize(widths.size(), true);
    for (size_t c = 0; c < rows_[r].size(); ++c) {
      widths[c] = std::max(widths[c], columns_of(rows_[r][c]));
      if (r > 0) numbers[c] = numbers[c] && is_number(rows_[r][c]);
    }
  }
  std::string out;
  for (const auto& row : rows_) {
    std::string line;
    for (size_t c = 0; c < row.size(); ++c) {
      const std::string padding(widths[c] - columns_of(row[c]), ' ');
      if (c > 0) line += "  ";
      line += numbers[c] ? padding + row[c] : row[c] + padding;
    }
    line.resize(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

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
  guard_.emplace(std::array{signals_, has_keys_ ? STDIN_FILENO : -1}, [this] { return note(); });
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
  Input input;
  if (noted_.empty()) {
    input = read(patience);
  } else {
    input = noted_.front();
    noted_.pop_front();
  }
  key_ = input.key;
  return input.event;
}

bool Terminal::note() {
  const Input input = read(Millis::zero());
  if (input.is_end()) noted_.clear();  // it comes first
  noted_.push_back(input);
  return input.is_end();
}

Terminal::Input Terminal::read(Millis patience) const {
  std::array<pollfd, 2> entries{{{.fd = signals_, .events = POLLIN, .revents = 0},
                                 {.fd = has_keys_ ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0}}};
  if (poll(entries.data(), entries.size(), static_cast<int>(std::max<int64_t>(patience.count(), 0))) <= 0)
    return {};
  return entries[0].revents != 0 ? read_signal() : read_key();
}

Terminal::Input Terminal::read_signal() const {
  signalfd_siginfo info{};
  if (::read(signals_, &info, sizeof info) != sizeof info) return {};
  return {info.ssi_signo == SIGWINCH ? Event::kResized : Event::kStop};
}

Terminal::Input Terminal::read_key() {
  std::array<char, 16> bytes;
  const ssize_t got = ::read(STDIN_FILENO, bytes.data(), bytes.size());
  if (got <= 0) return {Event::kStop};  // the terminal is gone
  const std::string_view text(bytes.data(), static_cast<size_t>(got));
  if (text == "\x1b[A" || text == "\x1bOA") return {Event::kUp};
  if (text == "\x1b[B" || text == "\x1bOB") return {Event::kDown};
  if (text == "\x1b[5~") return {Event::kPageUp};
  if (text == "\x1b[6~") return {Event::kPageDown};
  // While a server hangs, somebody presses more than one key.
  if (text.find(kControlC) != std::string_view::npos) return {Event::kStop};
  if (text[0] != '\x1b' && text.find('q') != std::string_view::npos) return {Event::kKey, 'q'};
  return {Event::kKey, text[0]};
}

namespace {

constexpr Millis kEvery{100};

}  // namespace

Progress::Progress(const Surroundings& world, std::string what, uint64_t total)
    : world_(world), what_(std::move(what)), total_(total) {}

Progress::~Progress() {
  if (world_.err_is_terminal && shown_ != Moment{}) world_.err << "\r\x1b[K" << std::flush;
}

void Progress::show(uint64_t done, uint64_t count) {
  if (!world_.err_is_terminal) return;
  const Moment now = world_.now();
  if (now - shown_ < kEvery && now >= shown_) return;
  shown_ = now;
  world_.err << "\r" << text(what_, done, total_, count) << "\x1b[K" << std::flush;
}

std::string Progress::text(const std::string& what, uint64_t done, uint64_t total, uint64_t count) {
  constexpr uint64_t kCells = 24;
  const std::string number = grouped(static_cast<int64_t>(count));
  if (total == 0) return fmt::format("{}  {}", what, number);
  const uint64_t share = std::min(done, total);
  const uint64_t full = kCells * share / total;
  return fmt::format("{} [{}{}] {:>3} %  {}", what, std::string(full, '#'), std::string(kCells - full, '.'),
                     100 * share / total, number);
}

uint64_t total_bytes(const std::vector<std::string>& files) {
  uint64_t total = 0;
  for (const std::string& file : files) {
    std::error_code error;
    const uintmax_t size = std::filesystem::file_size(file, error);
    if (error) return 0;
    total += size;
  }
  return total;
}

}  // namespace delayq::cli
