#include <CLI/CLI.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/cli.h"
#include "cli/verb.h"

namespace delayq::cli {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

class CompletionTest : public testing::Test {
 protected:
  std::vector<std::string> offered(const std::vector<std::string>& words) {
    return completions(app_, words, [this](NamesOf what) {
      ++asked_;
      if (what == NamesOf::kSchedules) return std::vector<std::string>{"nightly", "hourly"};
      if (what == NamesOf::kSettings) return std::vector<std::string>{"lease", "rate"};
      return std::vector<std::string>{"order", "mail", "order:eu"};
    });
  }

  CLI::App app_;
  Commands commands_{app_};
  int asked_ = 0;
};

TEST_F(CompletionTest, offers_commands) {
  EXPECT_THAT(offered({"pu"}), ElementsAre("purge", "push"));
  EXPECT_THAT(offered({""}), Contains("top"));
  EXPECT_THAT(offered({}), Contains("top"));
  EXPECT_THAT(offered({""}), Not(Contains("complete"))) << "it is hidden";
  EXPECT_THAT(offered({"nonsense", ""}), Contains("push"));
  EXPECT_EQ(asked_, 0);
}

TEST_F(CompletionTest, offers_options_of_the_command) {
  EXPECT_THAT(offered({"pop", "--w"}), ElementsAre("--wait", "--workers"));
  EXPECT_THAT(offered({"pop", "order", "--wo"}), ElementsAre("--workers"));
  EXPECT_THAT(offered({"pop", "--exec-"}), IsEmpty()) << "it is hidden";
  EXPECT_THAT(offered({"pop", "--se"}), ElementsAre("--server"));
}

TEST_F(CompletionTest, offers_values_that_are_enumerated) {
  EXPECT_THAT(offered({"top", "--sort", "re"}), ElementsAre("ready", "reserved"));
  EXPECT_THAT(offered({"completion", ""}), ElementsAre("bash", "zsh"));
  EXPECT_THAT(offered({"push", "--id", ""}), IsEmpty());
  EXPECT_EQ(asked_, 0);
}

TEST_F(CompletionTest, asks_for_topics_where_one_belongs) {
  EXPECT_THAT(offered({"push", "o"}), ElementsAre("order", "order:eu"));
  EXPECT_THAT(offered({"push", "--id", "7", "m"}), ElementsAre("mail"));
  EXPECT_THAT(offered({"push", "--id=7", "m"}), ElementsAre("mail"));
  EXPECT_THAT(offered({"pop", "mail", "order", "order:"}), ElementsAre("order:eu"));
  EXPECT_EQ(asked_, 4);
  EXPECT_THAT(offered({"push", "order", ""}), IsEmpty());
  EXPECT_THAT(offered({"pop", "order", "--exec", "--", "o"}), IsEmpty()) << "files are the shell's own";
  EXPECT_EQ(asked_, 4);
}

TEST_F(CompletionTest, knows_the_commands_of_a_group) {
  EXPECT_THAT(offered({"sche"}), ElementsAre("schedule"));
  EXPECT_THAT(offered({"schedule", "re"}), ElementsAre("remove", "resume"));
  EXPECT_THAT(offered({"schedule", "set", "--ov"}), ElementsAre("--overlap"));
  EXPECT_THAT(offered({"schedule", "list", "--se"}), ElementsAre("--server"));
  EXPECT_THAT(offered({"schedule", "set", "x", "--overlap", ""}), ElementsAre("allow", "replace", "skip"));
  EXPECT_EQ(asked_, 0);
  EXPECT_THAT(offered({"schedule", "show", "n"}), ElementsAre("nightly"));
  EXPECT_THAT(offered({"schedule", "set", "x", "--topic", "m"}), ElementsAre("mail"));
  EXPECT_EQ(asked_, 2);
  EXPECT_THAT(offered({"backup", "n"}), IsEmpty()) << "the name of a copy";
  EXPECT_THAT(offered({"settings", "s"}), ElementsAre("set"));
  EXPECT_EQ(asked_, 2);
  EXPECT_THAT(offered({"settings", "get", "m"}), ElementsAre("mail"));
  EXPECT_THAT(offered({"settings", "get", "mail", "ra"}), ElementsAre("rate"));
  EXPECT_EQ(asked_, 4);
}

TEST_F(CompletionTest, has_a_script_for_each_shell) {
  EXPECT_THAT(std::string(completion_script("bash")),
              testing::HasSubstr("complete -o default -F _delayq delayq"));
  EXPECT_THAT(std::string(completion_script("zsh")), testing::StartsWith("#compdef delayq\n"));
  EXPECT_EQ(completion_script("fish"), "");
}

}  // namespace
}  // namespace delayq::cli
