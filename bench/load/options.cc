#include "bench/load/options.h"

#include <array>
#include <vector>

#include <CLI/CLI.hpp>

namespace delayq::bench {

namespace {

struct Row {
  Scenario scenario;
  std::string_view name;
  uint64_t jobs;
  size_t count;      ///< of a POP
  size_t consumers;  ///< that only consume; 0: none
};

// In the order of the enum. The jobs of lateness are rate x seconds.
constexpr std::array<Row, 6> kRows{{
    {Scenario::kPush, "push", 1'000'000, 1, 0},
    {Scenario::kLife, "life", 500'000, 1, 0},
    {Scenario::kDrain, "drain", 500'000, 100, 4},
    {Scenario::kCancel, "cancel", 5'000'000, 1, 0},
    {Scenario::kLateness, "lateness", 0, 100, 4},
    {Scenario::kSpike, "spike", 500'000, 1'000, 4},
}};

/// Jobs that any machine pushes in a second, for the lead that dated jobs need.
constexpr double kSurePushRate = 100'000;

}  // namespace

std::string_view name_of(Scenario scenario) { return kRows[static_cast<size_t>(scenario)].name; }

LoadOptions with_defaults(LoadOptions options) {
  const Row& row = kRows[static_cast<size_t>(options.scenario)];
  if (options.scenario == Scenario::kLateness) options.jobs = options.rate * options.seconds;
  options.jobs = options.jobs.value_or(row.jobs);
  options.count = options.count.value_or(row.count);
  options.consumers = options.consumers.value_or(row.consumers);
  options.lead = options.lead.value_or(2 + static_cast<double>(*options.jobs) / kSurePushRate);
  return options;
}

void add_load_options(CLI::App& command, LoadOptions& options) {
  std::vector<std::string> names;
  for (const Row& row : kRows) names.emplace_back(row.name);
  const auto choose = [&options](const std::string& name) {
    for (const Row& row : kRows) {
      if (row.name == name) options.scenario = row.scenario;
    }
  };
  command.add_option_function<std::string>("scenario", choose, "What is measured")
      ->required()
      ->check(CLI::IsMember(names))
      ->type_name("SCENARIO");
  const auto positive = [](uint64_t most) { return CLI::Range(uint64_t{1}, most); };
  command
      .add_option("--resp", options.resp,
                  "Drive this server (host:port), or several with the connections shared out among them; "
                  "without it one is started")
      ->allow_extra_args(false)
      ->type_name("TEXT ...");
  command.add_option("--connections", options.connections, "Connections")
      ->check(positive(100'000))
      ->capture_default_str();
  command.add_option("--pipeline", options.pipeline, "Requests under way on each")
      ->check(positive(100'000))
      ->capture_default_str();
  command.add_option("--body", options.body, "Bytes of a body")
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 26))
      ->capture_default_str();
  command.add_option("--jobs", options.jobs, "Jobs (lateness: rate x seconds)")
      ->check(positive(10'000'000'000));
  command.add_option("--topics", options.topics, "Topics")->check(positive(10'000))->capture_default_str();
  command.add_option("--rate", options.rate, "lateness: jobs that fall due per second")
      ->check(positive(10'000'000))
      ->capture_default_str();
  command.add_option("--seconds", options.seconds, "lateness: for how long")
      ->check(positive(86'400))
      ->capture_default_str();
  command.add_option("--consumers", options.consumers, "drain, lateness, spike: consumers (4)")
      ->check(positive(10'000));
  command.add_option("--count", options.count, "drain, lateness, spike: jobs of one POP, at most")
      ->check(positive(100'000));
  command
      .add_option("--lead", options.lead,
                  "lateness, spike: seconds from the first push to the first due time")
      ->check(CLI::Range(0.1, 3600.0));
  command.add_option("--durability", options.durability, "Of a server that is started")
      ->check(CLI::IsMember({"commit", "interval"}))
      ->capture_default_str();
  command.add_flag("--json", options.json, "Figures for programs");
  command.add_option("--plot", options.plot, "Write a picture (SVG) to this file");
}

}  // namespace delayq::bench
