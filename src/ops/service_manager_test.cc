#include <array>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/process.h"

namespace delayq {
namespace {

using namespace std::chrono_literals;

constexpr Moment kStart = from_unix_ms(1'700'000'000'000);

/// The service manager's end.
class NotifySocket {
 public:
  explicit NotifySocket(std::string name)
      : name_(std::move(name)), socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name_.data(), name_.size());
    if (name_[0] == '@') address.sun_path[0] = '\0';
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name_.size());
    EXPECT_EQ(::bind(socket_, reinterpret_cast<const sockaddr*>(&address), size), 0) << std::strerror(errno);
  }
  ~NotifySocket() {
    ::close(socket_);
    if (name_[0] == '/') std::filesystem::remove(name_);
  }
  NotifySocket(const NotifySocket&) = delete;
  NotifySocket& operator=(const NotifySocket&) = delete;

  /// The oldest message that was not read yet; empty when there is none.
  std::string next() const {
    std::array<char, 512> room{};
    const ssize_t size = ::recv(socket_, room.data(), room.size(), 0);
    return {room.data(), size > 0 ? static_cast<size_t>(size) : 0};
  }

 private:
  std::string name_;
  int socket_;
};

using Environment = std::map<std::string, std::string>;

auto lookup(const Environment& environment) {
  return [&environment](const char* name) -> const char* {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  };
}

std::string socket_path() { return testing::TempDir() + "/delayq_notify_" + std::to_string(::getpid()); }

TEST(ServiceManager, tells_a_life) {
  for (const std::string& name : {socket_path(), "@delayq_notify_" + std::to_string(::getpid())}) {
    const NotifySocket listener(name);
    const Environment environment{{"NOTIFY_SOCKET", name}};
    ServiceManager manager(lookup(environment));
    manager.ready("serving");
    EXPECT_EQ(listener.next(), "READY=1\nMAINPID=" + std::to_string(::getpid()) + "\nSTATUS=serving");
    manager.reloading(123us);
    EXPECT_EQ(listener.next(), "RELOADING=1\nMONOTONIC_USEC=123");
    manager.stopping(10s);
    EXPECT_EQ(listener.next(), "STOPPING=1\nSTATUS=stopping\nEXTEND_TIMEOUT_USEC=40000000");
    EXPECT_EQ(manager.turned(kStart), kNever) << "nobody asked for signs of life";
    EXPECT_EQ(listener.next(), "");
  }
}

TEST(ServiceManager, gives_a_sign_of_life_twice_in_the_time_allowed) {
  const NotifySocket listener(socket_path());
  const Environment environment{{"NOTIFY_SOCKET", socket_path()},
                                {"WATCHDOG_USEC", "30000000"},
                                {"WATCHDOG_PID", std::to_string(::getpid())}};
  ServiceManager manager(lookup(environment));
  EXPECT_EQ(manager.turned(kStart), kStart + 15s);
  EXPECT_EQ(listener.next(), "WATCHDOG=1");
  EXPECT_EQ(manager.turned(kStart + 14s), kStart + 15s);
  EXPECT_EQ(listener.next(), "") << "it is not time yet";
  EXPECT_EQ(manager.turned(kStart + 15s), kStart + 30s);
  EXPECT_EQ(listener.next(), "WATCHDOG=1");
  EXPECT_EQ(manager.turned(kStart - 24h), kStart - 24h + 15s) << "the clock was set back";
  EXPECT_EQ(listener.next(), "WATCHDOG=1");
  manager.turned(kStart + 24h);
  EXPECT_EQ(listener.next(), "WATCHDOG=1");
}

TEST(ServiceManager, a_watchdog_for_another_process_is_not_ours) {
  const NotifySocket listener(socket_path());
  for (const Environment& more :
       {Environment{{"WATCHDOG_USEC", "30000000"}, {"WATCHDOG_PID", "1"}},
        Environment{{"WATCHDOG_USEC", "0"}}, Environment{{"WATCHDOG_USEC", "soon"}}}) {
    Environment environment = more;
    environment["NOTIFY_SOCKET"] = socket_path();
    EXPECT_EQ(ServiceManager(lookup(environment)).turned(kStart), kNever);
    EXPECT_EQ(listener.next(), "");
  }
}

TEST(ServiceManager, says_nothing_where_nobody_listens) {
  for (const char* name : {"", "relative", "/proc/no/such/socket"}) {
    const Environment environment{{"NOTIFY_SOCKET", name}};
    ServiceManager manager(lookup(environment));
    manager.ready("serving");
    manager.stopping(0s);
  }
  const Environment too_long{{"NOTIFY_SOCKET", "/" + std::string(200, 'x')}};
  ServiceManager(lookup(too_long)).ready("serving");
  const Environment empty;
  ServiceManager(lookup(empty)).ready("serving");
}

}  // namespace
}  // namespace delayq
