#include <CLI/CLI.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/cli.h"

namespace delayq::cli {
namespace {

using testing::ElementsAre;

class ArgumentsTest : public testing::Test {
 protected:
  ArgumentsTest() {
    app_.require_subcommand(1, 1);
    CLI::App* const list = app_.add_subcommand("list");
    list->add_option("WORD", words_);
    list->add_option("--several", several_);
    list->add_option("--one", one_);
    list->add_option("--number", number_);
    CLI::App* const pop = app_.add_subcommand("pop");
    pop->add_option("TOPIC", words_);
    pop->add_option(kExecWord, several_)->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    app_.add_subcommand("token")->require_subcommand(1)->add_subcommand("new")->add_option("--name", one_);
  }

  std::string explained(const std::vector<std::string>& arguments) {
    try {
      parse(app_, arguments);
    } catch (const CLI::ParseError& error) {
      return explain(app_, error, arguments);
    }
    return "it was understood";
  }

  CLI::App app_;
  std::vector<std::string> words_, several_;
  std::string one_;
  int number_ = 0;
};

TEST_F(ArgumentsTest, leaves_brackets_alone) {
  parse(app_, {"list", "[a,b]", "[", "]", "[]", "\x02", "--several=[c]", "--one", "[d,e]"});
  EXPECT_THAT(words_, ElementsAre("[a,b]", "[", "]", "[]", "\x02"));
  EXPECT_THAT(several_, ElementsAre("[c]"));
  EXPECT_EQ(one_, "[d,e]");
}

TEST_F(ArgumentsTest, takes_what_is_negative_for_a_value) {
  parse(app_, {"list", "-5s", "-.5", "--number", "-7", "--one=-1h"});
  EXPECT_THAT(words_, ElementsAre("-5s", "-.5"));
  EXPECT_EQ(number_, -7);
  EXPECT_EQ(one_, "-1h");
}

TEST_F(ArgumentsTest, takes_everything_behind_two_hyphens_as_the_command) {
  parse(app_, {"pop", "order", "--", "sh", "-c", "", "--", "[x]", "--one"});
  EXPECT_THAT(words_, ElementsAre("order"));
  EXPECT_THAT(several_, ElementsAre("sh", "-c", "", "--", "[x]", "--one"));
}

TEST_F(ArgumentsTest, helps_as_a_command_too) {
  EXPECT_THROW(parse(app_, {"help"}), CLI::CallForHelp);
  EXPECT_THROW(parse(app_, {"help", "token", "new"}), CLI::CallForHelp);
  EXPECT_EQ(explained({"help", "lits"}),
            "delayq: there is no command \"lits\". Did you mean list?\ndelayq --help lists them\n");
  EXPECT_EQ(explained({"help", "token", "nwe"}),
            "delayq: there is no command \"nwe\". Did you mean new?\ndelayq --help lists them\n");
}

TEST_F(ArgumentsTest, says_what_was_probably_meant) {
  EXPECT_EQ(explained({"lsit", "a"}),
            "delayq: there is no command \"lsit\". Did you mean list?\ndelayq --help lists them\n");
  EXPECT_EQ(explained({"something"}),
            "delayq: there is no command \"something\".\ndelayq --help lists them\n");
  EXPECT_EQ(
      explained({"list", "--onee", "x"}),
      "delayq list: there is no option --onee. Did you mean --one?\ndelayq list --help lists all options\n");
  EXPECT_EQ(
      explained({"token", "new", "--nam=x"}),
      "delayq token new: there is no option --nam. Did you mean --name?\ndelayq token new --help lists all "
      "options\n");
  EXPECT_EQ(explained({"token", "nwe"}),
            "delayq token: there is no command \"nwe\". Did you mean new?\ndelayq token --help lists them\n");
  EXPECT_EQ(explained({"list", "--number", "[x]"}),
            "delayq list: --number: \"[x]\" is not a number\ndelayq list --help lists all options\n");
  EXPECT_EQ(explained({"list", "--one", "1"}), "it was understood");
}

TEST_F(ArgumentsTest, what_was_typed_does_nothing_to_the_terminal) {
  const std::string evil = "\x1b]0;x\x07\u009b2J\u202e\nx";
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{evil},
                                             {"-" + evil},
                                             {"--" + evil},
                                             {"list", "--" + evil},
                                             {"list", "--number", evil},
                                             {"list", "--number", "1", "-" + evil},
                                             {"token", evil},
                                             {"token", "new", evil},
                                             {"help", evil}}) {
    const std::string said = explained(arguments);
    EXPECT_THAT(said,
                testing::Not(testing::AnyOf(testing::HasSubstr("\x1b"), testing::HasSubstr("\x07"),
                                            testing::HasSubstr("\u009b"), testing::HasSubstr("\u202e"))));
    EXPECT_LE(std::count(said.begin(), said.end(), '\n'), 2) << said;
  }
}

}  // namespace
}  // namespace delayq::cli
