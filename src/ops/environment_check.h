#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace delayq {

/// Errors for names of the environment that begin with DELAYQ_, are no settings, and were probably meant to
/// be one: a mistyped name, whose setting would silently keep its default, and names for topics and tokens,
/// which cannot be configured there. Left alone are the names that clients and commands of `pop --exec` use,
/// those that Kubernetes makes for a service whose name begins with "delayq", and those that resemble no
/// setting.
///
/// `variables` are names and values.
std::vector<std::string> check_environment(std::span<const std::pair<std::string, std::string>> variables);

}  // namespace delayq
