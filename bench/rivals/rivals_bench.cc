// delayq over TCP beside its peers from Debian, in one run on one machine: the bars of the server.
//   rivals_bench [--smoke] [--json] [--only ROW,...] [--rounds N] [--program PATH]
#include <algorithm>
#include <filesystem>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "bench/load/server_process.h"
#include "bench/rivals/row.h"

namespace delayq::bench {

std::vector<Row> all_rows() {
  std::vector<Row> rows;
  add_throughput_rows(rows);
  add_pending_rows(rows);
  add_time_rows(rows);
  add_crowd_rows(rows);
  add_redis_rows(rows);
  return rows;
}

namespace {

struct Settings {
  Plan plan;
  bool json = false;
  std::vector<std::string> only;
};

std::string shown(double value, std::string_view unit) {
  if (unit == "/s") return fmt::format("{:.0f} k/s", value / 1000);
  return fmt::format("{:.2f} {}", value, unit);
}

void print_row(const Row& row, const Outcome& outcome, bool is_smoke) {
  const std::string theirs = outcome.theirs ? shown(*outcome.theirs, outcome.unit) : "-";
  const std::string ratio =
      outcome.theirs ? fmt::format("{:.2f}x", outcome.ours / *outcome.theirs) : std::string("-");
  fmt::print("{:<46} {:>12} {:>11} {:>7}   bar {:<18} {:<12} {}\n", row.what,
             shown(outcome.ours, outcome.unit), theirs, ratio, row.bar,
             is_smoke         ? "(smoke size)"
             : outcome.is_met ? "met"
                              : "MISSED",
             outcome.note);
  std::fflush(stdout);
}

std::string json_of(const Row& row, const Outcome& outcome) {
  const std::string theirs = outcome.theirs ? fmt::format("{:.4f}", *outcome.theirs) : "null";
  const std::string ratio = outcome.theirs ? fmt::format("{:.4f}", outcome.ours / *outcome.theirs) : "null";
  return fmt::format(
      "  {{\"name\": \"{}\", \"state\": \"measured\", \"unit\": \"{}\", \"ours\": {:.4f}, \"theirs\": {}, "
      "\"ratio\": {}, \"rival\": \"{}\", \"bar\": \"{}\", \"met\": {}, \"note\": \"{}\"}}",
      row.key, outcome.unit, outcome.ours, theirs, ratio, row.rival, row.bar, outcome.is_met, outcome.note);
}

int run(const Settings& settings) {
  std::vector<std::string> results;
  bool is_good = true;
  if (!settings.json) fmt::print("{:<46} {:>12} {:>11} {:>7}\n", "", "ours", "theirs", "ratio");
  for (const Row& row : all_rows()) {
    const bool is_wanted = settings.only.empty() || std::find(settings.only.begin(), settings.only.end(),
                                                              row.key) != settings.only.end();
    if (!is_wanted) continue;
    if (!row.rival.empty() && !is_installed(std::string(row.rival))) {
      results.push_back(
          fmt::format("  {{\"name\": \"{}\", \"state\": \"{} is not installed\"}}", row.key, row.rival));
      if (!settings.json) fmt::print("{:<46} {} is not installed\n", row.what, row.rival);
      continue;
    }
    const Result<Outcome> outcome = row.measure(settings.plan);
    if (!outcome.ok()) {
      is_good = false;
      fmt::print(stderr, "{}: {}\n", row.key, to_string(outcome.error()));
      results.push_back(fmt::format("  {{\"name\": \"{}\", \"state\": \"failed\"}}", row.key));
      continue;
    }
    results.push_back(json_of(row, *outcome));
    if (!settings.json) print_row(row, *outcome, settings.plan.is_smoke);
  }
  if (settings.json)
    fmt::print("{{\"body_bytes\": 128, \"smoke\": {}, \"results\": [\n{}\n]}}\n", settings.plan.is_smoke,
               fmt::join(results, ",\n"));
  return is_good ? 0 : 1;
}

std::vector<std::string> names_of_rows() {
  std::vector<std::string> names;
  for (const Row& row : all_rows()) names.emplace_back(row.key);
  return names;
}

/// The program that was built beside this one.
std::string beside_us() {
  std::error_code ignored;
  return (std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path().parent_path() / "delayq")
      .string();
}

}  // namespace
}  // namespace delayq::bench

int main(int argc, char** argv) {
  delayq::bench::Settings settings;
  settings.plan.program = delayq::bench::beside_us();
  CLI::App app{"delayq beside its peers"};
  app.add_flag("--smoke", settings.plan.is_smoke, "Tiny sizes: only proves that it works");
  app.add_flag("--json", settings.json, "Figures for programs");
  app.add_option("--only", settings.only, "Rows to measure")
      ->delimiter(',')
      ->check(CLI::IsMember(delayq::bench::names_of_rows()));
  app.add_option("--rounds", settings.plan.rounds, "Of ours and theirs in turn")->check(CLI::Range(1, 99));
  app.add_option("--program", settings.plan.program, "Our server")->check(CLI::ExistingFile);
  CLI11_PARSE(app, argc, argv);
  if (settings.plan.is_smoke) settings.plan.rounds = 1;
  return delayq::bench::run(settings);
}
