#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library is called so
class App;
}  // namespace CLI

namespace delayq {

/// `delayq serve`: runs the server until it is asked to stop. `exit_code` is set when it ran.
void add_serve_command(CLI::App& app, int& exit_code);

/// `delayq check DIR [--repair]`: reads every record of a data directory that no server uses. `exit_code` is
/// set when it ran.
void add_check_command(CLI::App& app, int& exit_code);

/// `delayq config check`: reports all errors of a configuration, without starting anything; `delayq config
/// example`: a file with every setting. `exit_code` is set when one ran.
void add_config_command(CLI::App& app, int& exit_code);

/// A new token: the secret for its owner, and the entry for the server's configuration.
struct NewToken {
  std::string secret;  ///< "dq_" and 43 characters of base64url, which are 32 random bytes
  std::string toml;    ///< [[tokens]] with the secret's SHA-256, which cannot be turned back into it
};

struct TokenOptions {
  std::string name = "token";
  std::vector<std::string> scopes{"push", "consume"};
  std::vector<std::string> topics{"*"};
};

/// `random` is 32 unpredictable bytes. kInvalid if a name, scope or pattern is invalid.
Result<NewToken> make_token(const TokenOptions& options, std::string_view random);

/// `delayq token new`. `exit_code` is set when it ran.
void add_token_command(CLI::App& app, int& exit_code);

}  // namespace delayq
