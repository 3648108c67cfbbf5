// The scenarios of sdk/spec against real servers.
#include <gtest/gtest.h>

#include "sdk/cpp/tests/scenarios.h"
#include "sdk/cpp/tests/support.h"

namespace sdk_test {
namespace {

class OverTheNetwork : public testing::TestWithParam<const char*> {};

TEST_P(OverTheNetwork, Passes) {
  const Json spec = read_spec(GetParam());
  const Json* const configuration = spec.find("server");
  const Server server(configuration == nullptr ? "" : configuration->text);
  const MakeClient make = [&](const Json& said) {
    delayq::ClientOptions options;
    for (const auto& [name, value] : said.members) {
      if (name == "token") {
        options.token = value.text;
      } else if (name == "token_name") {
        options.token_name = value.text;
      } else if (name == "retry_for") {
        options.retry_for = std::chrono::milliseconds(static_cast<int>(value.number));
      } else {
        ADD_FAILURE() << "an option that the runner does not know: " << name;
      }
    }
    return delayq::Client(server.address(), options);
  };
  for (const Json& each : spec.find("scenarios")->items) {
    SCOPED_TRACE(each.find("name")->text);
    run_scenario(each, make);
  }
}

INSTANTIATE_TEST_SUITE_P(Spec, OverTheNetwork,
                         testing::Values("jobs.json", "batches.json", "errors.json", "overloaded.json",
                                         "schedules.json", "tokens.json", "worker.json"));

}  // namespace
}  // namespace sdk_test
