#pragma once

#include <string>
#include <string_view>

#include "app/storage.h"

namespace delayq {

/// Whether the problem is one of user, password or rights, which no waiting mends.
bool is_login_problem(std::string_view problem);

/// Whether it is an earlier version of Redis than is needed; no waiting mends that either.
bool is_version_problem(std::string_view problem);

/// What an operator may do about a Redis that cannot be used, as the end of a sentence; empty when the
/// problem says it all. `problem` is Redis's own text or the client's.
std::string advice_on(std::string_view problem, const RedisStorageOptions& options);

/// The same of any Redis that is named by a URL, whatever it is used for.
std::string advice_on_reaching(std::string_view problem, net::redis::Mode mode, const RedisNames& names);

}  // namespace delayq
