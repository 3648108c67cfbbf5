#pragma once

#include <string>

namespace delayq {

// What the configuration table says, written for its readers.

/// For `delayq serve --help`: every key with what may be written and its default.
std::string config_help();

/// conf/delayq.example.toml: every setting, commented out with its default. A line that starts with "#" and
/// no space becomes a setting when the "#" is taken away.
std::string example_config();

/// docs/reference/configuration.md.
std::string config_reference();

}  // namespace delayq
