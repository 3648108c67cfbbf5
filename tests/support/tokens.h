#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/token.h"

namespace delayq::support {

/// The SHA-256 of "secret" and of "other", from `printf secret | sha256sum`.
inline constexpr std::string_view kSecretHash =
    "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";
inline constexpr std::string_view kOtherHash =
    "d9298a10d1b0735837dc4bd85dac641b0f3cef27a47e5d53a54f2f3f5b2fcffa";

inline Token token(std::string name, std::string_view hash, Scopes scopes,
                   std::vector<std::string> topics = {"*"}) {
  Token made;
  made.name = std::move(name);
  made.sha256 = *parse_sha256(hash);
  made.scopes = scopes;
  made.topics = std::move(topics);
  return made;
}

}  // namespace delayq::support
