#include "bench/load/options.h"

#include <CLI/CLI.hpp>
#include <gmock/gmock.h>

namespace delayq::bench {
namespace {

LoadOptions parsed(const std::string& line) {
  CLI::App app;
  LoadOptions options;
  add_load_options(app, options);
  app.parse(line);
  return options;
}

TEST(LoadOptions, AreWhatTheIssueSays) {
  const LoadOptions options = parsed(
      "lateness --resp 127.0.0.1:9278 --resp 127.0.0.1:9279 --connections 7 --pipeline 3 --body 64 --topics "
      "2 --rate 100 --seconds "
      "5 "
      "--json --plot x.svg --durability interval");
  EXPECT_EQ(options.scenario, Scenario::kLateness);
  EXPECT_THAT(options.resp, testing::ElementsAre("127.0.0.1:9278", "127.0.0.1:9279"));
  EXPECT_EQ(options.connections, 7U);
  EXPECT_EQ(options.pipeline, 3U);
  EXPECT_EQ(options.body, 64U);
  EXPECT_EQ(options.topics, 2U);
  EXPECT_TRUE(options.json);
  EXPECT_EQ(options.plot, "x.svg");
  EXPECT_EQ(options.durability, "interval");
  EXPECT_EQ(with_defaults(options).jobs, 500U);
}

TEST(LoadOptions, HaveDefaultsForEachScenario) {
  const LoadOptions push = with_defaults(parsed("push"));
  EXPECT_EQ(push.jobs, 1'000'000U);
  EXPECT_EQ(push.connections, 50U);
  EXPECT_EQ(push.pipeline, 32U);
  EXPECT_EQ(push.body, 128U);
  EXPECT_EQ(with_defaults(parsed("cancel")).jobs, 5'000'000U);
  EXPECT_EQ(with_defaults(parsed("lateness")).jobs, 600'000U);
  EXPECT_EQ(with_defaults(parsed("spike")).count, 1'000U);
  EXPECT_EQ(with_defaults(parsed("drain --jobs 9 --count 5")).count, 5U);
  EXPECT_EQ(with_defaults(parsed("drain --jobs 9")).jobs, 9U);
}

TEST(LoadOptions, RefuseWhatMakesNoLoad) {
  for (const char* const line :
       {"", "run", "push --connections 0", "push --pipeline x", "push --durability never"})
    EXPECT_THROW(parsed(line), CLI::Error) << line;
}

TEST(LoadOptions, NameEveryScenario) {
  for (const char* const name : {"push", "life", "drain", "cancel", "lateness", "spike"})
    EXPECT_EQ(name_of(parsed(name).scenario), name);
}

}  // namespace
}  // namespace delayq::bench
