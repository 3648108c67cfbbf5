#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <delayq/delayq.h>

#include "sdk/cpp/tests/json.h"

/// Carries out the scenarios of sdk/spec, which all client libraries pass.
namespace sdk_test {

/// Makes the client of a step: `options` are those of the scenario for its name.
using MakeClient = std::function<delayq::Client(const Json& options)>;

/// Runs one scenario. Adds a failure of GoogleTest for whatever is not as it should be.
void run_scenario(const Json& scenario, const MakeClient& make_client);

/// The scenarios of a file: "jobs.json".
Json read_spec(const std::string& file);

/// All files of scenarios, without the tables.
std::vector<std::string> spec_files();

/// The options of a client, as a scenario or a call of wire.json has them.
delayq::ClientOptions client_options(const Json& said);

}  // namespace sdk_test
