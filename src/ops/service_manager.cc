#include "ops/service_manager.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <fmt/format.h>

namespace delayq {

namespace {

std::optional<uint64_t> number_of(const char* text) {
  if (text == nullptr) return std::nullopt;
  const std::string_view digits(text);
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

/// Half of what the service manager allows, so that one sign may be late.
Millis sign_interval(const std::function<const char*(const char*)>& variable) {
  const auto microseconds = number_of(variable("WATCHDOG_USEC"));
  if (!microseconds || *microseconds == 0) return {};
  const auto process = number_of(variable("WATCHDOG_PID"));
  if (process && *process != static_cast<uint64_t>(::getpid())) return {};
  constexpr uint64_t kDay = 86'400'000'000;
  return std::max(Millis{1}, Millis{static_cast<int64_t>(std::min(*microseconds, kDay) / 2'000)});
}

}  // namespace

ServiceManager::ServiceManager(const std::function<const char*(const char*)>& variable) {
  const char* const name = variable("NOTIFY_SOCKET");
  if (name == nullptr || (name[0] != '/' && name[0] != '@')) return;
  if (std::strlen(name) >= sizeof(sockaddr_un::sun_path)) return;
  address_ = name;
  if (address_[0] == '@') address_[0] = '\0';
  socket_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const timeval patience{.tv_sec = 1, .tv_usec = 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  every_ = sign_interval(variable);
}

ServiceManager::~ServiceManager() {
  if (socket_ >= 0) ::close(socket_);
}

void ServiceManager::send(std::string_view message) const {
  if (socket_ < 0) return;
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path, address_.data(), address_.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address_.size());
  ::sendto(socket_, message.data(), message.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&to),
           size);
}

void ServiceManager::ready(std::string_view status) {
  send(fmt::format("READY=1\nMAINPID={}\nSTATUS={}", ::getpid(), status));
}

void ServiceManager::reloading(std::chrono::microseconds since_boot) {
  send(fmt::format("RELOADING=1\nMONOTONIC_USEC={}", since_boot.count()));
}

void ServiceManager::stopping(Millis grace) {
  constexpr std::chrono::seconds kForTheRest{30};
  send(fmt::format("STOPPING=1\nSTATUS=stopping\nEXTEND_TIMEOUT_USEC={}",
                   std::chrono::microseconds{grace + kForTheRest}.count()));
}

Moment ServiceManager::turned(Moment now) {
  if (every_ == Millis::zero()) return kNever;
  // A next sign further away than it can be means that the clock was set back.
  if (now >= next_sign_ || next_sign_ > now + every_) {
    send("WATCHDOG=1");
    next_sign_ = now + every_;
  }
  return next_sign_;
}

}  // namespace delayq
