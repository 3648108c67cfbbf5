// list, purge, topics rm, consumers, forecast, events and doctor without a server.
#include <sstream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/cli.h"
#include "cli/doctor.h"
#include "cli/events_view.h"
#include "cli/forecast_view.h"
#include "cli/list_view.h"
#include "cli/terminal.h"
#include "cli/verb.h"
#include "resp/writer.h"

namespace delayq::cli {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr int64_t kNowMs = 1'896'076'800'000;  // 2030-01-31T08:00:00Z
constexpr std::string_view kHostile = "\x1b]0;x\x07\u202e";

class Text {
 public:
  Text& bulk(std::string_view text) {
    writer_.bulk(text);
    return *this;
  }
  Text& integer(int64_t number) {
    writer_.integer(number);
    return *this;
  }
  Text& map(size_t size) {
    writer_.map(size);
    return *this;
  }
  Text& array(size_t size) {
    writer_.array(size);
    return *this;
  }
  Text& field(std::string_view name, int64_t number) { return bulk(name).integer(number); }
  Text& field(std::string_view name, std::string_view text) { return bulk(name).bulk(text); }
  Text& error(std::string_view code, std::string_view text) {
    writer_.error(code, text);
    return *this;
  }
  Text& ok() {
    writer_.simple("OK");
    return *this;
  }
  const std::string& str() const { return out_; }
  resp::Value value() const {
    std::string_view rest = out_;
    return **resp::take_reply(rest);
  }

 private:
  std::string out_;
  resp::Writer writer_{out_, resp::Version::k3};
};

class LookingVerbsTest : public testing::Test {
 protected:
  Status run(const std::vector<std::string>& arguments) {
    Verbs verbs;
    add_operator_verbs(verbs);
    add_list_verb(verbs);
    add_forecast_verb(verbs);
    CLI::App app;
    std::vector<std::pair<CLI::App*, Verb*>> commands;
    for (auto& each : verbs) commands.emplace_back(&add_subcommand(app, *each), each.get());
    app.require_subcommand(1);
    parse(app, arguments);
    const auto chosen = std::find_if(commands.begin(), commands.end(), [](const auto& command) {
      return command.first->parsed() && command.first->get_subcommands().empty();
    });
    return chosen->second->run(session());
  }

  Session session() {
    return {.transport = [this](const Words& command, Millis) -> Result<resp::Value> {
              sent_.push_back(command);
              std::string_view rest = replies_;
              auto value = resp::take_reply(rest);
              if (!value || !*value) return Error{ErrorCode::kUnavailable, {}, "no reply was lined up"};
              replies_ = std::string(rest);
              return std::move(**value);
            },
            .world = world_,
            .json = json_,
            .json_asked = json_,
            .server_name = "a:1"};
  }

  std::string output() { return std::exchange(out_, std::ostringstream()).str(); }

  static Text counts(int64_t delayed, int64_t reserved) {
    Text text;
    return text.map(5)
        .field("delayed", delayed)
        .field("ready", 0)
        .field("reserved", reserved)
        .field("done", 0)
        .field("dead", 2'000);
  }
  static Text& job(Text& text, std::string_view id, std::string_view state) {
    return text.map(6)
        .field("topic", "t")
        .field("id", id)
        .field("state", state)
        .field("due_ms", kNowMs + 5'000)
        .field("attempts", 1)
        .field("outcome", kHostile);
  }

  std::istringstream in_;
  std::ostringstream out_;
  bool json_ = false;
  std::string replies_;
  std::vector<Words> sent_;
  Surroundings world_{.in = in_,
                      .out = out_,
                      .err = out_,
                      .in_is_terminal = true,
                      .out_is_terminal = false,
                      .err_is_terminal = true,
                      .now = [] { return from_unix_ms(kNowMs); },
                      .variable = [](const char*) -> const char* { return nullptr; }};
};

// ---- list

TEST_F(LookingVerbsTest, list_walks_pages_and_states_until_the_count) {
  Text text;
  job(job(text.array(2).bulk("c1").array(2), "a", "ready"), "b", "ready");
  text.array(2).bulk("c2").array(0);  // an empty page that is not the last one
  job(text.array(2).bulk("").array(1), "c", "ready");
  job(text.array(2).bulk("c3").array(1), "d", "dead");
  replies_ = text.str() + counts(0, 0).str();
  ASSERT_TRUE(run({"list", "t", "ready", "dead", "ready", "--prefix", "x", "--error", "e", "--count", "4"}));
  EXPECT_THAT(sent_[0], ElementsAre("LIST", "t", "ready", "PREFIX", "x", "ERROR", "e", "COUNT", "4"));
  EXPECT_THAT(sent_[1],
              ElementsAre("LIST", "t", "ready", "PREFIX", "x", "ERROR", "e", "COUNT", "2", "CURSOR", "c1"));
  EXPECT_THAT(sent_[3], ElementsAre("LIST", "t", "dead", "PREFIX", "x", "ERROR", "e", "COUNT", "1"));
  const std::string out = output();
  EXPECT_THAT(
      out,
      AllOf(StartsWith("ID  STATE  DUE    ATTEMPTS  OUTCOME\na   ready  in 5s         1  \\x1b]0;x\\x07"),
            HasSubstr("\nd   dead "), EndsWith("\nand more: see --count\n"), Not(HasSubstr("\x1b"))));
}

TEST_F(LookingVerbsTest, list_by_due_time) {
  const std::string none = Text().array(2).bulk("").array(0).str();
  const std::string now = Text().map(1).field("now_ms", kNowMs).str();
  replies_ = now + none + none + now + none;
  ASSERT_TRUE(run({"list", "t", "dead", "--due-after", "-30m", "--due-before=2h"}));
  EXPECT_THAT(sent_[0], ElementsAre("SERVER")) << "its clock counts";
  EXPECT_THAT(sent_[1], ElementsAre("LIST", "t", "dead", "DUEAFTER", "2030-01-31T07:30:00.000Z", "DUEBEFORE",
                                    "2030-01-31T10:00:00.000Z", "COUNT", "100"));
  EXPECT_EQ(output(), "no such jobs in t\n");
  ASSERT_TRUE(run({"list", "t", "dead", "--due-after", "1896076800"}));
  EXPECT_THAT(sent_[2],
              ElementsAre("LIST", "t", "dead", "DUEAFTER", "2030-01-31T08:00:00.000Z", "COUNT", "100"));
  ASSERT_TRUE(run({"list", "t", "dead", "--due-before", "now"}));
  EXPECT_THAT(sent_[4],
              ElementsAre("LIST", "t", "dead", "DUEBEFORE", "2030-01-31T08:00:00.000Z", "COUNT", "100"));
  replies_ = now + none;
  ASSERT_TRUE(run({"list", "t", "dead", "--due-after", "-36525d"}));
  EXPECT_THAT(sent_[6],
              ElementsAre("LIST", "t", "dead", "DUEAFTER", "1970-01-01T00:00:00.000Z", "COUNT", "100"));
  for (const std::string& wrong :
       {std::string("soon"), std::string("-"), std::string("--5m"), std::string("37000d"),
        std::string("2030-02-31T00:00:00Z"), std::string(kHostile)}) {
    const Status status = run({"list", "t", "--due-before=" + wrong});
    ASSERT_FALSE(status) << wrong;
    EXPECT_THAT(status.error().detail, AllOf(StartsWith("--due-before: "), Not(HasSubstr("\x1b"))));
  }
  EXPECT_EQ(sent_.size(), 7U) << "nothing wrong was sent";
}

TEST_F(LookingVerbsTest, list_says_when_there_is_nothing_and_what_more_there_is) {
  Text none;
  for (int i = 0; i < 5; ++i) none.array(2).bulk("").array(0);
  replies_ = none.str();
  ASSERT_TRUE(run({"list", "t"}));
  EXPECT_EQ(output(), "no jobs in t\n");
  EXPECT_EQ(sent_.size(), 5U) << "one page of each state";
  Text text;
  job(text.array(2).bulk("c").array(1), "a", "reserved");
  replies_ = text.str() + counts(7, 1).str();
  ASSERT_TRUE(run({"list", "t", "--count", "1"}));
  EXPECT_THAT(output(), EndsWith("and more, of 7 delayed, 1 reserved, 2,000 dead: see --count\n"));
}

TEST_F(LookingVerbsTest, list_is_not_watched_in_a_pipe) {
  const Status status = run({"list", "t", "--watch"});
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().detail, HasSubstr("--watch: needs a terminal"));
  EXPECT_FALSE(run({"list", "t", "--watch", "--interval", "1ms"}));
  EXPECT_THROW(static_cast<void>(run({"list", "t", "gone"})), CLI::ParseError);
  EXPECT_TRUE(sent_.empty());
}

TEST_F(LookingVerbsTest, a_watched_list_fits_the_screen) {
  ListSnapshot snapshot{.server = "a:1", .topic = "t", .at = from_unix_ms(kNowMs), .counts = "9 ready"};
  for (int i = 0; i < 9; ++i) {
    Text text;
    ASSERT_TRUE(snapshot.rows.add(session(), job(text, fmt::format("订单{}", i), "ready").value()));
  }
  for (const size_t width : {1U, 10U, 33U, 200U}) {
    for (const size_t height : {1U, 2U, 3U, 7U, 50U}) {
      const auto lines = render_list(snapshot, {.width = width, .height = height});
      EXPECT_LE(lines.size(), height);
      for (const std::string& line : lines) EXPECT_LE(columns_of(line), width) << line;
    }
  }
  const auto lines = render_list(snapshot, {.width = 60, .height = 5, .scroll = 2});
  EXPECT_THAT(lines[0], StartsWith("delayq a:1  08:00:00 UTC  t: 9 ready"));
  EXPECT_THAT(lines[2], StartsWith("订单2"));
  snapshot.problem = "gone";
  EXPECT_THAT(render_list(snapshot, {})[0], HasSubstr("NOT NEW: gone"));
}

// ---- purge, topics rm, consumers

TEST_F(LookingVerbsTest, purge_asks_and_names_what_it_deletes) {
  in_.str("n\ny\n");
  replies_ = counts(3, 1).str();
  ASSERT_TRUE(run({"purge", "t"}));
  EXPECT_THAT(output(),
              AllOf(HasSubstr("Delete 3 delayed, 1 reserved, 2,000 dead of topic t (the reserved ones"),
                    HasSubstr("nothing was deleted")));
  EXPECT_EQ(sent_.size(), 1U);
  replies_ = counts(3, 1).str() + ":3\r\n:2000\r\n";
  ASSERT_TRUE(run({"purge", "t", "--state", "delayed,dead"}));
  EXPECT_THAT(output(),
              AllOf(HasSubstr("Delete 3 delayed, 2,000 dead of topic t?"), EndsWith("2,003 deleted\n")));
  EXPECT_THAT(sent_.back(), ElementsAre("PURGE", "t", "dead"));
}

TEST_F(LookingVerbsTest, purge_in_a_script_needs_yes) {
  world_.in_is_terminal = false;
  replies_ = counts(3, 0).str();
  const Status status = run({"purge", "t"});
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().detail, AllOf(HasSubstr("3 delayed, 2,000 dead"), HasSubstr("--yes")));
  json_ = true;
  replies_ = counts(3, 0).str() + ":2003\r\n" + Text().map(1).field("dead", 0).str();
  ASSERT_TRUE(run({"purge", "t", "--yes"}));
  ASSERT_TRUE(run({"purge", "t", "--yes"}));
  EXPECT_EQ(output(), "{\"jobs\":2003}\n{\"jobs\":0}\n");
}

TEST_F(LookingVerbsTest, topics_rm_says_that_there_is_no_such_topic) {
  replies_ = Text().map(1).field("existed", int64_t{0}).ok().str();
  const Status status = run({"topics", "rm", std::string(kHostile)});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(status.error().detail, AllOf(HasSubstr("no topic \"\\x1b]0;x"), Not(HasSubstr("\x1b"))));
  EXPECT_FALSE(run({"topics", "rm", "t"})) << "not a reply of delayq";
}

TEST_F(LookingVerbsTest, topics_rm_says_what_is_in_the_way) {
  replies_ = Text().map(1).field("existed", 1).error("CONFLICT", "topic \"t\" has 3 jobs").str() +
             counts(3, 0).str();
  ASSERT_TRUE(run({"topics", "rm", "t"}));
  EXPECT_THAT(sent_.back(), ElementsAre("FORGET", "t", "FIELDS"));
  EXPECT_EQ(output(), "t has no jobs, settings and figures any more\n");
  const Status status = run({"topics", "rm", "t"});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kConflict);
  EXPECT_THAT(status.error().detail, AllOf(HasSubstr("3 delayed, 2,000 dead"), HasSubstr("delayq purge t")));
  replies_ = Text().array(2).bulk("").array(0).str();
  ASSERT_TRUE(run({"topics"}));
}

TEST_F(LookingVerbsTest, consumers_shows_who_waits_and_what_is_held) {
  Text text;
  text.map(3).field("connections", 4).field("waiting_total", 2).bulk("waiting").array(1).map(5);
  text.field("client", "c:1").field("protocol", "resp").bulk("topics").array(2).bulk("a").bulk(kHostile);
  text.field("since_ms", kNowMs - 2'000).field("until_ms", kNowMs + 60'000);
  Text topics;
  topics.array(2).bulk("").array(2).map(2).field("topic", "none").field("reserved", int64_t{0});
  topics.map(3).field("topic", "t").field("reserved", 3).field("oldest_lease_ms", kNowMs - 720'000);
  job(topics.array(2).bulk("").array(1), "x", "reserved");
  replies_ = text.str() + topics.str();
  ASSERT_TRUE(run({"consumers"}));
  EXPECT_THAT(output(), AllOf(HasSubstr("connections: 4"), HasSubstr("2s ago"),
                              HasSubstr("leases held: 3, the oldest since 12m ago\n"), HasSubstr("x "),
                              Not(HasSubstr("\x1b")), EndsWith("and more: see --count\n")));
  json_ = true;
  replies_ = text.str() + topics.str();
  ASSERT_TRUE(run({"consumers"}));
  EXPECT_THAT(
      output(),
      AllOf(StartsWith("{\"connections\":4,\"waiting_total\":2,\"waiting\":[{\"client\":\"c:1\","
                       "\"protocol\":\"resp\",\"topics\":[\"a\""),
            HasSubstr("\"since\":\"2030-01-31T07:59:58.000Z\",\"until\":\"2030-01-31T08:01:00.000Z\"}]"),
            HasSubstr("\"leases_total\":3,\"oldest_lease_at\":\"2030-01-31T07:48:00.000Z\",\"leases\":[{")));
  replies_ = Text().error("NOPERM", "only for some").str() + topics.str();
  ASSERT_TRUE(run({"consumers"}));
  EXPECT_THAT(output(), AllOf(StartsWith("{\"leases_total\":3"), Not(HasSubstr("waiting"))));
}

// ---- forecast

ForecastView view_of(std::vector<int64_t> jobs, std::vector<int64_t> scheduled) {
  return {.from = from_unix_ms(kNowMs),
          .to = from_unix_ms(kNowMs + 7'200'000),
          .resolution = Millis{1},
          .jobs = std::move(jobs),
          .scheduled = std::move(scheduled)};
}

TEST_F(LookingVerbsTest, a_forecast_tells_jobs_and_occurrences_apart) {
  EXPECT_THAT(render_forecast(view_of({6, 1, 0, 0}, {2, 1'000, 0, 1}), 60, false),
              ElementsAre("all topics: 7 + 1,003 scheduled due within 2h",
                          "01-31 08:00  #+                          6 + 2 scheduled",
                          "01-31 08:30  #+++++++++++++++++++++++++  1 + 1,000 scheduled",
                          "01-31 09:00                              0",
                          "01-31 09:30  +                           0 + 1 scheduled",
                          "UTC; # stored jobs  + occurrences of schedules to come"));
  EXPECT_THAT(render_forecast(view_of({1}, {0}), 30, true)[1], StartsWith("01-31 08:00  ██"));
}

TEST_F(LookingVerbsTest, a_forecast_fits_any_terminal) {
  for (const size_t width : {1U, 5U, 20U, 79U, 300U}) {
    for (const std::string& line :
         render_forecast(view_of({0, INT64_MAX / 4, 3}, {7, 0, INT64_MAX / 4}), width, true))
      EXPECT_LE(columns_of(line), width) << line;
  }
  ForecastView view = view_of({0}, {0});
  view.has_all_scheduled = false;
  view.resolution = std::chrono::hours{1};
  EXPECT_THAT(render_forecast(view, 80, true),
              ElementsAre(HasSubstr("0 due"), EndsWith("  0"), HasSubstr("UTC"),
                          HasSubstr("could be counted"), HasSubstr("off by 1h")));
}

TEST_F(LookingVerbsTest, blocks_are_for_terminals_that_have_them) {
  const auto with = [](std::string name, std::string value) {
    return has_unicode([name, value](const char* asked) { return asked == name ? value.c_str() : nullptr; });
  };
  EXPECT_TRUE(with("LANG", "de_DE.UTF-8"));
  EXPECT_TRUE(with("LC_ALL", "C.utf8"));
  EXPECT_FALSE(with("LANG", "C"));
  EXPECT_FALSE(with("EDITOR", "UTF-8"));
}

TEST_F(LookingVerbsTest, forecast_asks_as_it_was_told) {
  Text reply;
  reply.map(6).field("from_ms", kNowMs).field("to_ms", kNowMs + 7'200'000).field("resolution_ms", 1);
  reply.bulk("bins").array(1).integer(5).bulk("scheduled").array(1).integer(6).field("scheduled_complete", 1);
  replies_ = Text().map(1).field("now_ms", kNowMs + 1'000).str() + reply.str();
  json_ = true;
  ASSERT_TRUE(run({"forecast", "t", "--for", "2h", "--bins", "1"}));
  EXPECT_THAT(sent_, ElementsAre(ElementsAre("SERVER"),
                                 ElementsAre("FORECAST", "TOPIC", "t", "FROM", "2030-01-31T08:00:01.000Z",
                                             "TO", "2030-01-31T10:00:01.000Z", "BINS", "1")));
  EXPECT_EQ(output(),
            "{\"from\":\"2030-01-31T08:00:00.000Z\",\"to\":\"2030-01-31T10:00:00.000Z\",\"resolution_ms\":1,"
            "\"bins\":[5],\"scheduled\":[6],\"scheduled_complete\":true}\n");
  for (const std::vector<std::string>& wrong : {std::vector<std::string>{"forecast", "--for", "0"},
                                                {"forecast", "--for", "soon"},
                                                {"forecast", "--for", "-1h"},
                                                {"forecast", "--from", "soon"},
                                                {"forecast", "--from", "10", "--to", "9"},
                                                {"forecast", "--to", "9"}}) {
    const Status status = run(wrong);
    ASSERT_FALSE(status);
    EXPECT_THAT(status.error().detail, StartsWith("--")) << "names the option";
  }
  EXPECT_THROW(static_cast<void>(run({"forecast", "--for", "1h", "--to", "9"})), CLI::ParseError);
  EXPECT_THROW(static_cast<void>(run({"forecast", "--bins", "0"})), CLI::ParseError);
  replies_ = Text().error("NOPERM", "this is about all topics").str();
  EXPECT_THAT(run({"forecast"}).error().detail, HasSubstr("delayq forecast TOPIC"));
}

// ---- events

TEST_F(LookingVerbsTest, an_event_is_a_line) {
  Text text;
  text.map(8).field("news", "failed").field("at_ms", kNowMs).field("topic", "t").field("id", kHostile);
  text.field("group", "g").field("attempt", 2).field("due_ms", kNowMs + 30'000).field("error", "no\nway");
  EXPECT_EQ(event_line(session(), text.value()),
            "08:00:00.000  failed       t             \\x1b]0;x\\x07\\xe2\\x80\\xae  group g, attempt 2, "
            "due in 30s  "
            "no\\x0away");
  EXPECT_EQ(event_as_json(text.value(), "c.1"),
            "{\"news\":\"failed\",\"at\":\"2030-01-31T08:00:00.000Z\",\"topic\":\"t\",\"id\":\"\\u001b]0;"
            "x\\u0007\u202e\","
            "\"group\":\"g\",\"attempt\":2,\"due_at\":\"2030-01-31T08:00:30.000Z\",\"error\":\"no\\nway\","
            "\"cursor\":\"c.1\"}");
  Text many;
  many.map(4).field("news", "cancelled").field("at_ms", kNowMs).field("topic", "t").field("jobs", 1'200);
  EXPECT_THAT(event_line(session(), many.value()), EndsWith("cancelled    t             1,200 jobs"));
  EXPECT_THAT(event_as_json(many.value(), "c"), HasSubstr("\"jobs\":1200"));
}

// ---- doctor

const Finding& finding_about(const Findings& findings, std::string_view about) {
  const auto found = std::find_if(findings.begin(), findings.end(),
                                  [&](const Finding& each) { return each.about == about; });
  static const Finding kNone{"none", Finding::Result::kSkipped, "there is no such finding"};
  return found == findings.end() ? kNone : *found;
}

/// A server that is well.
Examined well() {
  Text server;
  server.map(6).field("engine", "journal").field("durability", "commit").field("now_ms", kNowMs);
  server.field("resp", "127.0.0.1:9278").field("tokens", 0);
  server.bulk("limits")
      .map(3)
      .field("connections", 100)
      .field("memory_bytes", 1'000)
      .field("disk_reserve_bytes", 1'000);
  Text totals;
  totals.map(3).field("disk_free", 9'000).field("disk_bytes", 1).field("memory_bytes", 10);
  Examined examined;
  examined.server = server.value();
  examined.asked = from_unix_ms(kNowMs - 5);
  examined.answered = from_unix_ms(kNowMs + 5);
  examined.totals = totals.value();
  examined.consumers = Text().map(1).field("connections", 3).value();
  return examined;
}

TEST_F(LookingVerbsTest, doctor_finds_nothing_where_nothing_is) {
  const Findings findings = judge(well(), false, true);
  for (const Finding& finding : findings) EXPECT_EQ(finding.result, Finding::Result::kOk) << finding.about;
  EXPECT_THAT(render_findings(findings, 80), EndsWith("\nall is well\n"));
  EXPECT_THAT(findings_as_json("a:1", findings),
              StartsWith("{\"server\":\"a:1\",\"ok\":true,\"checks\":[{\"check\":"));
}

TEST_F(LookingVerbsTest, doctor_finds_what_is_wrong) {
  Examined examined = well();
  Text server;
  server.map(7).field("engine", "journal").field("durability", "interval").field("sync_interval_ms", 50);
  server.field("now_ms", kNowMs + 90'000).field("resp", "0.0.0.0:9278").field("tokens", 0);
  server.bulk("limits")
      .map(4)
      .field("connections", 3)
      .field("memory_bytes", 100)
      .field("disk_reserve_bytes", 1'000);
  server.field("jobs", 10);
  examined.server = server.value();
  examined.totals = Text()
                        .map(5)
                        .field("disk_free", 1'500)
                        .field("disk_bytes", 1)
                        .field("memory_bytes", 85)
                        .field("jobs", 10)
                        .field("died", 7)
                        .value();
  examined.later = Text().map(1).field("died", 9).value();
  examined.ready = Error{ErrorCode::kDiskFull, {}, "the disk is full"};
  Examined::Topic stuck{.name = "stuck", .ready = 3, .dead = 4};
  stuck.stats = Text().map(1).field("oldest_ready_ms", kNowMs - 3'600'000).value();
  Examined::Topic broken{.name = "broken", .ready = 1};
  broken.stats = Text().map(1).field("delivery_problem", kHostile).value();
  examined.topics = {stuck, broken, {.name = "held", .ready = 1, .is_paused = true}};
  const Findings findings = judge(examined, false, false);
  const auto is = [&](std::string_view about, Finding::Result result, std::string_view text) {
    const Finding& finding = finding_about(findings, about);
    EXPECT_EQ(finding.result, result) << about << ": " << finding.text;
    EXPECT_THAT(finding.text, HasSubstr(std::string(text)));
    EXPECT_FALSE(finding.advice.empty()) << about;
  };
  using enum Finding::Result;
  is("token", kWarning, "everybody who reaches 0.0.0.0:9278");
  is("TLS", kWarning, "not encrypted");
  is("engine", kWarning, "the last 50ms");
  is("clock", kProblem, "1m30s ahead of ours");
  is("pushes", kProblem, "the disk is full");
  is("disk", kWarning, "1.5 KiB free");
  is("memory", kWarning, "85 B of 100 B");
  is("jobs", kProblem, "10 of 10");
  is("clients", kProblem, "3 connections of 3");
  is("dead jobs", kWarning, "4 in stuck; growing: 2 died just now");
  is("consumers", kWarning, "stuck; the oldest waits since 1h1m30s");
  is("delivery", kProblem, "topic broken: \\x1b");
  is("paused", kWarning, "held");
  const std::string page = render_findings(findings, 80);
  EXPECT_THAT(page, AllOf(HasSubstr("problem  pushes"), HasSubstr("-> free room"), Not(HasSubstr("\x1b")),
                          EndsWith("\n5 problems, 8 warnings\n")));
  for (const size_t width : {1U, 20U, 50U, 200U}) EXPECT_FALSE(render_findings(findings, width).empty());

  examined.topics = {{.name = "odd", .dead = -5}};
  EXPECT_EQ(finding_about(judge(examined, false, false), "dead jobs").result, kOk)
      << "nonsense is no reason to crash";
}

TEST_F(LookingVerbsTest, doctor_skips_what_a_token_may_not_see) {
  Examined examined = well();
  examined.totals.reset();
  examined.consumers.reset();
  const Findings findings = judge(examined, true, false);
  EXPECT_EQ(finding_about(findings, "room").result, Finding::Result::kSkipped);
  EXPECT_EQ(finding_about(findings, "clients").about, "none");
}

TEST_F(LookingVerbsTest, doctor_says_what_answers_instead) {
  const Server plain{.address = {"h", 9}, .token = {}, .tls = {}};
  Server encrypted = plain;
  encrypted.tls = Server::Tls{{}, {}, {}, true};
  const Error error{
      ErrorCode::kUnavailable, {}, "could not connect to h:9: connection refused. Is the server running?"};
  const auto advice = [&](const Server& server, const Probe& probe) {
    const Finding finding = explain_unreachable(server, error, probe);
    EXPECT_EQ(finding.result, Finding::Result::kProblem);
    return finding.text + " -> " + finding.advice;
  };
  EXPECT_THAT(advice(plain, {}), HasSubstr("connection refused -> start a server: delayq serve"));
  EXPECT_THAT(advice(plain, {.http_at = "h:8", .resp_at = "h:7"}), HasSubstr("--server h:7"));
  EXPECT_THAT(
      advice(plain, {.connects = true, .plain = "HTTP/1.1 400", .http_at = "h:9", .resp_at = "h:7"}),
      HasSubstr(
          "h:9 speaks HTTP, not RESP -> it is delayq's HTTP port; name the one for RESP: --server h:7"));
  EXPECT_THAT(advice(encrypted, {.connects = true, .plain = "+PONG\r\n"}),
              HasSubstr("without TLS -> leave --tls"));
  EXPECT_THAT(advice(plain, {.connects = true, .speaks_tls = true}),
              HasSubstr("h:9 speaks TLS -> use --tls"));
  EXPECT_THAT(advice(plain, {.connects = true, .plain = "SSH-2.0\x1b\r\n"}),
              HasSubstr("it says \"SSH-2.0\\x1b\""));
  EXPECT_THAT(advice(plain, {.connects = true}), HasSubstr("does not answer"));
}

}  // namespace
}  // namespace delayq::cli
