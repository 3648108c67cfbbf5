#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ops/config.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library is called so
class App;
}  // namespace CLI

namespace delayq {

/// The configuration options of a command line.
struct ConfigOptions {
  std::string file;
  /// Options that are keys of the configuration, and their values; empty: not given.
  std::vector<std::pair<std::string, std::string>> said;
  std::vector<std::string> assignments;  ///< key=value

  /// Lets a command take them. REQUIRES: this stays where it is until the command line was read.
  void add_to(CLI::App& command);
  /// Takes conf/delayq.conf, where no file is named and this one is there. Returns whether it did.
  bool search();
};

/// Reads the file, then the environment, then the command line, and checks the result.
ConfigOutcome read_config(const ConfigOptions& options);

/// The same, and whether a server could start with it on this machine (app/preflight.h): what `serve` does
/// before it starts, and `config check` instead of starting.
ConfigOutcome read_config_to_serve(const ConfigOptions& options);

}  // namespace delayq
