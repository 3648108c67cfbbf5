#pragma once

#include <string>

#include "cli/verb.h"

namespace delayq::cli {

/// A push message with news of a job, ["news", cursor, map], for people: one line without an end.
std::string event_line(const Session& session, const resp::Value& news);
/// The same for programs: the object of /v1/events, and the cursor to go on from.
std::string event_as_json(const resp::Value& news, std::string_view cursor);

}  // namespace delayq::cli
