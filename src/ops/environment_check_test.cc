#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/config.h"

namespace delayq {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Variables = std::vector<std::pair<std::string, std::string>>;

std::vector<std::string> errors_of(const Variables& variables) { return check_environment(variables); }

TEST(EnvironmentCheck, a_mistyped_setting_is_an_error_that_names_the_nearest) {
  EXPECT_THAT(
      errors_of(
          {{"DELAYQ_SERVER_HTPP", "x"}, {"DELAYQ_SEVER_RESP", "x"}, {"DELAYQ_LOG_NOTHING_LIKE_IT", "x"}}),
      ElementsAre("DELAYQ_SERVER_HTPP in the environment is not a setting; did you mean DELAYQ_SERVER_HTTP?",
                  "DELAYQ_SEVER_RESP in the environment is not a setting; did you mean DELAYQ_SERVER_RESP?",
                  "DELAYQ_LOG_NOTHING_LIKE_IT in the environment is not a setting"));
}

TEST(EnvironmentCheck, topics_and_tokens_are_not_for_the_environment) {
  EXPECT_THAT(
      errors_of({{"DELAYQ_TOPICS_ORDER_LEASE", "1s"}, {"DELAYQ_TOKENS_0_NAME", "x"}}),
      ElementsAre("DELAYQ_TOPICS_ORDER_LEASE in the environment: topics cannot be configured there; use the "
                  "file or --set",
                  "DELAYQ_TOKENS_0_NAME in the environment: tokens cannot be configured there; use the file "
                  "or --set"));
}

TEST(EnvironmentCheck, settings_and_the_names_of_others_are_fine) {
  EXPECT_THAT(errors_of({{"DELAYQ_SERVER_RESP", "x"},
                         {"DELAYQ_TOKEN", "x"},
                         {"DELAYQ_TOPIC", "x"},
                         {"DELAYQ_HOME", "x"},
                         {"DELAYQ", "x"},
                         {"PATH", "x"},
                         // What Kubernetes makes for services called delayq and delayq-server.
                         {"DELAYQ_SERVICE_HOST", "10.0.0.1"},
                         {"DELAYQ_SERVICE_PORT_HTTP", "9277"},
                         {"DELAYQ_PORT", "tcp://10.0.0.1:9277"},
                         {"DELAYQ_PORT_9277_TCP_ADDR", "10.0.0.1"},
                         {"DELAYQ_SERVER_SERVICE_HOST", "10.0.0.1"},
                         {"DELAYQ_SERVER_PORT", "tcp://10.0.0.1:9277"},
                         {"DELAYQ_SERVER_PORT_9278_TCP", "tcp://10.0.0.1:9278"}}),
              IsEmpty());
}

}  // namespace
}  // namespace delayq
