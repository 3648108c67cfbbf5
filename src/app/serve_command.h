#pragma once

namespace CLI {
class App;
}

namespace delayq {

/// `delayq serve`: runs the server until it is told to stop. `exit_code` is set when it ran.
void add_serve_command(CLI::App& app, int& exit_code);

}  // namespace delayq
