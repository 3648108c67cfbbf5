#include "resp/command_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "resp/writer.h"

namespace delayq::resp {
namespace {

using Outcome = CommandParser::Outcome;
using Words = std::vector<std::string>;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

Words words_of(const CommandParser& parser) { return {parser.arguments().begin(), parser.arguments().end()}; }

std::string written(const Words& words) {
  std::string out;
  const std::vector<std::string_view> views(words.begin(), words.end());
  append_command(out, views);
  return out;
}

/// Reads `text`, which is one whole command, and first every beginning of it: each must be partial and ask
/// for no more than there is.
Words read_growing(const std::string& text, CommandLimits limits = {}) {
  CommandParser parser(limits);
  for (size_t size = 0; size < text.size(); ++size) {
    const std::string part = text.substr(0, size);
    EXPECT_EQ(parser.next(part), Outcome::kPartial) << "the first " << size << " of " << text;
    EXPECT_GT(parser.needed(), size);
    EXPECT_LE(parser.needed(), text.size());
  }
  EXPECT_EQ(parser.next(text), Outcome::kCommand) << parser.error();
  EXPECT_EQ(parser.consumed(), text.size());
  Words words = words_of(parser);
  const std::string more = text + "*1\r\n$";
  EXPECT_EQ(parser.next(more), Outcome::kCommand);
  EXPECT_EQ(parser.consumed(), text.size());
  EXPECT_EQ(words_of(parser), words);
  return words;
}

std::string error_of(std::string_view text, CommandLimits limits = {}) {
  CommandParser parser(limits);
  EXPECT_EQ(parser.next(text), Outcome::kBroken) << text;
  return parser.error();
}

TEST(CommandParser, ReadsArraysAtEverySplitPoint) {
  EXPECT_THAT(read_growing("*1\r\n$4\r\nPING\r\n"), ElementsAre("PING"));
  EXPECT_THAT(read_growing("*3\r\n$4\r\nPUSH\r\n$0\r\n\r\n$5\r\n\r\n$1\r\r\n"),
              ElementsAre("PUSH", "", "\r\n$1\r"));
  EXPECT_THAT(read_growing("*0\r\n"), IsEmpty());
  EXPECT_THAT(read_growing("*-1\r\n"), IsEmpty());
  EXPECT_THAT(read_growing(written(Words(300, "word"))), SizeIs(300));
}

TEST(CommandParser, ReadsNumbersWithManyZerosInFront) {
  EXPECT_THAT(read_growing("*00000002\r\n$00000001\r\na\r\n$000000002\r\nbc\r\n"), ElementsAre("a", "bc"));
  EXPECT_THAT(read_growing("*000000001\r\n$00000000000000000003\r\nabc\r\n"), ElementsAre("abc"));
}

TEST(CommandParser, ReadsLinesAtEverySplitPoint) {
  EXPECT_THAT(read_growing("PING\r\n"), ElementsAre("PING"));
  EXPECT_THAT(read_growing("  push  order\t30s \n"), ElementsAre("push", "order", "30s"));
  EXPECT_THAT(read_growing("\r\n"), IsEmpty());
  EXPECT_THAT(read_growing("\n"), IsEmpty());
}

TEST(CommandParser, UnquotesAsRedisDoes) {
  EXPECT_THAT(read_growing("push a \"b c\" '' \"\"\r\n"), ElementsAre("push", "a", "b c", "", ""));
  EXPECT_THAT(read_growing("x \"\\x41\\n\\r\\t\\b\\a\\\\\\\"\\q\"\n"), ElementsAre("x", "A\n\r\t\b\a\\\"q"));
  EXPECT_THAT(read_growing("x 'it\\'s \\n'\n"), ElementsAre("x", "it's \\n"));
  EXPECT_THAT(read_growing("x \"\\xZZ\"\n"), ElementsAre("x", "xZZ"));
  EXPECT_THAT(read_growing("x a\"b c\"\n"), ElementsAre("x", "ab c"));
  for (const char* const line : {"x \"open\n", "x 'open\n", "x \"a\"b\n", "x 'a'b\n", "x \"\\\n"})
    EXPECT_THAT(error_of(line), HasSubstr("unbalanced quotes"));
}

TEST(CommandParser, AsksForAllOfALongArgumentAtOnce) {
  CommandParser parser;
  const std::string begin = "*2\r\n$4\r\nECHO\r\n$1000000\r\n";
  ASSERT_EQ(parser.next(begin), Outcome::kPartial);
  EXPECT_EQ(parser.needed(), begin.size() + 1'000'000 + 2);
}

TEST(CommandParser, AsksForWhatTheArgumentsBehindMustHave) {
  CommandParser parser;
  ASSERT_EQ(parser.next("*1001\r\n"), Outcome::kPartial);
  EXPECT_GE(parser.needed(), 6'000U);
}

TEST(CommandParser, RefusesWhatIsAboveALimitAsSoonAsItIsRead) {
  const CommandLimits limits{.arguments = 4, .argument_bytes = 10, .command_bytes = 15, .inline_bytes = 20};
  EXPECT_THAT(read_growing("*4\r\n$5\r\nABCDE\r\n$10\r\n0123456789\r\n$0\r\n\r\n$0\r\n\r\n", limits),
              SizeIs(4));
  EXPECT_THAT(error_of("*5\r\n", limits), HasSubstr("number of arguments is 5, above the limit of 4"));
  EXPECT_THAT(error_of("*1\r\n$11\r\n", limits), HasSubstr("length of an argument is 11"));
  EXPECT_THAT(error_of("*2\r\n$9\r\n123456789\r\n$7\r\n", limits), HasSubstr("more than 15 bytes"));
  EXPECT_THAT(error_of(std::string(21, 'x'), limits), HasSubstr("too long"));
  EXPECT_THAT(error_of(std::string(21, 'x') + "\n", limits), HasSubstr("too long"));
  EXPECT_THAT(read_growing(std::string(20, 'x') + "\n", limits), SizeIs(1));
}

TEST(CommandParser, RefusesEndlessAndImpossibleLengths) {
  EXPECT_THAT(error_of("*1\r\n$" + std::string(21, '9')), HasSubstr("not a number"));
  EXPECT_THAT(error_of("*" + std::string(1'000, '1')), HasSubstr("not a number"));
  EXPECT_THAT(error_of("*1\r\n$18446744073709551615\r\n"), HasSubstr("above the limit"));
  EXPECT_THAT(error_of("*1\r\n$99999999999999999999\r\n"), HasSubstr("not a number"));
  for (const char* const text : {"*1\r\n$-1\r\n", "*-2\r\n", "*\r\n", "*1\r\n$\r\n", "*1 \r\n", "*+1\r\n",
                                 "*0x1\r\n", "*1\r\n$1a\r\n"})
    EXPECT_THAT(error_of(text), HasSubstr("not a number"));
}

TEST(CommandParser, RefusesGarbage) {
  EXPECT_THAT(error_of("*1\r\n+OK\r\n"), HasSubstr("expected '$'"));
  EXPECT_THAT(error_of("*1\r\n*1\r\n$1\r\nx\r\n"), HasSubstr("expected '$'"));
  EXPECT_THAT(error_of("*1\rx"), HasSubstr("not followed by a line end"));
  EXPECT_THAT(error_of("*1\r\n$1\r\nxyz"), HasSubstr("not followed by a line end"));
  EXPECT_THAT(error_of("*1\r\n$1\r\nx\rz"), HasSubstr("not followed by a line end"));
}

TEST(CommandParser, ReadsAPipelineOneByOne) {
  const std::string input = written({"PING"}) + "ECHO x\r\n" + written({"ACK", "1"});
  std::string_view rest = input;
  CommandParser parser;
  std::vector<Words> commands;
  while (parser.next(rest) == Outcome::kCommand) {
    commands.push_back(words_of(parser));
    rest.remove_prefix(parser.consumed());
  }
  EXPECT_THAT(commands, ElementsAre(Words{"PING"}, Words{"ECHO", "x"}, Words{"ACK", "1"}));
  EXPECT_TRUE(rest.empty());
}

RC_GTEST_PROP(CommandParserProperty, WhatIsWrittenIsRead, (const std::vector<Words>& commands)) {
  std::string input;
  for (const Words& command : commands) input += written(command);
  std::string_view rest = input;
  CommandParser parser;
  for (const Words& command : commands) {
    RC_ASSERT(parser.next(rest) == Outcome::kCommand);
    RC_ASSERT(words_of(parser) == command);
    rest.remove_prefix(parser.consumed());
  }
  RC_ASSERT(rest.empty());
}

RC_GTEST_PROP(CommandParserProperty, PartsAreNeverEnoughAndNeverAskForTooMuch, (const Words& command)) {
  const std::string input = written(command);
  const auto size = *rc::gen::inRange<size_t>(0, input.size());
  CommandParser parser;
  RC_ASSERT(parser.next(std::string_view(input).substr(0, size)) == Outcome::kPartial);
  RC_ASSERT(parser.needed() > size);
  RC_ASSERT(parser.needed() <= input.size());
}

}  // namespace
}  // namespace delayq::resp
