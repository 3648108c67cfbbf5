#pragma once

#include <string>

#include "cli/importing.h"

namespace delayq::cli {

/// Where jobs are, as `migrate` names it.
struct Place {
  Ask ask;
  std::string name;  ///< for people: without the token
};

/// delayq://[TOKEN@]HOST:PORT is a running server (delayqs:// over TLS), at its port for RESP; anything with
/// a slash in it and no scheme is a data directory that no server uses. `option` is for messages. Servers are
/// connected to at the first question.
Result<Place> open_place(const Surroundings& world, std::string_view option, const std::string& text);

}  // namespace delayq::cli
