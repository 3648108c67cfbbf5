#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/config.h"

namespace delayq {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

TEST(ConfigInForce, is_a_file_that_says_the_same) {
  ConfigOutcome outcome = parse_config(R"(
[server]
grace = "30s"
max_connections = 7
allow_anonymous = true
[limits]
memory = "4GiB"
[topics."*"]
attempts = 3
[topics."a.b"]
backoff = ["10s", "1m"]
keep_done = { time = "2h", count = 5 }
[topics.quiet]
[schedules."a.b"]
cron = "0 2 * * *"
zone = "Asia/Shanghai"
topic = "t"
body = '{"kind": "daily"}'
start = "2030-01-31T08:00:00+08:00"
[[tokens]]
name = "shop"
sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
scopes = ["push", "consume"]
[[tokens]]
name = "boss"
sha256 = "60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752"
scopes = ["admin"]
)",
                                       "x.toml");
  ASSERT_THAT(outcome.errors, IsEmpty());
  const auto variable = [](const char* name) {
    return std::string_view(name) == "DELAYQ_SERVER_DATA" ? "/some \"place\"" : nullptr;
  };
  ASSERT_THAT(apply_environment(outcome.config, variable, &outcome.said), IsEmpty());
  ASSERT_TRUE(set_option(outcome.config, "server.grace", "5s", &outcome.said));
  ASSERT_TRUE(set_option(outcome.config, "topics.a.b.attempts", "9", &outcome.said));
  ASSERT_TRUE(set_option(outcome.config, "schedules.a.b.jitter", "5m", &outcome.said));
  ASSERT_FALSE(set_option(outcome.config, "server.grace", "never", &outcome.said));
  const std::string text = config_in_force(outcome.said);
  EXPECT_THAT(text, HasSubstr("grace = \"5s\"  # command line\n"));
  EXPECT_THAT(text, HasSubstr("max_connections = 7  # x.toml:4\n"));
  EXPECT_THAT(text, HasSubstr("data = \"/some \\\"place\\\"\"  # DELAYQ_SERVER_DATA\n"));
  EXPECT_THAT(text, HasSubstr("resp = \"127.0.0.1:9278\"  # default\n"));
  EXPECT_THAT(text, HasSubstr("# jobs: no limit\n"));
  const ConfigOutcome again = parse_config(text, "again");
  EXPECT_THAT(again.errors, IsEmpty()) << text;
  EXPECT_EQ(again.config, outcome.config) << text;
}

TEST(ConfigInForce, without_a_word_are_the_defaults) {
  const ConfigOutcome outcome = parse_config(config_in_force({}), "x");
  EXPECT_THAT(outcome.errors, IsEmpty());
  EXPECT_EQ(outcome.config, Config{});
}

}  // namespace
}  // namespace delayq
