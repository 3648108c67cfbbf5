#include "bench/load/own_server.h"

#include <fstream>

#include <fmt/format.h>

namespace delayq::bench {

std::vector<std::string> OwnServer::command() const {
  return {program_, "serve", "-c", directory_.path() + "/delayq.toml"};
}

Result<std::unique_ptr<OwnServer>> OwnServer::start(const std::string& program, const std::string& durability,
                                                    Deadline deadline) {
  std::unique_ptr<OwnServer> server(new OwnServer);
  const std::string& directory = server->directory_.path();
  const Result<uint16_t> port = free_loopback_port();
  if (!port.ok()) return port.error();
  server->port_ = *port;
  server->program_ = program;
  std::ofstream config(directory + "/delayq.toml");
  config << fmt::format(
      "[server]\nhttp = \"127.0.0.1:0\"\nresp = \"127.0.0.1:{}\"\ndata = "
      "\"{}/data\"\n\n[journal]\ndurability = \"{}\"\n\n"
      "[log]\nlevel = \"warn\"\n",
      *port, directory, durability);
  config.close();
  if (directory.empty() || !config) {
    return Error{ErrorCode::kUnavailable, "bench", "cannot write to a temporary directory; see $TMPDIR", {}};
  }
  raise_descriptor_limit();
  auto process = ServerProcess::start(server->command(), *port, directory, deadline);
  if (!process.ok()) return process.error();
  server->process_ = std::move(*process);
  return server;
}

Status OwnServer::start_again(Deadline deadline) {
  auto process = ServerProcess::start(command(), port_, directory_.path(), deadline);
  if (!process.ok()) return process.error();
  process_ = std::move(*process);
  return {};
}

}  // namespace delayq::bench
