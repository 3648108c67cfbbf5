#include "bench/rivals/peers.h"

namespace delayq::bench {

Result<std::unique_ptr<Peer>> Peer::start(std::vector<std::string> command, std::unique_ptr<Peer> peer,
                                          uint16_t port, Deadline deadline) {
  peer->port_ = port;
  peer->command_ = std::move(command);
  auto process = ServerProcess::start(peer->command_, port, peer->directory(), deadline);
  if (!process.ok()) return process.error();
  peer->process_ = std::move(*process);
  return peer;
}

Result<std::unique_ptr<Peer>> Peer::beanstalkd(Deadline deadline) {
  std::unique_ptr<Peer> peer(new Peer);
  const Result<uint16_t> port = free_loopback_port();
  if (!port.ok()) return port.error();
  const std::string directory = peer->directory();
  return start({"beanstalkd", "-l", "127.0.0.1", "-p", std::to_string(*port), "-b", directory, "-f", "50"},
               std::move(peer), *port, deadline);
}

Result<std::unique_ptr<Peer>> Peer::redis(std::string_view fsync, Deadline deadline) {
  std::unique_ptr<Peer> peer(new Peer);
  const Result<uint16_t> port = free_loopback_port();
  if (!port.ok()) return port.error();
  const std::string directory = peer->directory();
  std::vector<std::string> command{
      "redis-server", "--bind", "127.0.0.1",    "--port", std::to_string(*port), "--dir",           directory,
      "--save",       "",       "--appendonly", "yes",    "--appendfsync",       std::string(fsync)};
  // No rewriting of the log: in a real life it costs, but not in the first seconds of a measurement.
  command.insert(command.end(), {"--auto-aof-rewrite-percentage", "0"});
  return start(std::move(command), std::move(peer), *port, deadline);
}

Status Peer::start_again(Deadline deadline) {
  auto process = ServerProcess::start(command_, port_, directory(), deadline);
  if (!process.ok()) return process.error();
  process_ = std::move(*process);
  return {};
}

}  // namespace delayq::bench
