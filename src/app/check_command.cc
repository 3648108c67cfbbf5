#include "app/check_command.h"

#include <iostream>
#include <memory>
#include <string>
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "engine/journal/check.h"
#include "engine/journal/posix_disk.h"

namespace delayq {

namespace {

struct JournalCheckOptions {
  std::string directory = "data";
  bool repair = false;
  bool yes = false;
};

int check_failed(const Error& error) {
  std::cerr << "delayq check: " << to_string(error) << "\n";
  return traits_of(error.code).exit_code;
}

bool is_confirmed(const JournalCheckOptions& options) {
  if (options.yes) return true;
  if (isatty(STDIN_FILENO) == 0) {
    std::cerr << "delayq check: nothing was changed; --repair --yes gives up what is listed above\n";
    return false;
  }
  std::cout << "Give up what is listed above? Type yes: " << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "yes";
}

int run(const JournalCheckOptions& options) {
  if (::access(options.directory.c_str(), F_OK) != 0) {
    return check_failed(
        {ErrorCode::kNotFound, "check", fmt::format("there is no directory {}", options.directory), {}});
  }
  // Looking needs no writing: the directory may be one that must not change.
  auto disk = journal::PosixDisk::open_to_read(options.directory);
  if (!disk.ok()) return check_failed(disk.error());
  const Result<journal::CheckReport> report = journal::check(**disk);
  if (!report.ok()) return check_failed(report.error());
  std::cout << to_string(*report);
  if (report->is_clean()) return 0;
  if (!options.repair) {
    std::cerr << "delayq check: damaged; --repair gives up what is listed above, and only that\n";
    return traits_of(ErrorCode::kCorrupt).exit_code;
  }
  if (!is_confirmed(options)) return traits_of(ErrorCode::kCorrupt).exit_code;
  disk = journal::PosixDisk::open(options.directory);
  if (!disk.ok()) return check_failed(disk.error());
  const Result<journal::CheckReport> repaired = journal::repair(**disk);
  if (!repaired.ok()) return check_failed(repaired.error());
  std::cout << "Repaired. The server can be started again.\n";
  return 0;
}

}  // namespace

void add_check_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<JournalCheckOptions>();
  CLI::App* check =
      app.add_subcommand("check", "Read every record of a data directory and tell what is damaged");
  check->add_option("directory", options->directory, "The journal's directory")->capture_default_str();
  check->add_flag("--repair", options->repair, "Give up what is damaged, after telling what that is");
  check->add_flag("--yes", options->yes, "Do not ask");
  check->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace delayq
