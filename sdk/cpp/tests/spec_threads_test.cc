// The scenarios of sdk/spec with an engine in this process. Tokens and callbacks need a server.
#include <gtest/gtest.h>

#include "sdk/cpp/tests/scenarios.h"
#include "sdk/cpp/tests/support.h"

namespace sdk_test {
namespace {

class InProcess : public testing::TestWithParam<std::string> {};

TEST_P(InProcess, Passes) {
  const Json spec = read_spec(GetParam());
  const TempDirectory directory;
  delayq::EmbeddedOptions options;
  const std::string& file = GetParam();
  if (file == "errors.json") options.max_payload = 1024;
  if (file == "overloaded.json") {
    options.max_jobs = 2;
    options.retry_for = std::chrono::milliseconds(0);
  }
  const bool is_configured = spec.find("server") != nullptr;
  ASSERT_EQ(is_configured, file == "errors.json" || file == "overloaded.json") << "a setting for the server";
  const delayq::Client client = delayq::Client::open(directory.path() + "/data", options);
  for (const Json& each : spec.find("scenarios")->items) {
    const std::string& name = each.find("name")->text;
    if (name == "a callback is stored with the job") continue;
    SCOPED_TRACE(name);
    run_scenario(each, [&](const Json&) { return client; });
  }
}

/// All but those about tokens, which only a server has.
std::vector<std::string> files_without_tokens() {
  std::vector<std::string> files = spec_files();
  std::erase(files, "tokens.json");
  return files;
}

INSTANTIATE_TEST_SUITE_P(Spec, InProcess, testing::ValuesIn(files_without_tokens()));

}  // namespace
}  // namespace sdk_test
