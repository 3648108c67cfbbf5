#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "resp/value.h"
#include "tests/support/child_process.h"
#include "tests/support/redis_wire.h"
#include "tests/support/temporary_directory.h"

namespace delayq::support {

/// A port of 127.0.0.1 on which no server listens now.
uint16_t free_port();

/// Arguments for a redis-server that only tests use: no persistence, replicas without delay.
std::vector<std::string> usual_redis_arguments();

/// Calls `is_so` again and again until it returns true. Throws after `seconds`, naming `what`, so that a
/// broken test fails instead of hanging.
void wait_until(std::string_view what, const std::function<bool()>& is_so, int seconds = 20);

/// A separate redis-server on 127.0.0.1, in a directory that is removed with it. The destructor kills it by
/// its pid, and the kernel kills it if the test dies first. It is bound to the thread that creates it,
/// which must outlive it.
///
///   RedisProcess redis;                          // no persistence
///   RedisProcess redis({"--appendonly", "yes"}); // and it has its data again after kill() and start()
class RedisProcess {
 public:
  explicit RedisProcess(const std::vector<std::string>& arguments = {});
  /// For a server that needs more arguments before start(); see set_arguments().
  struct NotYet {};
  explicit RedisProcess(NotYet) : port_(free_port()) {}
  ~RedisProcess();
  RedisProcess(const RedisProcess&) = delete;
  RedisProcess& operator=(const RedisProcess&) = delete;

  uint16_t port() const { return port_; }
  const TemporaryDirectory& directory() const { return directory_; }

  /// Its arguments, besides port and directory.
  void set_arguments(std::vector<std::string> arguments) { arguments_ = std::move(arguments); }

  /// kill -9, and waits until it has ended.
  void kill();
  /// Starts it on the same port with the same files. Returns when it replies to PING.
  void start();
  /// SIGSTOP: connections stay open, but there are no replies.
  void pause() { process_.pause(); }
  void resume() { process_.resume(); }
  bool is_running() const { return process_.is_running(); }

  /// Runs a command on a connection that is kept for this. Throws if there is no reply; an
  /// error reply is a value.
  resp::Value command(std::initializer_list<std::string_view> words);
  /// Closes the connections of all other clients.
  void kill_clients();

 private:
  void launch();
  void wait_for_ping();

  TemporaryDirectory directory_;
  uint16_t port_ = 0;
  std::vector<std::string> arguments_;
  ChildProcess process_;
  std::unique_ptr<RedisWire> wire_;
};

}  // namespace delayq::support
