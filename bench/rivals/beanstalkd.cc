#include <string>

#include <fmt/format.h>

#include "bench/micro/harness.h"
#include "bench/rivals/load_client.h"
#include "bench/rivals/peer_process.h"
#include "bench/rivals/peers.h"

namespace delayq::bench {

Result<Measurement> measure_beanstalkd(uint64_t jobs) {
  const Deadline deadline = std::chrono::steady_clock::now() + kPeerLimit;
  const TempDirectory directory;
  const Result<uint16_t> port = free_loopback_port();
  if (!port.ok()) return port.error();
  const auto peer = PeerProcess::start(
      {"beanstalkd", "-l", "127.0.0.1", "-p", std::to_string(*port), "-b", directory.path()}, *port,
      directory.path(), deadline);
  if (!peer.ok()) return peer.error();

  // put <priority> <delay, s> <time to run, s> <bytes>
  const std::string request =
      fmt::format("put 0 3600 60 {}\r\n{}\r\n", kBodySize, std::string(kBodySize, 'b'));
  Load load;
  load.requests = jobs;
  load.append_request = [&request](uint64_t, std::string& out) { out += request; };
  load.good_answer = "INSERTED ";
  const uint64_t before = (*peer)->resident_bytes();
  const Result<LoadResult> done = run_load(*port, load, deadline);
  if (!done.ok()) return done.error();
  const auto answered = static_cast<double>(done->answered);
  const double grown = static_cast<double>((*peer)->resident_bytes()) - static_cast<double>(before);
  return Measurement{done->answered, answered / done->seconds, grown / answered};
}

}  // namespace delayq::bench
