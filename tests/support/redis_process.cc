#include "tests/support/redis_process.h"

#include <chrono>
#include <poll.h>
#include <set>
#include <stdexcept>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>

#include "core/random.h"

namespace delayq::support {

namespace {

/// How long to wait before trying again. The wait ends early if the process ends.
constexpr int kStepMs = 5;

}  // namespace

std::vector<std::string> usual_redis_arguments() {
  return {"--bind", "127.0.0.1", "--save", "", "--repl-diskless-sync-delay", "0", "--enable-debug-command",
          "yes"};
}

uint16_t free_port() {
  // Not from the range of outgoing connections: one of these could use the port when a killed server starts
  // again, even the connection of the client that tries to reach it.
  static Random random(static_cast<uint64_t>(::getpid()) ^
                       static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()));
  // Nor a port that was returned before: its user may not have bound it yet.
  static std::set<uint16_t> told;
  for (int attempt = 0; attempt < 1000; ++attempt) {
    const auto port = static_cast<uint16_t>(random.between(12'000, 32'000));
    if (told.contains(port)) continue;
    const int probe = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    const bool is_free = ::bind(probe, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    ::close(probe);
    if (!is_free) continue;
    told.insert(port);
    return port;
  }
  throw std::runtime_error("no port is free");
}

void wait_until(std::string_view what, const std::function<bool()>& is_so, int seconds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  while (!is_so()) {
    if (std::chrono::steady_clock::now() > deadline)
      throw std::runtime_error("waited in vain: " + std::string(what));
    ::poll(nullptr, 0, kStepMs);
  }
}

RedisProcess::RedisProcess(const std::vector<std::string>& arguments)
    : port_(free_port()), arguments_(usual_redis_arguments()) {
  arguments_.insert(arguments_.end(), arguments.begin(), arguments.end());
  // Another process may have taken the port meanwhile.
  for (int attempt = 0; !is_running(); ++attempt) {
    try {
      start();
    } catch (const std::runtime_error&) {
      kill();
      if (attempt == 2) throw;
      port_ = free_port();
    }
  }
}

RedisProcess::~RedisProcess() { kill(); }

void RedisProcess::start() {
  if (is_running()) return;
  launch();
  wait_for_ping();
}

void RedisProcess::launch() {
  std::vector<std::string> words{"redis-server"};
  words.insert(words.end(), arguments_.begin(), arguments_.end());
  for (const std::string& word :
       {std::string("--port"), std::to_string(port_), std::string("--dir"), directory_.path().string()}) {
    words.push_back(word);
  }
  process_.start(std::move(words), directory_ / "log");
}

void RedisProcess::wait_for_ping() {
  wait_until("redis-server answers to PING", [this] {
    wire_ = std::make_unique<RedisWire>(port_);
    const auto pong = wire_->command({"PING"});
    // Without a password this is its only reply; the server is running.
    if (pong && (!pong->is_error() || pong->text.starts_with("NOAUTH"))) return true;
    if (process_.has_ended())
      throw std::runtime_error("redis-server ended as it started:\n" + whole_file(directory_ / "log"));
    return false;
  });
}

void RedisProcess::kill() {
  process_.kill();
  wire_.reset();
}

resp::Value RedisProcess::command(std::initializer_list<std::string_view> words) {
  if (wire_ == nullptr || !wire_->is_open()) wire_ = std::make_unique<RedisWire>(port_);
  auto reply = wire_->command(words);
  if (!reply) throw std::runtime_error("redis-server does not answer:\n" + whole_file(directory_ / "log"));
  return std::move(*reply);
}

void RedisProcess::kill_clients() {
  command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
  command({"CLIENT", "KILL", "TYPE", "pubsub", "SKIPME", "yes"});
}

}  // namespace delayq::support
