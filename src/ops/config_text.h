#pragma once

#include <span>
#include <string>

#include "ops/config.h"

namespace delayq {

// What the configuration table says, written for its readers.

/// For `delayq serve --help`: every key with what may be written and its default.
std::string config_help();

/// conf/delayq.example.toml: every setting, commented out with its default. A line that starts with "#" and
/// no space becomes a setting when the "#" is taken away.
std::string example_config();

/// docs/reference/configuration.md.
std::string config_reference();

/// What is in force after all that was said, the last about a key being the one that counts: a file that says
/// the same, in which each value has where it came from behind it. Of topics, what they say themselves.
std::string config_in_force(std::span<const Said> said);

}  // namespace delayq
