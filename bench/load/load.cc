#include "bench/load/load.h"

#include <csignal>
#include <cstdio>
#include <fstream>

#include <fmt/format.h>

#include "bench/load/own_server.h"
#include "bench/load/scenarios.h"

namespace delayq::bench {

namespace {

/// However slow the server is, a benchmark ends.
constexpr std::chrono::hours kLongest{1};

int complain(const Error& error) {
  fmt::print(stderr, "delayq bench: {}\n", to_string(error));
  return traits_of(error.code).exit_code;
}

Result<Report> measure(const LoadOptions& options) {
  const Deadline deadline = std::chrono::steady_clock::now() + kLongest;
  raise_descriptor_limit();
  if (!options.resp.empty()) {
    std::vector<Address> servers;
    for (const std::string& name : options.resp) {
      const Result<Address> address = resolve(name);
      if (!address.ok()) return address.error();
      servers.push_back(*address);
    }
    // The server may hold jobs of others, or of the run before: this run's topics are its own.
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const std::string topic = fmt::format("bench-{:x}", std::chrono::duration_cast<Millis>(now).count());
    return run_scenario(options, servers, topic, deadline);
  }
  const std::string program = options.program.empty() ? "/proc/self/exe" : options.program;
  // Ctrl-C must not leave the directory behind.
  std::signal(SIGINT, [](int) { interrupt_loads(); });
  std::signal(SIGTERM, [](int) { interrupt_loads(); });
  const auto server = OwnServer::start(program, options.durability, deadline);
  if (!server.ok()) return server.error();
  return run_scenario(options, {(*server)->address()}, "bench", deadline);
}

}  // namespace

int run_load(const LoadOptions& options) {
  const Result<Report> report = measure(options);
  if (!report.ok()) return complain(report.error());
  const std::string text = options.json ? to_json(*report) : to_table(*report);
  std::fputs(text.c_str(), stdout);
  if (!options.plot.empty()) {
    std::ofstream file(options.plot);
    file << to_plot(*report);
    file.close();
    if (!file) return complain({ErrorCode::kInvalid, "plot", "cannot write " + options.plot, {}});
  }
  const LoadResult& result = report->result;
  const bool is_good = result.errors == 0 && result.early == 0 && result.answered >= report->options.jobs;
  return is_good ? 0 : 1;
}

}  // namespace delayq::bench
