#include "app/config_command.h"

#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>

#include <CLI/App.hpp>
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "app/config_options.h"
#include "ops/config_in_force.h"
#include "ops/config_text.h"

namespace delayq {

namespace {

struct ConfigCheckOptions {
  ConfigOptions config;
  bool print = false;
};

/// Of a file of another system.
std::string as_what(const ConfigOutcome& outcome) {
  if (outcome.form.empty()) return {};
  const size_t warnings = outcome.warnings.size();
  return fmt::format(", as a file of {}; {} warning{}", outcome.form, warnings, warnings == 1 ? "" : "s");
}

int check(const ConfigCheckOptions& options) {
  const ConfigOutcome outcome = read_config_to_serve(options.config);
  for (const std::string& warning : outcome.warnings) std::cerr << "warning: " << warning << "\n";
  for (const std::string& error : outcome.errors) std::cerr << error << "\n";
  if (!outcome.ok()) return traits_of(ErrorCode::kInvalid).exit_code;
  if (options.print) {
    std::cout << config_in_force(outcome.said);
  } else {
    std::cout << (outcome.file.empty() ? "The configuration" : outcome.file) << " is right"
              << as_what(outcome) << ".\n";
  }
  return EXIT_SUCCESS;
}

}  // namespace

void add_config_command(CLI::App& app, int& exit_code) {
  CLI::App* config = app.add_subcommand("config", "Check a configuration, or print an example");
  config->require_subcommand(1);
  auto options = std::make_shared<ConfigCheckOptions>();
  CLI::App* checking = config->add_subcommand(
      "check",
      "Tell everything that is wrong with the file, the environment and the options, and start nothing");
  options->config.add_to(*checking);
  checking->add_flag("--print", options->print, "Print what is in force, and where each value comes from");
  checking->callback([options, &exit_code] { exit_code = check(*options); });
  config->add_subcommand("example", "Print a file with every setting, commented out with its default")
      ->callback([&exit_code] {
        std::cout << example_config();
        exit_code = EXIT_SUCCESS;
      });
}

}  // namespace delayq
