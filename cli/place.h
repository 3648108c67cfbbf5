#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "cli/importing.h"

namespace delayq::cli {

/// A place that has jobs: a source or target of `migrate`.
struct Place {
  Ask ask;
  AskAll ask_all;
  std::string name;           ///< for people: without token and password
  std::string option;         ///< that named it, for messages; may be empty
  bool is_exclusive = false;  ///< no other program can use it meanwhile
  bool is_new = false;        ///< nothing was ever stored there; known when it is only looked at
  uint32_t shards = 0;        ///< of a Redis; 0: it is not a Redis
};

/// delayq://[TOKEN@]HOST:PORT is a running server (delayqs:// over TLS), at its port for RESP; redis:// and
/// the like name the Redis of the redis engine, whether servers use it or not; anything with a slash in it
/// and no scheme is a data directory that no server uses. `option` is for messages. Connects to a server with
/// the first command.
Result<Place> open_place(const Surroundings& world, const std::string& option, const std::string& text,
                         Surroundings::Access access = Surroundings::Access::kMake);

/// Fails unless they are two different places: a Redis has many names, and a server that uses it is another.
/// Stores a job in `to` for a moment, and looks for it in `from`, in a topic that both sides allow.
Status check_apart(const Place& from, const Place& to, const std::string& topic);

/// Adds the place's name, and the option that named it, to the error. Says so if it is not a delayq server.
Error in_place(const Place& place, Error error);

}  // namespace delayq::cli
