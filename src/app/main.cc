// delayq: the server, and the commands that work on a data directory; the other commands are its clients.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <iostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "app/commands.h"
#include "app/storage.h"
#include "app/version.h"
#include "bench/load/load.h"
#include "cli/cli.h"
#include "core/error.h"

namespace delayq {
namespace {

/// Without a command it is `serve`, so that `delayq -c FILE` works.
std::vector<std::string> with_command(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  constexpr std::array<std::string_view, 5> kOwn{"-h", "--help", "--help-all", "-v", "--version"};
  const bool is_bare = arguments.empty() || (arguments[0].starts_with('-') &&
                                             std::find(kOwn.begin(), kOwn.end(), arguments[0]) == kOwn.end());
  if (is_bare) arguments.insert(arguments.begin(), "serve");
  return arguments;
}

/// For the clients that can work without a server.
Result<cli::Surroundings::Storage> open_storage(const cli::Surroundings::StorageName& name) {
  using Access = cli::Surroundings::Access;
  Result<std::shared_ptr<LocalServer>> opened =
      LocalServer::open(name.place, name.option,
                        {.only_looks = name.access == Access::kLook,
                         .only_reads = name.access == Access::kRead,
                         .must_exist = name.access == Access::kFind});
  if (!opened.ok()) return opened.error();
  return cli::Surroundings::Storage{[server = *opened](std::span<const std::vector<std::string>> commands) {
                                      return server->ask_all(commands);
                                    },
                                    (*opened)->is_new(), (*opened)->shards()};
}

}  // namespace
}  // namespace delayq

int main(int argc, char** argv) {
  CLI::App app{"delayq holds a job until its time, then hands it over.", "delayq"};
  app.footer(
      "Without a command, delayq serves:\n"
      "  -c FILE   configuration file; conf/delayq.conf when there is one and -c is not given\n"
      "  -d        run in the background\n"
      "  -t ENGINE journal, memory, redis or kafka\n"
      "delayq serve --help lists all its options.");
  app.set_version_flag("-v,--version", fmt::format("delayq {}", delayq::kVersion));
  delayq::cli::Commands clients(app);
  int exit_code = EXIT_SUCCESS;
  delayq::add_serve_command(app, exit_code);
  delayq::add_check_command(app, exit_code);
  delayq::add_config_command(app, exit_code);
  delayq::add_token_command(app, exit_code);
  CLI::App* bench =
      app.add_subcommand("bench", "Measure a server: this machine's figures, as any client sees them");
  delayq::bench::LoadOptions load;
  delayq::bench::add_load_options(*bench, load);
  bench->callback([&] { exit_code = delayq::bench::run_load(load); });
  const std::vector<std::string> arguments = delayq::with_command(argc, argv);
  try {
    delayq::cli::parse(app, arguments);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    std::cerr << delayq::cli::explain(app, error, arguments);
    return delayq::traits_of(delayq::ErrorCode::kInvalid).exit_code;
  }
  delayq::cli::Surroundings world = delayq::cli::process_surroundings();
  world.open_storage = delayq::open_storage;
  return clients.run(world).value_or(exit_code);
}
