#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <sys/types.h>
#include <vector>

/// Servers and directories for the tests of the library. They know only what a user knows.
namespace sdk_test {

constexpr std::chrono::seconds kDeadline{60};

/// Removed with all that is in it.
class TempDirectory {
 public:
  TempDirectory();
  ~TempDirectory();
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// The program of the environment variable DELAYQ, or the one that was built.
std::string server_program();

/// A `delayq serve` on free ports, with a directory of its own. Killed at the end.
class Server {
 public:
  explicit Server(std::string configuration = {}, std::vector<std::string> options = {});
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  std::uint16_t port() const { return port_; }
  void kill();
  /// SIGTERM, and waits.
  void stop();
  /// On the same port, with the same data.
  void start();

 private:
  void end(int signal);

  TempDirectory directory_;
  std::vector<std::string> options_;
  std::uint16_t port_ = 0;
  pid_t pid_ = -1;
};

/// Asks every 5 ms, for what only another process brings. Returns false when it is not true in time.
bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds within = kDeadline);

std::string read_file(const std::string& path);

}  // namespace sdk_test
