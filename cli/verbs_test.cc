// Every verb without a server: what it would send, and what it makes of an answer.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <span>
#include <sstream>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <gmock/gmock.h>

#include "cli/cli.h"
#include "cli/verb.h"

namespace delayq::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kNowMs = 1'896'076'800'000;

/// A file with this text, gone when the test is over.
class TextFile {
 public:
  explicit TextFile(std::string_view text) {
    const int descriptor = mkstemp(name_.data());
    EXPECT_GE(descriptor, 0);
    close(descriptor);
    std::ofstream(name_, std::ios::binary) << text;
  }
  ~TextFile() { std::remove(name_.c_str()); }
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;

  const std::string& name() const { return name_; }

 private:
  std::string name_ = testing::TempDir() + "delayq-XXXXXX";
};

class VerbsTest : public testing::Test {
 protected:
  /// Runs a command line against the replies that were lined up, as RESP writes them.
  Status run(const std::vector<std::string>& arguments) {
    Verbs verbs;
    add_producer_verbs(verbs);
    add_consumer_verbs(verbs);
    add_operator_verbs(verbs);
    add_schedule_verbs(verbs);
    add_transfer_verbs(verbs);
    add_top_verb(verbs);
    CLI::App app;
    Verb* verb = nullptr;
    for (auto& each : verbs) {
      CLI::App* const sub = &add_subcommand(app, *each);
      sub->callback([&verb, &each] { verb = each.get(); });
    }
    app.require_subcommand(1);
    parse(app, arguments);
    const Surroundings world{.in = in_,
                             .out = out_,
                             .err = out_,
                             .in_is_terminal = in_is_terminal_,
                             .out_is_terminal = !json_,
                             .now = [] { return from_unix_ms(kNowMs); },
                             .variable = [](const char*) -> const char* { return nullptr; }};
    const Session session{
        .transport = [this](const Words& command, Millis wait) { return answer(command, wait); },
        .world = world,
        .json = json_,
        .json_asked = json_,
        .batch_transport = [this](std::span<const Words> commands) { return answer_all(commands); },
        .server_name = "a:1"};
    Status status = verb->run(session);
    exit_code_ = verb->exit_code();
    return status;
  }

  Result<resp::Value> answer(const Words& command, Millis wait) {
    sent_.push_back(command);
    wait_ = wait;
    std::string_view rest = replies_;
    auto value = resp::take_reply(rest);
    EXPECT_TRUE(value && *value) << "no reply was lined up";
    if (!value || !*value) return Error{ErrorCode::kUnavailable, {}, "no reply"};
    replies_ = std::string(rest);
    return std::move(**value);
  }

  Result<std::vector<resp::Value>> answer_all(std::span<const Words> commands) {
    if (lost_) return Error{ErrorCode::kUnavailable, {}, "gone"};
    batches_.push_back(commands.size());
    std::vector<resp::Value> values;
    for (const Words& command : commands) {
      Result<resp::Value> value = answer(command, {});
      if (!value) return value.error();
      values.push_back(std::move(*value));
    }
    return values;
  }

  std::string output() { return std::exchange(out_, std::ostringstream()).str(); }

  std::istringstream in_;
  std::ostringstream out_;
  bool in_is_terminal_ = true;
  bool json_ = false;
  bool lost_ = false;  ///< the connection
  std::string replies_;
  std::vector<Words> sent_;
  std::vector<size_t> batches_;  ///< commands that were sent together
  int exit_code_ = 0;
  Millis wait_{};
};

TEST_F(VerbsTest, push_sends_what_it_was_given) {
  replies_ = "*2\r\n$2\r\nid\r\n$1\r\n7\r\n";
  std::istringstream words(
      "push order 30m [1,2] --id 7 --priority 1 --attempts 3 --backoff 1s,2s --lease 1m --group g --callback "
      "http://x --callback-method PUT --callback-format cloudevents --header tenant=acme --header sum=a=b "
      "--replace");
  ASSERT_TRUE(run({std::istream_iterator<std::string>(words), {}}));
  EXPECT_THAT(sent_,
              ElementsAre(ElementsAre("PUSH", "order", "30m", "[1,2]", "ID", "7", "PRI", "1", "ATTEMPTS", "3",
                                      "BACKOFF", "1s,2s", "LEASE", "1m", "GROUP", "g", "CALLBACK", "http://x",
                                      "METHOD", "PUT", "FORMAT", "cloudevents", "HEADER", "tenant", "acme",
                                      "HEADER", "sum", "a=b", "REPLACE", "FIELDS")));
  EXPECT_EQ(output(), "7\n");
}

TEST_F(VerbsTest, push_reads_its_body_from_standard_input) {
  in_is_terminal_ = false;
  json_ = true;
  in_.str("from\na pipe");
  replies_ = "*4\r\n$6\r\nresult\r\n$4\r\nkept\r\n$2\r\nid\r\n$1\r\n7\r\n";
  ASSERT_TRUE(run({"push", "order", "30m"}));
  EXPECT_EQ(output(), "{\"topic\":\"order\",\"result\":\"kept\",\"id\":\"7\"}\n");
  in_.str("-");
  in_.clear();
  replies_ = "%2\r\n$6\r\nresult\r\n$4\r\nkept\r\n$2\r\nid\r\n$1\r\n7\r\n";
  ASSERT_TRUE((json_ = false, run({"push", "order", "0", "-", "--keep"})));
  EXPECT_EQ(output(), "7 kept\n");
  EXPECT_THAT(sent_, ElementsAre(ElementsAre("PUSH", "order", "30m", "from\na pipe", "FIELDS"),
                                 ElementsAre("PUSH", "order", "0", "-", "KEEP", "FIELDS")));
}

TEST_F(VerbsTest, lists_take_words_in_brackets_as_they_are) {
  replies_ = ":1\r\n*0\r\n$1\r\n7\r\n";
  ASSERT_TRUE(run({"redrive", "order", "[a,b]", "\x02", "c"}));
  EXPECT_THAT(sent_.back(), ElementsAre("REDRIVE", "order", "ID", "[a,b]", "\x02", "c"));
  ASSERT_TRUE(run({"pop", "[x]"}));
  EXPECT_THAT(sent_.back(), ElementsAre("POP", "[x]", "HEADERS"));
  ASSERT_TRUE(run({"push", "t", "0", "[1,2]", "--group=[a]", "--id", "[]"}));
  EXPECT_THAT(sent_.back(), ElementsAre("PUSH", "t", "0", "[1,2]", "ID", "[]", "GROUP", "[a]"));
}

TEST_F(VerbsTest, push_reads_files) {
  const TextFile one("one\n");
  const TextFile two("");
  replies_ = "$1\r\n7\r\n$1\r\n8\r\n";
  ASSERT_TRUE(run({"push", "order", "1s", "--file", one.name(), "--file", two.name()}));
  EXPECT_THAT(sent_, ElementsAre(ElementsAre("PUSH", "order", "1s", "one\n"),
                                 ElementsAre("PUSH", "order", "1s", "")));
  EXPECT_EQ(output(), "7\n8\n");
  EXPECT_THAT(run({"push", "order", "1s", "--file", "/nowhere/x"}).error().detail, HasSubstr("/nowhere/x"));
  EXPECT_THAT(run({"push", "order", "1s", "--file", "/"}).error().detail, HasSubstr("cannot be read"));
  EXPECT_FALSE(run({"push", "order", "1s", "body", "--file", one.name()}));
  EXPECT_FALSE(run({"push", "order", "--id", "x", "--file", one.name(), "--file", two.name()}));
}

TEST_F(VerbsTest, push_lines_sends_them_together) {
  in_is_terminal_ = false;
  std::string lines;
  for (int i = 0; i < 1'201; ++i) {
    lines += std::to_string(i) + (i % 2 == 0 ? "\n\n" : "\r\n");
    replies_ += "$1\r\n7\r\n";
  }
  in_.str(lines + "last");
  replies_ += "$1\r\n7\r\n";
  ASSERT_TRUE(run({"push", "order", "5s", "--group", "g", "--lines"}));
  EXPECT_EQ(output(), "1,202 pushed\n");
  EXPECT_THAT(batches_, ElementsAre(500, 500, 202));
  EXPECT_THAT(sent_.front(), ElementsAre("PUSH", "order", "5s", "0", "GROUP", "g"));
  EXPECT_THAT(sent_.back(), ElementsAre("PUSH", "order", "5s", "last", "GROUP", "g"));
}

TEST_F(VerbsTest, push_lines_takes_a_dash_for_standard_input) {
  const TextFile file("a\n");
  in_.str("b\n");
  replies_ = "$1\r\n7\r\n$1\r\n8\r\n";
  ASSERT_TRUE(run({"push", "order", "--lines", file.name(), "-"}));
  EXPECT_EQ(output(), "2 pushed\n");
  EXPECT_THAT(sent_.back(), ElementsAre("PUSH", "order", "0", "b"));
}

TEST_F(VerbsTest, push_lines_names_the_line_that_is_refused) {
  const TextFile file("a\n\nb\nc\n");
  replies_ = "$1\r\n7\r\n-TOOLARGE body is too large\r\n$1\r\n8\r\n";
  const Status status = run({"push", "order", "--lines", file.name()});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kTooLarge);
  EXPECT_EQ(status.error().detail, file.name() +
                                       ", line 3: body is too large (the lines up to 4 were sent "
                                       "together with it); 2 jobs are pushed");
  EXPECT_THAT(run({"push", "order", "--lines", "/nowhere/x"}).error().detail,
              HasSubstr("--lines: /nowhere/x cannot be read"));
  EXPECT_THAT(run({"push", "order", "--lines", "/"}).error().detail, HasSubstr("cannot be read"));
  EXPECT_THAT(run({"push", "order", "--lines"}).error().detail, HasSubstr("pipe the lines in"));
}

TEST_F(VerbsTest, push_lines_tells_what_it_does_not_know) {
  const TextFile file("a\nb\n");
  lost_ = true;
  EXPECT_THAT(
      run({"push", "order", "--lines", file.name()}).error().detail,
      HasSubstr("line 1: gone; the 0 jobs of the lines before are pushed, and of the lines from here to "
                "2 we do not know"));
}

TEST_F(VerbsTest, pop_refuses_commands_that_are_none) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"pop", "t", "--exec"},
                                             {"pop", "t", "--", "true"},
                                             {"pop", "t", "--exec", "true", "--", "true"},
                                             {"pop", "t", "--exec", "true", "--lease", "soon"},
                                             {"pop", "t", "--exec", "true", "--wait", "soon"},
                                             {"pop", "t", "--exec", "true", "--count", "0"}}) {
    EXPECT_EQ(run(arguments).error().code, ErrorCode::kInvalid) << arguments.back();
  }
  EXPECT_THROW(static_cast<void>(run({"pop", "t", "--forever"})), CLI::ParseError);
  EXPECT_THROW(static_cast<void>(run({"pop", "t", "--exec", "true", "--autoack"})), CLI::ParseError);
  EXPECT_THROW(static_cast<void>(run({"pop", "t", "--exec", "true", "--workers", "0"})), CLI::ParseError);
  EXPECT_TRUE(sent_.empty());
}

TEST_F(VerbsTest, top_shows_one_moment) {
  json_ = true;
  const std::string stats = "*4\r\n$5\r\nready\r\n:3\r\n$6\r\ntopics\r\n:2\r\n";
  const std::string page = "*2\r\n$0\r\n\r\n*1\r\n*7\r\n$1\r\nt\r\n:1\r\n:0\r\n:1\r\n:2\r\n:3\r\n:0\r\n";
  const std::string look = stats + page + stats;
  replies_ = look + look;
  ASSERT_TRUE(run({"top", "--once", "--interval", "100ms", "--page", "7"}));
  EXPECT_THAT(sent_,
              ElementsAre(ElementsAre("STATS"), ElementsAre("TOPICS", "", "7"), ElementsAre("STATS", "t"),
                          ElementsAre("STATS"), ElementsAre("TOPICS", "", "7"), ElementsAre("STATS", "t")));
  EXPECT_THAT(output(), HasSubstr("\"topics\":2,\"totals\":{\"delayed\":0,\"ready\":3,"));
  EXPECT_EQ(run({"top", "--interval", "1ms"}).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(run({"top", "--interval", "soon"}).error().code, ErrorCode::kInvalid);
  EXPECT_THROW(static_cast<void>(run({"top", "--sort", "colour"})), CLI::ParseError);
}

TEST_F(VerbsTest, push_at_a_moment_has_no_delay) {
  replies_ = "$1\r\n7\r\n";
  ASSERT_TRUE(run({"push", "order", "body", "--at", "1896076800"}));
  EXPECT_THAT(sent_, ElementsAre(ElementsAre("PUSH", "order", "0", "body", "AT", "1896076800")));
  EXPECT_EQ(run({"push", "order", "1s", "body", "--at", "1"}).error().code, ErrorCode::kInvalid);
}

TEST_F(VerbsTest, push_does_not_wait_for_a_terminal) {
  const Status status = run({"push", "order", "30m"});
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().detail, HasSubstr("body: is missing"));
  EXPECT_TRUE(sent_.empty());
}

TEST_F(VerbsTest, server_errors_keep_their_code) {
  replies_ = "-CONFLICT id \"7\" is already delayed\r\n-ERR unknown command\r\n-WRONGTYPE what\r\n";
  EXPECT_EQ(run({"push", "order", "1s", "x"}).error(),
            (Error{ErrorCode::kConflict, "", "id \"7\" is already delayed"}));
  EXPECT_EQ(run({"pause", "order"}).error(), (Error{ErrorCode::kInvalid, "", "unknown command"}));
  EXPECT_EQ(run({"pause", "order"}).error(), (Error{ErrorCode::kInternal, "", "WRONGTYPE what"}));
}

constexpr std::string_view kPopped =
    "*1\r\n*7\r\n$2\r\nL1\r\n$5\r\norder\r\n$1\r\n7\r\n$2\r\nhi\r\n:2\r\n:1896076797700\r\n*0\r\n";
constexpr std::string_view kPoppedWithHeaders =
    "*1\r\n*7\r\n$2\r\nL1\r\n$5\r\norder\r\n$1\r\n7\r\n$2\r\nhi\r\n:2\r\n:1896076797700\r\n"
    "%2\r\n$6\r\ntenant\r\n$4\r\nacme\r\n$4\r\nnote\r\n$0\r\n\r\n";

TEST_F(VerbsTest, pop_shows_a_table_or_lines_of_json) {
  replies_ = kPopped;
  ASSERT_TRUE(run({"pop", "order", "mail", "--count", "5", "--lease", "1m", "--autoack"}));
  EXPECT_THAT(sent_.back(),
              ElementsAre("POP", "order", "mail", "COUNT", "5", "LEASE", "1m", "AUTOACK", "HEADERS"));
  EXPECT_EQ(output(),
            "LEASE  TOPIC  ID  ATTEMPT  DUE       BODY\n"
            "L1     order   7        2  2.3s ago  hi\n");
  json_ = true;
  replies_ =
      "*1\r\n*6\r\n$2\r\nid\r\n$1\r\n7\r\n$4\r\nbody\r\n$2\r\n{}\r\n$14\r\nlease_until_ms\r\n:"
      "1896076830000\r\n";
  ASSERT_TRUE(run({"pop", "order"}));
  EXPECT_THAT(sent_.back(), ElementsAre("POP", "order", "HEADERS", "FIELDS"));
  EXPECT_EQ(output(), "{\"id\":\"7\",\"body\":{},\"lease_until\":\"2030-01-31T08:00:30.000Z\"}\n");
  replies_ = "*0\r\n";
  ASSERT_TRUE(run({"pop", "order"}));
  EXPECT_EQ(output(), "");
}

TEST_F(VerbsTest, pop_shows_headers_if_there_are_any) {
  replies_ = kPoppedWithHeaders;
  ASSERT_TRUE(run({"pop", "order"}));
  EXPECT_THAT(output(), HasSubstr("HEADERS             BODY\nL1     order   7        2  2.3s ago  "
                                  "tenant=acme, note=  hi\n"));
}

TEST_F(VerbsTest, schedule_set_sends_headers) {
  replies_ = "*2\r\n$4\r\nname\r\n$1\r\ns\r\n";
  ASSERT_TRUE(run({"schedule", "set", "s", "x", "--every", "1h", "--topic", "t", "--header", "a="}));
  EXPECT_THAT(sent_.back(), ElementsAre("SCHEDULE", "SET", "s", "TOPIC", "t", "BODY", "x", "EVERY", "1h",
                                        "HEADER", "a", ""));
  EXPECT_THROW(static_cast<void>(run({"push", "order", "1s", "x", "--header", "tenant"})), CLI::ParseError);
}

TEST_F(VerbsTest, get_shows_headers) {
  for (const bool json : {false, true}) {
    replies_ = "%1\r\n$7\r\nheaders\r\n%1\r\n$6\r\ntenant\r\n$2\r\n42\r\n";
    ASSERT_TRUE((json_ = json, run({"get", "order", "7"})));
    EXPECT_EQ(output(), json ? "{\"headers\":{\"tenant\":\"42\"}}\n" : "headers  tenant=42\n");
  }
}

TEST_F(VerbsTest, bpop_waits_and_so_does_its_socket) {
  replies_ = "*0\r\n*0\r\n";
  ASSERT_TRUE(run({"bpop", "order"}));
  EXPECT_THAT(sent_.back(), ElementsAre("POP", "order", "WAIT", "1h", "HEADERS"));
  EXPECT_EQ(wait_, std::chrono::hours{1});
  EXPECT_EQ(output(), "nothing is ready\n");
  ASSERT_TRUE(run({"pop", "order", "--wait", "5s"}));
  EXPECT_EQ(wait_, std::chrono::seconds{5});
}

TEST_F(VerbsTest, ack_tells_that_leases_were_stale) {
  replies_ = ":2\r\n:1\r\n";
  EXPECT_TRUE(run({"ack", "L1", "L2"}));
  EXPECT_EQ(output(), "2 acked\n");
  EXPECT_EQ(run({"ack", "L1", "L2"}).error().code, ErrorCode::kStaleLease);
  EXPECT_THAT(sent_.back(), ElementsAre("ACK", "L1", "L2"));
}

TEST_F(VerbsTest, nack_and_extend) {
  replies_ =
      "*4\r\n$6\r\nresult\r\n$7\r\nretried\r\n$8\r\nretry_ms\r\n:1896076830000\r\n"
      ":1896076860000\r\n:1896076860000\r\n";
  EXPECT_TRUE(run({"nack", "L1", "--delay", "1s", "--reason", "no bank", "--dead"}));
  EXPECT_THAT(sent_.back(), ElementsAre("NACK", "L1", "DELAY", "1s", "REASON", "no bank", "DEAD", "FIELDS"));
  EXPECT_TRUE(run({"extend", "L1", "1m"}));
  EXPECT_THAT(sent_.back(), ElementsAre("EXTEND", "L1", "1m"));
  EXPECT_EQ(output(), "retried at 2030-01-31T08:00:30.000Z, in 30s\nruns out in 1m\n");
  json_ = true;
  EXPECT_TRUE(run({"extend", "L1"}));
  EXPECT_EQ(output(), "{\"result\":\"extended\",\"lease_until\":\"2030-01-31T08:01:00.000Z\"}\n");
}

constexpr std::string_view kJob =
    "*12\r\n$2\r\nid\r\n$2\r\n42\r\n$4\r\nbody\r\n$1\r\n\xff\r\n$6\r\ndue_ms\r\n:1896076830000\r\n"
    "$8\r\npriority\r\n:1024\r\n$16\r\ncancel_requested\r\n:1\r\n$7\r\noutcome\r\n$1\r\n7\r\n";

TEST_F(VerbsTest, get_shows_every_field) {
  replies_ = kJob;
  ASSERT_TRUE(run({"get", "order", "42"}));
  EXPECT_THAT(sent_.back(), ElementsAre("GET", "order", "42"));
  EXPECT_EQ(output(),
            "id                42\n"
            "body              \\xff\n"
            "due               2030-01-31T08:00:30.000Z, in 30s\n"
            "priority          1,024\n"
            "cancel requested  yes\n"
            "outcome           7\n");
  json_ = true;
  replies_ = kJob;
  ASSERT_TRUE(run({"get", "order", "42"}));
  EXPECT_EQ(
      output(),
      "{\"id\":\"42\",\"body_base64\":\"/w==\",\"due_at\":\"2030-01-31T08:00:30.000Z\",\"priority\":1024,"
      "\"cancel_requested\":true,\"outcome\":\"7\"}\n");
}

TEST_F(VerbsTest, get_of_no_job_is_an_error) {
  replies_ = "$-1\r\n";
  EXPECT_EQ(run({"get", "order", "7"}).error(),
            (Error{ErrorCode::kNotFound, "", "topic order has no job \"7\""}));
}

TEST_F(VerbsTest, cancel_by_id_or_group) {
  replies_ = "+cancelled\r\n*4\r\n$9\r\ncancelled\r\n:1200\r\n$8\r\nreserved\r\n:1\r\n";
  EXPECT_TRUE(run({"cancel", "order", "7"}));
  EXPECT_TRUE(run({"cancel", "--group", "account:7"}));
  EXPECT_THAT(sent_, ElementsAre(ElementsAre("CANCEL", "order", "7"),
                                 ElementsAre("CANCELGROUP", "account:7", "FIELDS")));
  EXPECT_EQ(output(), "cancelled\n1,200 cancelled, 1 running: not tried again\n");
  EXPECT_FALSE(run({"cancel", "order"}));
  EXPECT_FALSE(run({"cancel", "order", "7", "--group", "g"}));
}

TEST_F(VerbsTest, reschedule_needs_one_time) {
  replies_ = "+OK\r\n+OK\r\n";
  EXPECT_TRUE(run({"reschedule", "order", "7", "10m"}));
  EXPECT_TRUE(run({"reschedule", "order", "7", "--at", "1896076800"}));
  EXPECT_THAT(sent_, ElementsAre(ElementsAre("RESCHEDULE", "order", "7", "10m"),
                                 ElementsAre("RESCHEDULE", "order", "7", "AT", "1896076800")));
  EXPECT_FALSE(run({"reschedule", "order", "7"}));
  EXPECT_FALSE(run({"reschedule", "order", "7", "1s", "--at", "1"}));
}

TEST_F(VerbsTest, redrive_pause_resume) {
  replies_ = ":3\r\n:1\r\n+OK\r\n+OK\r\n";
  EXPECT_TRUE(run({"redrive", "order"}));
  EXPECT_TRUE(run({"redrive", "order", "7", "9"}));
  EXPECT_TRUE(run({"pause", "order"}));
  EXPECT_TRUE(run({"resume", "order"}));
  EXPECT_THAT(sent_,
              ElementsAre(ElementsAre("REDRIVE", "order"), ElementsAre("REDRIVE", "order", "ID", "7", "9"),
                          ElementsAre("PAUSE", "order"), ElementsAre("RESUME", "order")));
  EXPECT_EQ(output(), "3 ready again\n1 ready again\npaused\nresumed\n");
}

constexpr std::string_view kTwoPages =
    "*2\r\n$1\r\nc\r\n*1\r\n*7\r\n$5\r\norder\r\n:1234\r\n:0\r\n:1\r\n:2\r\n:3\r\n:0\r\n"
    "*2\r\n$0\r\n\r\n*1\r\n*7\r\n$1\r\nx\r\n:1\r\n:0\r\n:1\r\n:2\r\n:3\r\n:1\r\n";

TEST_F(VerbsTest, topics_walks_all_pages) {
  replies_ = kTwoPages;
  ASSERT_TRUE(run({"topics"}));
  EXPECT_THAT(sent_, ElementsAre(ElementsAre("TOPICS"), ElementsAre("TOPICS", "c")));
  EXPECT_EQ(output(),
            "TOPIC  DELAYED  READY  RESERVED  DONE  DEAD  PAUSED\n"
            "order    1,234      0         1     2     3  no\n"
            "x            1      0         1     2     3  yes\n");
  json_ = true;
  replies_ =
      "*2\r\n$0\r\n\r\n*1\r\n*6\r\n$5\r\ntopic\r\n$1\r\nx\r\n$5\r\nready\r\n:1\r\n$6\r\npaused\r\n:1\r\n";
  ASSERT_TRUE(run({"topics"}));
  EXPECT_EQ(output(), "{\"topic\":\"x\",\"counts\":{\"ready\":1},\"paused\":true}\n");
}

TEST_F(VerbsTest, stats_reads_units_from_names) {
  replies_ =
      "*6\r\n$7\r\ndelayed\r\n:5000\r\n$15\r\nlateness_p99_ms\r\n:1500\r\n$12\r\nmemory_bytes\r\n:2048\r\n";
  ASSERT_TRUE(run({"stats", "order"}));
  EXPECT_THAT(sent_.back(), ElementsAre("STATS", "order"));
  EXPECT_EQ(output(),
            "delayed       5,000\n"
            "lateness p99  1.5s\n"
            "memory        2.0 KiB\n");
}

TEST_F(VerbsTest, dead_lists_up_to_its_count) {
  const std::string job = "*4\r\n$2\r\nid\r\n$1\r\n7\r\n$7\r\noutcome\r\n$6\r\nclosed\r\n";
  replies_ = "*2\r\n$1\r\nc\r\n*1\r\n" + job + "*2\r\n$1\r\nd\r\n*1\r\n" + job;
  ASSERT_TRUE(run({"dead", "order", "--prefix", "7", "--error", "clo", "--count", "2"}));
  EXPECT_THAT(sent_,
              ElementsAre(ElementsAre("LIST", "order", "dead", "PREFIX", "7", "ERROR", "clo", "COUNT", "2"),
                          ElementsAre("LIST", "order", "dead", "PREFIX", "7", "ERROR", "clo", "COUNT", "1",
                                      "CURSOR", "c")));
  EXPECT_THAT(output(), HasSubstr("and more: see --count\n"));
}

// ---- schedules

constexpr std::string_view kSchedule =
    "*16\r\n$6\r\nresult\r\n$7\r\ncreated\r\n$4\r\nname\r\n$1\r\ns\r\n$5\r\nstate\r\n$6\r\nactive\r\n"
    "$5\r\ntopic\r\n$1\r\nt\r\n$4\r\ncron\r\n$9\r\n0 2 * * *\r\n$4\r\nzone\r\n$13\r\nAsia/Shanghai\r\n"
    "$7\r\nnext_ms\r\n:1896080400000\r\n$10\r\nnext_local\r\n$25\r\n2030-01-31T17:00:00+08:00\r\n";

TEST_F(VerbsTest, schedule_set_sends_what_it_was_given) {
  replies_ = kSchedule;
  ASSERT_TRUE(
      run({"schedule",      "set",        "s",        "{}",      "--cron",    "0 2 * * *",  "--zone",
           "Asia/Shanghai", "--topic",    "t",        "--start", "1",         "--end",      "2",
           "--runs",        "3",          "--jitter", "4s",      "--overlap", "skip",       "--missed",
           "all",           "--priority", "5",        "--group", "g",         "--attempts", "6"}));
  EXPECT_THAT(sent_.back(),
              ElementsAre("SCHEDULE", "SET", "s", "TOPIC", "t", "BODY", "{}", "CRON", "0 2 * * *", "ZONE",
                          "Asia/Shanghai", "START", "1", "END", "2", "RUNS", "3", "JITTER", "4s", "OVERLAP",
                          "skip", "MISSED", "all", "PRI", "5", "ATTEMPTS", "6", "GROUP", "g"));
  EXPECT_EQ(output(), "created: next at 2030-01-31T17:00:00+08:00, in 1h\n");
  json_ = true;
  in_is_terminal_ = false;
  in_.str("from a pipe");
  replies_ = kSchedule;
  ASSERT_TRUE(run({"schedule", "set", "s", "--every", "10s", "--topic", "t"}));
  EXPECT_THAT(sent_.back(),
              ElementsAre("SCHEDULE", "SET", "s", "TOPIC", "t", "BODY", "from a pipe", "EVERY", "10s"));
  EXPECT_THAT(
      output(),
      HasSubstr(
          "\"cron\":\"0 2 * * *\",\"zone\":\"Asia/Shanghai\",\"next_at\":\"2030-01-31T09:00:00.000Z\","));
}

TEST_F(VerbsTest, schedule_set_refuses_what_cannot_be_meant) {
  const auto refused = [this](std::vector<std::string> options) {
    options.insert(options.begin(), {"schedule", "set", "s", "--topic", "t"});
    try {
      return run(options).error().detail;
    } catch (const CLI::ParseError& error) {
      return std::string(error.what());
    }
  };
  EXPECT_THAT(refused({"b"}), HasSubstr("--cron or --every is needed"));
  EXPECT_THAT(refused({"--every", "1h"}), HasSubstr("body: is missing: give it after the name"));
  EXPECT_THAT(refused({"--every", "1h", "b", "--file", "f"}), HasSubstr("--file: cannot be given together"));
  EXPECT_THAT(refused({"--every", "1h", "--file", "/no/such"}), HasSubstr("--file: /no/such cannot be read"));
  EXPECT_THAT(refused({"--every", "1h", "--cron", "@daily", "b"}), HasSubstr("--cron excludes --every"));
  EXPECT_THAT(refused({"--every", "1h", "--zone", "UTC", "b"}), HasSubstr("--zone requires --cron"));
  EXPECT_THAT(refused({"--every", "1h", "--every", "2h", "b"}), HasSubstr("--every"));
  EXPECT_THAT(refused({"--every"}), HasSubstr("--every"));
  EXPECT_THAT(refused({"--every", "1h", "--overlap", "never", "b"}), HasSubstr("--overlap: never not in"));
  EXPECT_THAT(refused({"--nonsense"}), HasSubstr("--nonsense"));
  EXPECT_TRUE(sent_.empty());
}

TEST_F(VerbsTest, schedule_next_shows_local_time_and_utc) {
  const std::string two =
      "*2\r\n*2\r\n:1896080400000\r\n$25\r\n2030-01-31T17:00:00+08:00\r\n"
      "*2\r\n:1896080400250\r\n$29\r\n2030-01-31T17:00:00.250+08:00\r\n";
  replies_ = two;
  ASSERT_TRUE(run({"schedule", "next", "set"}));
  EXPECT_THAT(sent_.back(), ElementsAre("SCHEDULE", "NEXT", "NAME", "set"));
  EXPECT_EQ(output(),
            "LOCAL                          UTC                       WHEN\n"
            "2030-01-31T17:00:00+08:00      2030-01-31T09:00:00Z      in 1h\n"
            "2030-01-31T17:00:00.250+08:00  2030-01-31T09:00:00.250Z  in 1h\n");
  replies_ = "*0\r\n" + std::string("*2\r\n$5\r\nstate\r\n$6\r\npaused\r\n");
  ASSERT_TRUE(run({"schedule", "next", "s"}));
  EXPECT_EQ(output(), "it is paused: no occurrence until it is resumed\n");
  json_ = true;
  replies_ = two;
  ASSERT_TRUE(
      run({"schedule", "next", "--cron", "0 2 * * *", "--zone", "UTC", "--from", "7", "--count", "2"}));
  EXPECT_THAT(sent_.back(),
              ElementsAre("SCHEDULE", "NEXT", "CRON", "0 2 * * *", "ZONE", "UTC", "FROM", "7", "COUNT", "2"));
  EXPECT_THAT(
      output(),
      testing::StartsWith("{\"at\":\"2030-01-31T09:00:00.000Z\",\"local\":\"2030-01-31T17:00:00+08:00\"}\n"));
  EXPECT_THAT(run({"schedule", "next"}).error().detail, HasSubstr("NAME is needed, or a rule"));
  EXPECT_THROW(static_cast<void>(run({"schedule", "next", "s", "--every", "1h"})), CLI::ParseError);
  EXPECT_THROW(static_cast<void>(run({"schedule", "next", "s", "--count", "1001"})), CLI::ParseError);
}

TEST_F(VerbsTest, schedule_list_is_harmless_on_a_terminal) {
  replies_ =
      "*2\r\n$1\r\na\r\n*1\r\n*6\r\n$4\r\nname\r\n$5\r\na\x1b[2J\r\n$5\r\nevery\r\n$3\r\n10s\r\n"
      "$5\r\nstate\r\n$5\r\nended\r\n"
      "*2\r\n$0\r\n\r\n*2\r\n" +
      std::string(kSchedule) + "*4\r\n$4\r\nname\r\n$1\r\nx\r\n$7\r\nproblem\r\n$7\r\nno zone\r\n";
  ASSERT_TRUE(run({"schedule", "list"}));
  EXPECT_THAT(sent_, ElementsAre(ElementsAre("SCHEDULE", "LIST", "COUNT", "1000"),
                                 ElementsAre("SCHEDULE", "LIST", "COUNT", "1000", "AFTER", "a")));
  EXPECT_EQ(output(),
            "NAME      RULE       ZONE           TOPIC  STATE   NEXT\n"
            "a\\x1b[2J  every 10s                        ended\n"
            "s         0 2 * * *  Asia/Shanghai  t      active  2030-01-31T17:00:00+08:00, in 1h\n"
            "x                                          broken  no zone\n");
}

TEST_F(VerbsTest, a_schedule_is_shown_paused_resumed_run_and_removed) {
  replies_ = kSchedule;
  ASSERT_TRUE(run({"schedule", "show", "s"}));
  EXPECT_THAT(output(), HasSubstr("next        2030-01-31T09:00:00.000Z, in 1h\n"));
  replies_ = "$-1\r\n";
  EXPECT_EQ(run({"schedule", "show", "push"}).error().code, ErrorCode::kNotFound);
  replies_ = std::string(kSchedule) + std::string(kSchedule) + "*2\r\n$2\r\nid\r\n$3\r\ns@1\r\n+OK\r\n";
  for (const char* verb : {"pause", "resume", "run", "remove"})
    ASSERT_TRUE(run({"schedule", verb, "s"})) << verb;
  EXPECT_EQ(output(), "paused\nresumed: next at 2030-01-31T17:00:00+08:00, in 1h\ns@1\nremoved\n");
  EXPECT_THAT(sent_.back(), ElementsAre("SCHEDULE", "DEL", "s"));
  replies_ = "-NOTFOUND there is no schedule \"s\"\r\n";
  EXPECT_EQ(run({"schedule", "remove", "s"}).error().code, ErrorCode::kNotFound);
}

TEST_F(VerbsTest, replies_of_another_server_are_told) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"push", "t", "0", "x"},
                                             {"pop", "t"},
                                             {"ack", "L"},
                                             {"extend", "L"},
                                             {"get", "t", "i"},
                                             {"cancel", "--group", "g"},
                                             {"redrive", "t"},
                                             {"topics"},
                                             {"stats"},
                                             {"dead", "t"},
                                             {"schedule", "set", "s", "b", "--every", "1h", "--topic", "t"},
                                             {"schedule", "next", "s"},
                                             {"schedule", "list"},
                                             {"schedule", "show", "s"},
                                             {"schedule", "pause", "s"},
                                             {"schedule", "resume", "s"},
                                             {"schedule", "run", "s"},
                                             {"schedule", "remove", "s"}}) {
    replies_ = "+PONG\r\n";
    EXPECT_EQ(run(arguments).error().code, ErrorCode::kInternal) << arguments[0];
  }
}

}  // namespace
}  // namespace delayq::cli
