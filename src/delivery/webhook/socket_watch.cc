#include "delivery/webhook/socket_watch.h"

#include <cerrno>
#include <cstring>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <fmt/format.h>

namespace delayq::webhook {

namespace {

constexpr size_t kEventsAtOnce = 256;

void add(int epoll, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

void drain(int fd) {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t bytes = ::read(fd, &count, sizeof(count));
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

SocketWatch::SocketWatch(int epoll, int wakeup, int timer)
    : epoll_(epoll), wakeup_(wakeup), timer_fd_(timer) {}

Result<SocketWatch> SocketWatch::open() {
  SocketWatch watch(::epoll_create1(EPOLL_CLOEXEC), ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
                    ::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (watch.epoll_.get() < 0 || watch.wakeup_.get() < 0 || watch.timer_fd_.get() < 0) {
    return Error{ErrorCode::kUnavailable, "webhook",
                 fmt::format("no descriptors left: {}", std::strerror(errno))};
  }
  add(watch.epoll_.get(), watch.wakeup_.get());
  add(watch.epoll_.get(), watch.timer_fd_.get());
  return watch;
}

SocketWatch::Known& SocketWatch::known(int fd) {
  const auto at = static_cast<size_t>(fd);
  if (at >= sockets_.size()) sockets_.resize(at + 64);
  return sockets_[at];
}

void SocketWatch::opened(int fd) { known(fd) = {.wanted = 0, .told = 0, .is_ours = true}; }

void SocketWatch::closing(int fd) {
  tell(fd, 0);
  known(fd) = {};
}

void SocketWatch::tell(int fd, uint32_t what) {
  Known& socket = known(fd);
  if (socket.told == what) return;
  epoll_event event{};
  event.events = what;
  event.data.fd = fd;
  const int operation = what == 0 ? EPOLL_CTL_DEL : socket.told == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
  ::epoll_ctl(epoll_.get(), operation, fd, &event);
  socket.told = what;
}

void SocketWatch::watch(int fd, uint32_t what) {
  Known& socket = known(fd);
  socket.wanted = what;
  // Watching for EPOLLOUT is always stopped: a socket is nearly always writable, and would report it again
  // and again.
  if (what == 0 && socket.is_ours && socket.told == EPOLLIN) return;
  tell(fd, what);
}

void SocketWatch::arm() {
  itimerspec when{};
  if (timer_ > Millis::zero()) {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(timer_);
    when.it_value.tv_sec = seconds.count();
    when.it_value.tv_nsec = std::chrono::nanoseconds(timer_ - seconds).count();
  }
  ::timerfd_settime(timer_fd_.get(), 0, &when, nullptr);
  is_timer_set_ = true;
}

const std::vector<SocketWatch::Event>& SocketWatch::wait(bool& is_timed_out) {
  const bool is_due = timer_ == Millis::zero();
  if (!is_due && !is_timer_set_) arm();
  std::array<epoll_event, kEventsAtOnce> ready;  // NOLINT: filled by the kernel
  const int count = ::epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()), is_due ? 0 : -1);
  events_.clear();
  is_timed_out = is_due;
  for (int i = 0; i < count; ++i) {
    const int fd = ready[static_cast<size_t>(i)].data.fd;
    const uint32_t what = ready[static_cast<size_t>(i)].events;
    if (fd == wakeup_.get()) {
      drain(fd);
    } else if (fd == timer_fd_.get()) {
      drain(fd);
      is_timed_out = true;
    } else if (known(fd).wanted == 0) {
      tell(fd, 0);  // closed, or unexpected bytes; libcurl notices when it uses the socket again
    } else {
      events_.push_back({fd, what});
    }
  }
  if (is_timed_out) set_timer(Millis{-1});
  return events_;
}

void SocketWatch::wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t bytes = ::write(wakeup_.get(), &one, sizeof(one));
}

}  // namespace delayq::webhook
