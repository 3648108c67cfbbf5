#include "bench/load/lanes.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>

#include <fmt/format.h>

namespace delayq::bench {

namespace {

/// How long a lane waits at most for the many bytes it hopes for.
constexpr Millis kHope{20};

Error lane_failed(std::string detail) { return {ErrorCode::kUnavailable, "load", std::move(detail), {}}; }

Status watch(const Descriptor& poller, int operation, int socket, size_t lane, bool is_sending) {
  epoll_event event{};
  event.events = is_sending ? EPOLLIN | EPOLLOUT : EPOLLIN;
  event.data.u32 = static_cast<uint32_t>(lane);
  if (::epoll_ctl(poller.get(), operation, socket, &event) != 0)
    return lane_failed(fmt::format("epoll_ctl: {}", std::strerror(errno)));
  return {};
}

}  // namespace

Result<Lanes> Lanes::connect(const std::vector<Address>& servers, size_t count) {
  Lanes lanes;
  lanes.poller_ = Descriptor(::epoll_create1(EPOLL_CLOEXEC));
  if (!lanes.poller_.is_open()) return lane_failed("no epoll to be had");
  lanes.states_.resize(count);
  lanes.events_.resize(std::min<size_t>(count, 1'024));
  for (size_t i = 0; i < count; ++i) {
    Result<Descriptor> socket = connect_to(servers[i % servers.size()]);
    if (!socket.ok()) return socket.error();
    if (::fcntl(socket->get(), F_SETFL, O_NONBLOCK) != 0) return lane_failed("a socket that only blocks");
    if (Status watched = watch(lanes.poller_, EPOLL_CTL_ADD, socket->get(), i, false); !watched.ok())
      return watched.error();
    lanes.connections_.emplace_back(std::move(*socket));
  }
  return lanes;
}

Status Lanes::flush(size_t lane) {
  Connection& connection = connections_[lane];
  if (Status sent = connection.send(); !sent.ok()) return sent;
  if (connection.is_sending() == states_[lane].is_sending) return {};
  states_[lane].is_sending = connection.is_sending();
  return watch(poller_, EPOLL_CTL_MOD, connection.number(), lane, connection.is_sending());
}

Result<std::span<const uint32_t>> Lanes::wait(Millis limit) {
  ready_.clear();
  const auto timeout = static_cast<int>(std::min(limit, kHope).count());
  const int count = ::epoll_wait(poller_.get(), events_.data(), static_cast<int>(events_.size()), timeout);
  if (count < 0 && errno != EINTR) return lane_failed(fmt::format("epoll_wait: {}", std::strerror(errno)));
  for (int i = 0; i < count; ++i) ready_.push_back(events_[static_cast<size_t>(i)].data.u32);
  for (size_t i = 0; count == 0 && i < connections_.size(); ++i) {
    if (connections_[i].waits_for_many()) ready_.push_back(static_cast<uint32_t>(i));
  }
  return std::span<const uint32_t>(ready_);
}

}  // namespace delayq::bench
