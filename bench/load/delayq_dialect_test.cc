#include "bench/load/delayq_dialect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/load/jobs_reply.h"
#include "resp/command_parser.h"

namespace delayq::bench {
namespace {

using testing::ElementsAre;

constexpr std::string_view kTwoJobs =
    "*2\r\n*6\r\n$2\r\nl1\r\n$1\r\nt\r\n$1\r\na\r\n$3\r\nx\ry\r\n:1\r\n:1800000000123\r\n"
    "*6\r\n$2\r\nl2\r\n$1\r\nt\r\n$1\r\nb\r\n$0\r\n\r\n:2\r\n:5\r\n";

/// The one command in `text`.
std::vector<std::string> words_of(std::string_view text) {
  resp::CommandParser parser;
  EXPECT_EQ(parser.next(text), resp::CommandParser::Outcome::kCommand) << text;
  EXPECT_EQ(parser.consumed(), text.size()) << text;
  return {parser.arguments().begin(), parser.arguments().end()};
}

template <class Append>
std::vector<std::string> appended(Append append) {
  std::string out;
  append(out);
  return words_of(out);
}

TEST(DelayqDialect, MakesTheCommandsOfTheWire) {
  const DelayqDialect dialect({"t", 1, 16});
  const std::string body(16, 'b');
  const std::string id = DelayqDialect::id(7);
  EXPECT_EQ(id.size(), 20U);
  EXPECT_THAT(appended([&](auto& out) { dialect.append_push(0, 1, out); }),
              ElementsAre("PUSH", "t", "0", body));
  EXPECT_THAT(appended([&](auto& out) { dialect.append_far_push(1, out); }),
              ElementsAre("PUSH", "t", "1h", body));
  EXPECT_THAT(appended([&](auto& out) { dialect.append_named_push(7, out); }),
              ElementsAre("PUSH", "t", "1h", body, "ID", id));
  EXPECT_THAT(appended([&](auto& out) { dialect.append_cancel(7, out); }), ElementsAre("CANCEL", "t", id));
  EXPECT_THAT(appended([&](auto& out) { dialect.append_pop(0, out); }), ElementsAre("POP", "t"));
  EXPECT_THAT(words_of(dialect.pop_all(100, "10s")), ElementsAre("POP", "t", "COUNT", "100", "WAIT", "10s"));
}

TEST(DelayqDialect, PutsTheDueTimeIntoTheBody) {
  const DelayqDialect dialect({"t", 1, 16});
  EXPECT_THAT(
      appended([&](auto& out) { dialect.append_dated_push(0, from_unix_ms(1'800'000'000'042), out); }),
      ElementsAre("PUSH", "t", "0", "1800000000042bbb", "AT", "1800000000.042"));
  const DelayqDialect tight({"t", 1, 13});
  EXPECT_THAT(appended([&](auto& out) { tight.append_dated_push(0, from_unix_ms(1'800'000'000'042), out); }),
              ElementsAre("PUSH", "t", "0", "1800000000042", "AT", "1800000000.042"));
}

TEST(DelayqDialect, SpreadsJobsOverTopics) {
  const DelayqDialect dialect({"t", 2, 0});
  EXPECT_THAT(appended([&](auto& out) { dialect.append_far_push(3, out); }),
              ElementsAre("PUSH", "t-1", "1h", ""));
  EXPECT_THAT(words_of(dialect.pop_all(1, "1s")),
              ElementsAre("POP", "t-0", "t-1", "COUNT", "1", "WAIT", "1s"));
}

TEST(DelayqDialect, TellsRepliesApart) {
  const DelayqDialect dialect({});
  EXPECT_EQ(dialect.first_reply("+OK\r\n+")->size, 5U);
  EXPECT_EQ(dialect.first_reply("$5\r\nab")->size, 0U);
  EXPECT_TRUE(dialect.first_reply("-CONFLICT x\r\n")->is_error);
  EXPECT_FALSE(dialect.first_reply("HTTP/1.1 400\r\n").ok());
}

TEST(DelayqDialect, AcksEveryJobOfAReply) {
  const DelayqDialect dialect({});
  std::string acks;
  EXPECT_EQ(dialect.append_acks(kTwoJobs, acks), 2U);
  EXPECT_EQ(acks, "*2\r\n$3\r\nACK\r\n$2\r\nl1\r\n*2\r\n$3\r\nACK\r\n$2\r\nl2\r\n");
  EXPECT_EQ(dialect.append_acks("*0\r\n", acks), 0U);
}

TEST(JobsReply, GivesTheJobs) {
  JobsReply jobs(kTwoJobs);
  PoppedJob job;
  EXPECT_EQ(jobs.size(), 2U);
  ASSERT_TRUE(jobs.next(job));
  EXPECT_EQ(job.lease, "l1");
  EXPECT_EQ(job.body, "x\ry");
  EXPECT_EQ(job.due_ms, 1'800'000'000'123);
  ASSERT_TRUE(jobs.next(job));
  EXPECT_EQ(job.id, "b");
  EXPECT_EQ(job.attempt, 2);
  EXPECT_FALSE(jobs.next(job));
  EXPECT_FALSE(jobs.broken());
}

TEST(JobsReply, SaysWhenSomethingElseCame) {
  for (const char* const reply :
       {"+OK\r\n", "*1\r\n:1\r\n", "*1\r\n*1\r\n$1\r\nl\r\n", "*-1\r\n", "*1\r\n*6\r\n$9\r\nl\r\n"}) {
    JobsReply jobs(reply);
    PoppedJob job;
    EXPECT_FALSE(jobs.next(job));
    EXPECT_TRUE(jobs.broken()) << reply;
  }
}

}  // namespace
}  // namespace delayq::bench
