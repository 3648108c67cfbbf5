#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ops/config.h"

namespace delayq {

/// What is wrong with a configuration although each of its values is right: what is missing, or does not go
/// with something else. To be asked when the file, the environment and the command line have all been heard,
/// since each may say a part. When some of what they said could not be read, nothing is told of what is
/// missing: it may be just that.
std::vector<std::string> check_config(const Config& config, bool all_was_read = true);

/// The error with where its key was said in front, when its text begins with a key ("tls.key: ..."), a
/// section
/// ("tls: ...") or a token ("tokens.0: ...") of which something was said: "delayq.toml:7: tls.key: ...". Of a
/// section that is the place of its first key.
std::string with_origin(std::string error, std::span<const Said> said);

/// Errors for names of the environment that begin with DELAYQ_, are no settings, and were probably meant to
/// be one: a mistyped name, whose setting would silently keep its default, and names for topics and tokens,
/// which cannot be configured there. Left alone are the names that clients and commands of `pop --exec` use,
/// those that Kubernetes makes for a service whose name begins with "delayq", and those that resemble no
/// setting.
///
/// `variables` are names and values.
std::vector<std::string> check_environment(std::span<const std::pair<std::string, std::string>> variables);

}  // namespace delayq
