// The texts made from the table are committed where users look for them. To write them anew:
//   DELAYQ_WRITE_TEXTS=1 build/dev/tests-bin/ops_test --gtest_filter='ConfigText.*'

#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/config.h"
#include "ops/config_table.h"
#include "tests/support/committed_text.h"

namespace delayq {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

std::string uncommented(const std::string& text) {
  std::istringstream lines(text);
  std::string out;
  for (std::string line; std::getline(lines, line);) {
    const bool setting = line.size() > 1 && line[0] == '#' && line[1] != ' ';
    out += (setting ? line.substr(1) : line) + "\n";
  }
  return out;
}

TEST(ConfigText, example_is_committed) { expect_committed("conf/delayq.example.toml", example_config()); }
TEST(ConfigText, reference_is_committed) {
  expect_committed("docs/reference/configuration.md", config_reference());
}

TEST(ConfigText, example_says_nothing_as_it_is) {
  const ConfigOutcome outcome = parse_config(example_config(), "example");
  EXPECT_THAT(outcome.errors, IsEmpty());
  Config expected;
  expected.topics["*"] = {};
  EXPECT_EQ(outcome.config, expected);
}

TEST(ConfigText, example_says_the_defaults_without_its_comments) {
  const ConfigOutcome outcome = parse_config(uncommented(example_config()), "example");
  ASSERT_THAT(outcome.errors, IsEmpty());
  Config config = outcome.config;
  EffectiveSettings effective;
  apply_settings(config.topics.at("*"), effective);
  EXPECT_EQ(effective, EffectiveSettings{});
  EXPECT_EQ(config.topics.at("order").attempts, 5u);
  config.topics.clear();
  // These two have no default, so the example shows a sample.
  EXPECT_TRUE(config.limits.jobs && config.limits.memory_bytes);
  config.limits.jobs.reset();
  config.limits.memory_bytes.reset();
  ASSERT_EQ(config.schedules.size(), 1u);
  EXPECT_EQ(config.schedules.begin()->second.topic, "report");
  config.schedules.clear();
  ASSERT_EQ(config.kafka_intakes.size(), 1u);
  Config::KafkaIntake intake = config.kafka_intakes.at("orders");
  EXPECT_EQ(intake.topics, std::vector<std::string>{"orders"});
  intake.topics.clear();
  intake.backoff.reset();
  EXPECT_EQ(intake, Config::KafkaIntake{});
  config.kafka_intakes.clear();
  ASSERT_EQ(config.tokens.size(), 1u);
  EXPECT_EQ(config.tokens[0].name, "shop");
  config.tokens.clear();
  EXPECT_EQ(config, Config{});
}

TEST(ConfigText, help_names_every_key) {
  const std::string help = config_help();
  for (const ConfigRow& row : config_rows()) {
    EXPECT_THAT(help, HasSubstr("  " + std::string(row.key) + " "));
    EXPECT_FALSE(row.initial.empty() && row.sample.empty()) << row.key;
    EXPECT_TRUE(row.help.ends_with('.')) << row.key;
  }
}

}  // namespace
}  // namespace delayq
