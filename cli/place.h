#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "cli/importing.h"

namespace delayq::cli {

/// Where jobs are, as `migrate` names it.
struct Place {
  Ask ask;
  AskAll ask_all;
  std::string name;           ///< for people: without token and password
  std::string option;         ///< which named it, for messages; may be empty
  bool is_exclusive = false;  ///< no other program can use it meanwhile
  bool is_new = false;        ///< nothing was ever stored there; known when it is only looked at
  uint32_t shards = 0;        ///< of a Redis; 0: it is not a Redis
};

/// delayq://[TOKEN@]HOST:PORT is a running server (delayqs:// over TLS), at its port for RESP; redis:// and
/// its kin name the Redis of the redis engine, whether servers use it or not; anything with a slash in it and
/// no scheme is a data directory that no server uses. `option` is for messages. Servers are connected to at
/// the first question.
Result<Place> open_place(const Surroundings& world, const std::string& option, const std::string& text,
                         Surroundings::Access access = Surroundings::Access::kMake);

/// An error unless they are two places, whatever they are called: one Redis has many names, and a server is
/// one of them. Stores a job in `to` for the moment, and looks for it in `from`: in a topic that both sides
/// may be asked about.
Status check_apart(const Place& from, const Place& to, const std::string& topic);

/// The error with the place's name in it, and the option that named it. What is no server of delayq is told
/// as such.
Error in_place(const Place& place, Error error);

}  // namespace delayq::cli
