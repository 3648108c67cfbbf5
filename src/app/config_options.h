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

  /// Adds the options to a command. REQUIRES: this object is not moved until the command line was read.
  void add_to(CLI::App& command);
  /// Uses conf/delayq.conf if no file is named and this one exists. Returns whether it did.
  bool search();
};

/// Reads the file, then the environment, then the command line, and checks the result.
ConfigOutcome read_config(const ConfigOptions& options);

/// The same, and check_start(): what `serve` does before it starts, and `config check` instead of starting.
ConfigOutcome read_config_to_serve(const ConfigOptions& options);

/// What would keep a server with this configuration from starting on this machine: files that cannot be read
/// or written, addresses that are not here, topics whose jobs could not leave. Changes nothing. Each error
/// begins with its key ("tls.key: ...") and says what to do. Things that are in use only at the moment (a
/// port, a lock, a pid file), and stored data, are not checked.
std::vector<std::string> check_start(const Config& config);

}  // namespace delayq
