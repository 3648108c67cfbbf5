#pragma once

#include <cstdint>
#include <optional>

#include "resp/value.h"

namespace delayq::cli {

/// A job as POP hands it over: [lease, topic, id, body, attempt, due_ms].
struct Popped {
  const std::string& lease;
  const std::string& topic;
  const std::string& id;
  const std::string& body;
  int64_t attempt;
  int64_t due_ms;
};

/// Looks at `job`, which must live longer; nullopt when it is none.
std::optional<Popped> popped_of(const resp::Value& job);

}  // namespace delayq::cli
