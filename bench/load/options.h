#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): theirs
class App;
}

namespace delayq::bench {

enum class Scenario : uint8_t {
  kPush,      ///< jobs due in an hour, as fast as they are answered
  kLife,      ///< push, pop, ack of ready jobs, each step answered before the next
  kDrain,     ///< ready jobs that are there already: pop and ack until none is left
  kCancel,    ///< cancel pending jobs by id
  kLateness,  ///< a steady rate of jobs falling due: hand-over minus due
  kSpike,     ///< all due at the same moment: hand-over minus due
};

std::string_view name_of(Scenario scenario);

/// What `delayq bench` is asked for. What is not given is chosen by the scenario, see the with_defaults().
struct LoadOptions {
  Scenario scenario = Scenario::kPush;
  std::vector<std::string> resp;  ///< host:port each; none: a server of its own
  std::optional<uint64_t> jobs;
  size_t connections = 50;
  size_t pipeline = 32;
  size_t body = 128;
  size_t topics = 1;
  std::optional<size_t> consumers;  ///< of drain, lateness and spike
  std::optional<size_t> count;      ///< jobs of one POP, at most
  uint64_t rate = 20'000;           ///< jobs that fall due per second
  uint64_t seconds = 30;            ///< of lateness
  std::optional<double> lead;       ///< seconds between the first push and the first due time
  std::string durability = "commit";
  std::string program;  ///< that has `serve`, when a server is started; empty: this program
  bool json = false;
  std::string plot;  ///< a file for an SVG; empty: none
};

/// The same with jobs, consumers, count and lead filled in.
LoadOptions with_defaults(LoadOptions options);

/// Declares the scenario and the options on `command`, which is `delayq bench`. Both must live until it is
/// parsed.
void add_load_options(CLI::App& command, LoadOptions& options);

}  // namespace delayq::bench
