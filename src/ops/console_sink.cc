#include "ops/console_sink.h"

#include <poll.h>
#include <unistd.h>

#include <fmt/format.h>

namespace delayq {

namespace {

/// A pipe that can be written to has room for 4,096 bytes, which is more than a line has. One whose reader is
/// gone can be written to as well, and says so at once.
bool has_room() {
  pollfd console{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  return ::poll(&console, 1, 0) != 0;
}

}  // namespace

void ConsoleSink::log(const spdlog::details::log_msg& message) {
  const std::lock_guard lock(mutex_);
  if (!has_room()) {
    ++left_out_;
    return;
  }
  if (left_out_ > 0) {
    const std::string told =
        fmt::format("log: lines that are missing here, since nobody read standard error: {}", left_out_);
    left_out_ = 0;
    Console::log({message.time, message.source, message.logger_name, spdlog::level::warn, told});
    if (!has_room()) {
      ++left_out_;
      return;
    }
  }
  Console::log(message);
}

}  // namespace delayq
