#pragma once

#include <string>

#include "cli/verb.h"

namespace delayq::cli {

/// A job or statistics, which come as a map of fields: one per line for a person, one object for a program.
/// False when the reply is no map.
bool show_map(const Session& session, const resp::Value& map);

/// A map as one JSON object. Fields that count or measure are numbers, those that say yes or no booleans, and
/// all others texts, even when they look like numbers.
std::string map_as_json(const resp::Value& map);

}  // namespace delayq::cli
