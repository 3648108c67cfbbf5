#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming): the library is called so
class App;
}  // namespace CLI

namespace delayq {

/// `delayq check DIR [--repair]`: reads every record of a data directory that no server uses. `exit_code` is
/// set when it ran.
void add_check_command(CLI::App& app, int& exit_code);

}  // namespace delayq
