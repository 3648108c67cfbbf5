#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming): the library is called so
class App;
}  // namespace CLI

namespace delayq {

/// `delayq serve`: runs the server until it is told to stop. `exit_code` is set when it ran.
void add_serve_command(CLI::App& app, int& exit_code);

}  // namespace delayq
