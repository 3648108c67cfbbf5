// simulate: the whole queue over the journal engine, on a virtual clock and a virtual disk, against the
// memory model.
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

Runs the queue and the journal engine through random workloads, crashes and disk faults, and compares every answer
with the memory engine. Each seed is a story of its own, and always the same one.

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
  const NamedCanary* canary = nullptr;
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
  for (const NamedCanary& canary : kCanaries) {
    if (canary.name == value) arguments.canary = &canary;
  }
  return arguments.canary != nullptr;
}

std::string summary(const Report& report) {
  return fmt::format(
      "{} seeds, {} operations, {} jobs handed over, {} lives, {} crashes, {} disk faults in {:.1f} s",
      report.seeds, report.total.operations, report.total.handed_over, report.total.lives,
      report.total.crashes, report.total.faults, report.seconds);
}

int replay(const Arguments& arguments) {
  const Outcome outcome =
      simulate(arguments.first, arguments.canary != nullptr ? arguments.canary->planted : Planted{}, true);
  fmt::print("{}\n", outcome.failure.empty() ? "no failure" : "failed: " + outcome.failure);
  return outcome.failure.empty() ? 0 : 1;
}

/// A failure counts only where the same seed is fine without the planted bug.
int hunt(const Arguments& arguments) {
  const uint64_t last = arguments.has_seeds ? arguments.last : kCanarySeeds;
  uint64_t tried = 0;
  for (uint64_t seed = arguments.first; seed <= last; ++seed, ++tried) {
    const Outcome planted = simulate(seed, arguments.canary->planted, false);
    if (planted.failure.empty() || !simulate(seed, {}, false).failure.empty()) continue;
    fmt::print("canary {} was caught by seed {}:\n  {}\n", arguments.canary->name, seed, planted.failure);
    return 0;
  }
  fmt::print("canary {} was NOT caught by any of {} seeds\n", arguments.canary->name, tried);
  return 1;
}

int prove(const Arguments& arguments) {
  const Report report =
      run({arguments.first, arguments.last, {}, arguments.threads, arguments.most_failures, true});
  for (const Failure& failure : report.failures) {
    fmt::print("seed {} failed (replay: simulate --seed {})\n  {}\n", failure.seed, failure.seed,
               failure.what);
  }
  fmt::print("{}: {}\n", report.failures.empty() ? "no failure" : "FAILED", summary(report));
  return report.failures.empty() ? 0 : 1;
}

int main_of(const std::vector<std::string_view>& words) {
  Arguments arguments;
  for (size_t i = 0; i < words.size(); i += 2) {
    if (words[i] == "--help" || words[i] == "-h") {
      fmt::print("{}", kHelp);
      return 0;
    }
    const std::string_view value = i + 1 < words.size() ? words[i + 1] : "";
    if (words[i] == "--canary" && value == "list") {
      for (const NamedCanary& canary : kCanaries) fmt::print("{:<22} {}\n", canary.name, canary.what);
      return 0;
    }
    if (!parse_option(words[i], value, arguments)) {
      fmt::print(stderr, "simulate: {} {}: not understood; see --help\n", words[i], value);
      return kUsageError;
    }
  }
  if (arguments.traces) return replay(arguments);
  return arguments.canary != nullptr ? hunt(arguments) : prove(arguments);
}

}  // namespace
}  // namespace delayq::simulation

int main(int argc, char** argv) { return delayq::simulation::main_of({argv + 1, argv + argc}); }
