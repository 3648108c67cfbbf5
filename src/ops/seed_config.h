#pragma once

#include <optional>
#include <string_view>

#include "ops/config.h"

namespace delayq {

// The configuration files of three other systems, so that who comes from one of them can start this server
// with the file that is there: go-delay-queue's, delay_queue_callback's and DelayQ's. They are INI files,
// with
// `;` comments. What is taken over from them and what is not is the table in ops/seed_keys.cc.

/// What such a file says: nothing when it is none, so that it is to be read as our own TOML. It is one when
/// it has keys of one of these systems and none that only our own files have, or when it has no keys and
/// comments with `;`, as these systems' own examples do.
///
/// Every key that is not taken over is a warning with its line; every value that cannot be right is an error
/// with its line, all of them at once.
std::optional<ConfigOutcome> read_seed_config(std::string_view text, std::string_view file_name);

/// These systems listen on all interfaces and ask nobody who they are. Where such a file says so, and neither
/// tokens nor server.allow_anonymous were given elsewhere, the server listens on the same port of 127.0.0.1
/// instead, and that is a warning. go-delay-queue's file that says nothing means all interfaces, where tokens
/// or server.allow_anonymous allow that. To be called when everything was said.
void keep_to_this_machine(ConfigOutcome& outcome);

/// These systems keep their jobs in Redis: a file that says where it is chooses the redis engine there, and
/// that is told as a warning, with how to choose the journal. There, due ids of go-delay-queue's users go to
/// the list of their topic, as before; with another engine jobs are popped from this server. Where the engine
/// was chosen elsewhere, only what is then not used is told. To be called when everything was said.
void tell_engine(ConfigOutcome& outcome);

}  // namespace delayq
