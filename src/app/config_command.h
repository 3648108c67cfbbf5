#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming): the library is called so
class App;
}  // namespace CLI

namespace delayq {

/// `delayq config check`: all that is wrong with a configuration, without starting anything; `delayq config
/// example`: a file with every setting. `exit_code` is set when one ran.
void add_config_command(CLI::App& app, int& exit_code);

}  // namespace delayq
