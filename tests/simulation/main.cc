// simulate: the whole queue over the journal engine, on a virtual clock and a virtual disk, against the
// memory model; and the server's connections, over virtual streams, against hostile clients.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "tests/simulation/canaries.h"
#include "tests/simulation/runner.h"

namespace delayq::simulation {
namespace {

constexpr int kUsageError = 2;
constexpr uint64_t kCanarySeeds = 300;
constexpr std::string_view kHelp =
    R"(usage: simulate [--seeds FIRST-LAST] [--canary NAME] [--threads N] [--failures N]
       simulate --seed N [--canary NAME]
       simulate --connections ...

Runs the queue and the journal engine through random workloads, crashes and disk faults, and compares every answer
with the memory engine. Each seed is a story of its own, and always the same one.

  --connections    instead of that, sessions of both protocols, with and without TLS, with clients that stop reading,
                   hang up, time out and send anything
  --seeds 1-2000   these seeds, on all cores (the default is 1-200)
  --seed 17        one seed, with a trace of everything that happens
  --canary NAME    with a planted bug, until a seed reports it: exit code 0 when caught, 1 when not
  --canary list    what can be planted
  --threads N      how many seeds at a time
  --failures N     go on until so many seeds have failed (10)
  --help           this text
)";

struct Arguments {
  uint64_t first = 1;
  uint64_t last = 200;
  bool has_seeds = false;
  bool traces = false;
  bool connections = false;
  const NamedCanary* canary = nullptr;
  const NamedConnectionCanary* connection_canary = nullptr;
  size_t most_failures = 10;
  unsigned threads = std::max(1U, std::thread::hardware_concurrency());
};

std::optional<uint64_t> number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool parse_seeds(std::string_view text, Arguments& arguments) {
  const size_t dash = text.find('-');
  const std::optional<uint64_t> first = number(text.substr(0, dash));
  const std::optional<uint64_t> last = dash == std::string_view::npos ? first : number(text.substr(dash + 1));
  if (!first || !last || *last < *first) return false;
  arguments.first = *first;
  arguments.last = *last;
  arguments.has_seeds = true;
  return true;
}

bool parse_option(std::string_view option, std::string_view value, Arguments& arguments) {
  if (option == "--seeds") return parse_seeds(value, arguments);
  if (option == "--seed") {
    arguments.traces = true;
    return value.find('-') == std::string_view::npos && parse_seeds(value, arguments);
  }
  if (option == "--threads") {
    const std::optional<uint64_t> threads = number(value);
    if (!threads || *threads == 0 || *threads > 1'024) return false;
    arguments.threads = static_cast<unsigned>(*threads);
    return true;
  }
  if (option == "--failures") {
    const std::optional<uint64_t> failures = number(value);
    arguments.most_failures = failures.value_or(0);
    return arguments.most_failures > 0;
  }
  if (option != "--canary") return false;
  if (arguments.connections) {
    for (const NamedConnectionCanary& canary : kConnectionCanaries) {
      if (canary.name == value) arguments.connection_canary = &canary;
    }
    return arguments.connection_canary != nullptr;
  }
  for (const NamedCanary& canary : kCanaries) {
    if (canary.name == value) arguments.canary = &canary;
  }
  return arguments.canary != nullptr;
}

std::string summary(const Report<Outcome>& report) {
  return fmt::format(
      "{} seeds, {} operations, {} jobs handed over, {} made by schedules, {} lives, {} crashes, {} disk "
      "faults "
      "in {:.1f} s",
      report.seeds, report.total.operations, report.total.handed_over, report.total.occurrences,
      report.total.lives, report.total.crashes, report.total.faults, report.seconds);
}

std::string summary(const Report<connections::Outcome>& report) {
  return fmt::format(
      "{} seeds, {} clients, {} requests, {} answers, {} clients served to the end, {} events in {:.1f} s",
      report.seeds, report.total.clients, report.total.requests, report.total.answers, report.total.served,
      report.total.events, report.seconds);
}

int replay(const std::string& failure) {
  fmt::print("{}\n", failure.empty() ? "no failure" : "failed: " + failure);
  return failure.empty() ? 0 : 1;
}

/// `play(seed, is_planted)` returns the failure. One counts only where the same seed is fine without the
/// planted bug.
template <class Play>
int hunt(const Arguments& arguments, std::string_view name, Play play) {
  const uint64_t last = arguments.has_seeds ? arguments.last : kCanarySeeds;
  uint64_t tried = 0;
  for (uint64_t seed = arguments.first; seed <= last; ++seed, ++tried) {
    const std::string failure = play(seed, true);
    if (failure.empty() || !play(seed, false).empty()) continue;
    fmt::print("canary {} was caught by seed {}:\n  {}\n", name, seed, failure);
    return 0;
  }
  fmt::print("canary {} was NOT caught by any of {} seeds\n", name, tried);
  return 1;
}

template <class Outcome, class Play>
int prove(const Arguments& arguments, Play play) {
  const Report<Outcome> report =
      run<Outcome>({arguments.first, arguments.last, arguments.threads, arguments.most_failures, true}, play);
  for (const Failure& failure : report.failures) {
    fmt::print("seed {} failed (replay: simulate{} --seed {})\n  {}\n", failure.seed,
               arguments.connections ? " --connections" : "", failure.seed, failure.what);
  }
  fmt::print("{}: {}\n", report.failures.empty() ? "no failure" : "FAILED", summary(report));
  return report.failures.empty() ? 0 : 1;
}

int simulate_disks(const Arguments& arguments) {
  const Planted planted = arguments.canary != nullptr ? arguments.canary->planted : Planted{};
  if (arguments.traces) return replay(simulate(arguments.first, planted, true).failure);
  if (arguments.canary == nullptr)
    return prove<Outcome>(arguments, [](uint64_t seed) { return simulate(seed, {}, false); });
  return hunt(arguments, arguments.canary->name, [&](uint64_t seed, bool is_planted) {
    return simulate(seed, is_planted ? planted : Planted{}, false).failure;
  });
}

int simulate_connections(const Arguments& arguments) {
  using connections::Canary;
  const Canary canary =
      arguments.connection_canary != nullptr ? arguments.connection_canary->canary : Canary::kNone;
  if (arguments.traces) return replay(connections::simulate(arguments.first, canary, true).failure);
  if (canary == Canary::kNone) {
    return prove<connections::Outcome>(
        arguments, [](uint64_t seed) { return connections::simulate(seed, Canary::kNone, false); });
  }
  return hunt(arguments, arguments.connection_canary->name, [&](uint64_t seed, bool is_planted) {
    return connections::simulate(seed, is_planted ? canary : Canary::kNone, false).failure;
  });
}

int list_canaries(bool of_connections) {
  if (of_connections) {
    for (const NamedConnectionCanary& canary : kConnectionCanaries)
      fmt::print("{:<22} {}\n", canary.name, canary.what);
  } else {
    for (const NamedCanary& canary : kCanaries) fmt::print("{:<22} {}\n", canary.name, canary.what);
  }
  return 0;
}

int main_of(std::vector<std::string_view> words) {
  Arguments arguments;
  arguments.connections = std::erase(words, "--connections") > 0;
  for (size_t i = 0; i < words.size(); i += 2) {
    if (words[i] == "--help" || words[i] == "-h") {
      fmt::print("{}", kHelp);
      return 0;
    }
    const std::string_view value = i + 1 < words.size() ? words[i + 1] : "";
    if (words[i] == "--canary" && value == "list") return list_canaries(arguments.connections);
    if (!parse_option(words[i], value, arguments)) {
      fmt::print(stderr, "simulate: {} {}: not understood; see --help\n", words[i], value);
      return kUsageError;
    }
  }
  return arguments.connections ? simulate_connections(arguments) : simulate_disks(arguments);
}

}  // namespace
}  // namespace delayq::simulation

int main(int argc, char** argv) { return delayq::simulation::main_of({argv + 1, argv + argc}); }
