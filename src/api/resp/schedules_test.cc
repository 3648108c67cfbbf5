// SCHEDULE: recurring jobs over RESP.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "resp/value.h"
#include "tests/support/resp_client.h"
#include "tests/support/tokens.h"

namespace delayq::resp {
namespace {

using support::kOtherHash;
using support::kSecretHash;
using support::token;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

using Client = support::RespClient;
using Words = std::initializer_list<std::string_view>;

/// The clock starts at 2023-11-14T22:13:20Z.
class RespSchedules : public support::RespTest {
 protected:
  /// The reply, read.
  Value ask(Words words) {
    std::string_view bytes = replies_.emplace_back(client.say(words));
    auto value = take_reply(bytes);
    return value && *value ? std::move(**value) : Value{};
  }
  static std::string text(const Value& map, std::string_view name) {
    const Value* const found = map.find(name);
    if (found == nullptr) return "(none)";
    return found->type == Value::Type::kInteger ? std::to_string(found->integer) : found->text;
  }
  void set_hourly(std::string_view name, std::string_view topic = "t") {
    EXPECT_EQ(
        text(ask({"SCHEDULE", "SET", name, "CRON", "0 * * * *", "TOPIC", topic, "BODY", "b"}), "result"),
        "created");
  }
  static std::string pipeline(std::initializer_list<Words> commands) {
    std::string bytes;
    for (const auto& words : commands) append_command(bytes, words);
    return bytes;
  }

  std::vector<std::string> replies_;
};

TEST_F(RespSchedules, its_jobs_have_its_headers) {
  const Value set = ask({"SCHEDULE", "SET", "s", "EVERY", "1h", "HEADER", "tenant", "acme", "TOPIC", "t",
                         "BODY", "b", "HEADER", "note", "x"});
  EXPECT_EQ(text(set, "result"), "created");
  const Value shown = ask({"SCHEDULE", "GET", "s"});
  const Value* const headers = shown.find("headers");
  ASSERT_NE(headers, nullptr);
  EXPECT_EQ(text(*headers, "tenant"), "acme");
  EXPECT_EQ(text(*headers, "note"), "x");
  const std::string id = text(ask({"SCHEDULE", "RUN", "s"}), "id");
  EXPECT_EQ(text(*ask({"GET", "t", id}).find("headers"), "tenant"), "acme");
  EXPECT_EQ(text(ask({"SCHEDULE", "SET", "s", "EVERY", "1h", "TOPIC", "t", "BODY", "b"}), "result"),
            "updated");
  EXPECT_EQ(ask({"SCHEDULE", "GET", "s"}).find("headers"), nullptr);
  EXPECT_THAT(
      client.say({"SCHEDULE", "SET", "s", "EVERY", "1h", "TOPIC", "t", "BODY", "b", "HEADER", "cookie", "x"}),
      StartsWith("-INVALID headers.cookie: "));
}

TEST_F(RespSchedules, makes_a_job_at_each_occurrence) {
  const Value set = ask({"schedule", "set", "hourly", "cron", "0 * * * *", "topic", "t", "body", "b"});
  EXPECT_EQ(text(set, "result"), "created");
  EXPECT_EQ(text(set, "name"), "hourly");
  EXPECT_EQ(text(set, "state"), "active");
  EXPECT_EQ(text(set, "zone"), "UTC");
  EXPECT_EQ(text(set, "next_ms"), "1700002800000");
  EXPECT_EQ(text(set, "next_local"), "2023-11-14T23:00:00+00:00");
  EXPECT_EQ(text(set, "body"), "(none)") << "the caller has it";
  backend.pass(std::chrono::hours{1});
  EXPECT_THAT(client.say({"POP", "t"}), HasSubstr("hourly@2023-11-14T23:00:00Z\r\n$1\r\nb\r\n"));
  const Value got = ask({"SCHEDULE", "GET", "hourly"});
  EXPECT_EQ(text(got, "body"), "b");
  EXPECT_EQ(text(got, "previous_ms"), "1700002800000");
  EXPECT_EQ(text(got, "occurrences_made"), "1");
  EXPECT_EQ(text(got, "next_local"), "2023-11-15T00:00:00+00:00");
}

TEST_F(RespSchedules, every_option_reaches_the_schedule) {
  const Value set = ask({"SCHEDULE",
                         "SET",
                         "s",
                         "CRON",
                         "30 9 * * MON-FRI",
                         "ZONE",
                         "Asia/Shanghai",
                         "TOPIC",
                         "t",
                         "BODY",
                         "b",
                         "START",
                         "1700000000",
                         "END",
                         "1800000000",
                         "RUNS",
                         "9",
                         "JITTER",
                         "90s",
                         "OVERLAP",
                         "SKIP",
                         "MISSED",
                         "all",
                         "PRI",
                         "7",
                         "ATTEMPTS",
                         "2",
                         "BACKOFF",
                         "1s,2s",
                         "LEASE",
                         "5s",
                         "GROUP",
                         "g",
                         "CALLBACK",
                         "http://x.example/",
                         "METHOD",
                         "PUT",
                         "FORMAT",
                         "cloudevents"});
  ASSERT_EQ(text(set, "result"), "created") << replies_.back();
  const Value got = ask({"SCHEDULE", "GET", "s"});
  for (const auto& [name, value] : std::initializer_list<std::pair<std::string_view, std::string_view>>{
           {"cron", "30 9 * * MON-FRI"},
           {"zone", "Asia/Shanghai"},
           {"start_ms", "1700000000000"},
           {"end_ms", "1800000000000"},
           {"runs", "9"},
           {"jitter", "1m30s"},
           {"overlap", "skip"},
           {"missed", "all"},
           {"priority", "7"},
           {"group", "g"},
           {"attempts", "2"},
           {"backoff", "1s,2s"},
           {"lease", "5s"},
           {"callback", "http://x.example/"},
           {"method", "PUT"},
           {"format", "cloudevents"},
           {"next_local", "2023-11-15T09:30:00+08:00"},
           {"every", "(none)"}}) {
    EXPECT_EQ(text(got, name), value) << name;
  }
}

TEST_F(RespSchedules, is_updated_or_left_as_it_is) {
  set_hourly("s");
  EXPECT_EQ(text(ask({"SCHEDULE", "SET", "s", "CRON", "0 * * * *", "TOPIC", "t", "BODY", "b"}), "result"),
            "unchanged");
  const Value updated = ask({"SCHEDULE", "SET", "s", "EVERY", "10s", "TOPIC", "t", "BODY", "b"});
  EXPECT_EQ(text(updated, "result"), "updated");
  EXPECT_EQ(text(updated, "every"), "10s");
  EXPECT_EQ(text(updated, "cron"), "(none)");
}

TEST_F(RespSchedules, is_paused_resumed_run_and_removed) {
  set_hourly("s");
  const Value paused = ask({"SCHEDULE", "PAUSE", "s"});
  EXPECT_EQ(text(paused, "state"), "paused");
  EXPECT_EQ(text(paused, "next_ms"), "(none)");
  EXPECT_EQ(client.say({"SCHEDULE", "NEXT", "s"}), "*0\r\n");
  EXPECT_EQ(text(ask({"SCHEDULE", "RESUME", "s"}), "state"), "active");
  const Value run = ask({"SCHEDULE", "RUN", "s"});
  EXPECT_EQ(text(run, "topic"), "t");
  EXPECT_EQ(text(run, "id").substr(0, 2), "s#");
  EXPECT_EQ(text(run, "state"), "ready");
  EXPECT_EQ(text(run, "due_ms"), "1700000000000");
  EXPECT_EQ(client.say({"SCHEDULE", "DEL", "s"}), "+OK\r\n");
  EXPECT_EQ(client.say({"SCHEDULE", "GET", "s"}), "$-1\r\n");
  for (const std::string_view verb : {"DEL", "PAUSE", "RESUME", "RUN", "NEXT"}) {
    EXPECT_EQ(client.say({"SCHEDULE", verb, "s"}), "-NOTFOUND there is no schedule \"s\"\r\n") << verb;
  }
}

TEST_F(RespSchedules, is_a_map_for_clients_of_resp3) {
  client.say({"HELLO", "3"});
  EXPECT_THAT(client.say({"SCHEDULE", "SET", "s", "EVERY", "1h", "TOPIC", "t", "BODY", "b"}),
              StartsWith("%13\r\n$6\r\nresult\r\n$7\r\ncreated\r\n$4\r\nname\r\n$1\r\ns\r\n"));
  EXPECT_EQ(client.say({"SCHEDULE", "GET", "x"}), "_\r\n");
}

TEST_F(RespSchedules, lists_page_by_page) {
  for (const std::string_view name : {"c", "a", "b"}) set_hourly(name);
  const auto names = [](const Value& page) {
    std::vector<std::string> all{page.items.at(0).text};
    for (const Value& row : page.items.at(1).items) all.push_back(text(row, "name"));
    return all;
  };
  EXPECT_THAT(names(ask({"SCHEDULE", "LIST"})), ElementsAre("", "a", "b", "c"));
  EXPECT_THAT(names(ask({"SCHEDULE", "LIST", "COUNT", "2"})), ElementsAre("b", "a", "b"));
  EXPECT_THAT(names(ask({"SCHEDULE", "LIST", "COUNT", "2", "AFTER", "b"})), ElementsAre("", "c"));
  EXPECT_THAT(names(ask({"SCHEDULE", "LIST", "AFTER", "c"})), ElementsAre(""));
  EXPECT_THAT(client.say({"SCHEDULE", "LIST"}), Not(HasSubstr("body")));
}

TEST_F(RespSchedules, tells_the_next_occurrences) {
  client.say({"SCHEDULE", "SET", "s", "CRON", "0 2 * * *", "ZONE", "Asia/Shanghai", "TOPIC", "t", "BODY", "b",
              "RUNS", "2"});
  EXPECT_EQ(client.say({"SCHEDULE", "NEXT", "s"}),
            "*2\r\n*2\r\n:1700071200000\r\n$25\r\n2023-11-16T02:00:00+08:00\r\n"
            "*2\r\n:1700157600000\r\n$25\r\n2023-11-17T02:00:00+08:00\r\n");
  EXPECT_THAT(client.say({"SCHEDULE", "NEXT", "name", "s", "COUNT", "1"}), StartsWith("*1\r\n"));
}

TEST_F(RespSchedules, tells_the_next_occurrences_of_a_rule_that_is_not_stored) {
  EXPECT_THAT(client.say({"SCHEDULE", "NEXT", "CRON", "30 2 * * *", "ZONE", "Europe/Berlin", "FROM",
                          "2026-03-28T00:00:00Z", "COUNT", "3"}),
              AllOf(HasSubstr("2026-03-28T02:30:00+01:00"), HasSubstr("2026-03-29T03:00:00+02:00"),
                    HasSubstr("2026-03-30T02:30:00+02:00")));
  EXPECT_EQ(client.say({"SCHEDULE", "NEXT", "EVERY", "10s", "COUNT", "1"}),
            "*1\r\n*2\r\n:1700000010000\r\n$25\r\n2023-11-14T22:13:30+00:00\r\n");
  EXPECT_EQ(client.say({"SCHEDULE", "NEXT", "EVERY", "1d", "START", "2030-01-01T00:00:00Z", "END",
                        "2030-01-01T12:00:00Z"}),
            "*1\r\n*2\r\n:1893456000000\r\n$25\r\n2030-01-01T00:00:00+00:00\r\n");
  EXPECT_EQ(client.say({"SCHEDULE", "LIST"}), "*2\r\n$0\r\n\r\n*0\r\n");
}

TEST_F(RespSchedules, a_name_may_be_a_keyword) {
  set_hourly("CRON");
  set_hourly("COUNT");
  EXPECT_THAT(client.say({"SCHEDULE", "NEXT", "CRON"}), StartsWith("*5\r\n"));
  EXPECT_THAT(client.say({"SCHEDULE", "NEXT", "NAME", "CRON", "COUNT", "2"}), StartsWith("*2\r\n"));
  EXPECT_THAT(client.say({"SCHEDULE", "NEXT", "COUNT", "COUNT", "2"}), StartsWith("*2\r\n"));
  EXPECT_THAT(client.say({"SCHEDULE", "NEXT", "NAME"}),
              StartsWith("-NOTFOUND there is no schedule \"NAME\""));
}

TEST_F(RespSchedules, what_is_wrong_is_named_and_nothing_is_stored) {
  const auto refused = [&](Words options) {
    std::vector<std::string_view> words{"SCHEDULE", "SET", "s"};
    words.insert(words.end(), options.begin(), options.end());
    std::string bytes;
    append_command(bytes, words);
    return client.say(bytes);
  };
  EXPECT_EQ(refused({}), "-INVALID TOPIC: is missing: the jobs need one\r\n");
  EXPECT_EQ(refused({"TOPIC", "t"}), "-INVALID BODY: is missing: the jobs need one, which may be empty\r\n");
  EXPECT_EQ(refused({"TOPIC"}), "-INVALID TOPIC: a value is missing behind it\r\n");
  EXPECT_EQ(refused({"TOPIC", "t", "BODY", "b"}), "-INVALID every and cron: give exactly one of them\r\n");
  EXPECT_EQ(refused({"TOPIC", "t", "BODY", "b", "EVERY", "1h", "CRON", "0 * * * *"}),
            "-INVALID every and cron: give exactly one of them\r\n");
  EXPECT_EQ(refused({"EVERY", "1h", "every", "2h", "TOPIC", "t", "BODY", "b"}),
            "-INVALID every: is given twice\r\n");
  EXPECT_EQ(refused({"EVERY", "1h", "TOPIC", "t", "TOPIC", "u", "BODY", "b"}),
            "-INVALID TOPIC: is given twice\r\n");
  EXPECT_EQ(refused({"PRI", "1", "PRI", "2"}), "-INVALID PRI: is given twice\r\n");
  EXPECT_THAT(refused({"CRON", "0 0 30 2 *", "TOPIC", "t", "BODY", "b"}), HasSubstr("is not a cron rule"));
  EXPECT_EQ(refused({"CRON", "", "EVERY", "1h", "TOPIC", "t", "BODY", "b"}),
            "-INVALID CRON: must not be empty\r\n");
  EXPECT_THAT(refused({"CRON", "0 * * * *", "ZONE", "Mars/Base", "TOPIC", "t", "BODY", "b"}),
              AllOf(StartsWith("-INVALID "), HasSubstr("Mars/Base")));
  EXPECT_THAT(refused({"EVERY", "1s", "TOPIC", "t", "BODY", "b"}), StartsWith("-INVALID every"));
  EXPECT_THAT(refused({"EVERY", "soon"}), StartsWith("-INVALID EVERY: "));
  EXPECT_THAT(refused({"RUNS", "-1"}), StartsWith("-INVALID RUNS: \"-1\" is not a whole number"));
  EXPECT_THAT(refused({"OVERLAP", "never"}), StartsWith("-INVALID overlap \"never\" is not known"));
  EXPECT_THAT(refused({"MISSED", "\r\n+OK"}), AllOf(StartsWith("-INVALID missed"), Not(HasSubstr("\n+OK"))));
  EXPECT_THAT(refused({"EVERY", "1h", "TOPIC", "t", "BODY", "b", "GROUP", ""}), StartsWith("-INVALID group"));
  EXPECT_THAT(refused({"EVERY", "1h", "TOPIC", "t t", "BODY", "b"}), StartsWith("-INVALID topic"));
  for (const std::string_view option : {"ID", "AT", "REPLACE", "UNIQUE", "nonsense"}) {
    EXPECT_THAT(
        refused({"EVERY", "1h", option, "x"}),
        StartsWith(fmt::format("-INVALID \"{}\" is not understood here; usage: SCHEDULE SET ", option)));
  }
  EXPECT_EQ(client.say({"SCHEDULE", "LIST"}), "*2\r\n$0\r\n\r\n*0\r\n");
}

TEST_F(RespSchedules, other_words_are_refused_with_the_usage) {
  EXPECT_EQ(client.say({"SCHEDULE"}),
            "-INVALID wrong number of arguments for SCHEDULE; usage: SCHEDULE "
            "SET|GET|LIST|DEL|PAUSE|RESUME|RUN|NEXT ...\r\n");
  EXPECT_THAT(client.say({"SCHEDULE", "SETT", "x"}),
              StartsWith("-INVALID \"SETT\" is not understood here; usage: SCHEDULE SET|GET"));
  EXPECT_EQ(client.say({"SCHEDULE", "GET"}),
            "-INVALID wrong number of arguments for SCHEDULE GET; usage: SCHEDULE GET name\r\n");
  EXPECT_THAT(client.say({"SCHEDULE", "DEL", "a", "b"}), StartsWith("-INVALID wrong number of arguments"));
  EXPECT_THAT(client.say({"SCHEDULE", "LIST", "COUNT"}), StartsWith("-INVALID COUNT: a value is missing"));
  EXPECT_THAT(client.say({"SCHEDULE", "LIST", "COUNT", "0"}), StartsWith("-INVALID COUNT"));
  EXPECT_THAT(client.say({"SCHEDULE", "LIST", "COUNT", "1001"}), StartsWith("-INVALID COUNT"));
  EXPECT_THAT(client.say({"SCHEDULE", "LIST", "CURSOR", "x"}), StartsWith("-INVALID \"CURSOR\" is not"));
  EXPECT_THAT(client.say({"SCHEDULE", "NEXT", "x", "COUNT", "18446744073709551616"}),
              StartsWith("-INVALID COUNT"));
  EXPECT_THAT(client.say({"SCHEDULE", "NEXT", "x", "COUNT", "4294967295"}), StartsWith("-INVALID COUNT"));
  EXPECT_THAT(client.say({"SCHEDULE", "NEXT", "x", "y"}), StartsWith("-INVALID \"y\" is not understood"));
  EXPECT_THAT(client.say({"SCHEDULE", "NEXT", "EVERY", "1h", "TOPIC", "t"}),
              StartsWith("-INVALID \"TOPIC\" is not understood"));
  EXPECT_THAT(client.say({"SCHEDULE", "NEXT", "EVERY", "1h", "ZONE", "Europe/Berlin"}),
              StartsWith("-INVALID zone"));
}

TEST_F(RespSchedules, commands_see_what_those_before_them_did) {
  const std::string replies =
      client.say(pipeline({{"SCHEDULE", "SET", "s", "EVERY", "1h", "TOPIC", "t", "BODY", "b"},
                           {"SCHEDULE", "PAUSE", "s"},
                           {"SCHEDULE", "SET", "s", "EVERY", "2h", "TOPIC", "t", "BODY", "b"},
                           {"SCHEDULE", "GET", "s"},
                           {"SCHEDULE", "RUN", "s"},
                           {"POP", "t"},
                           {"SCHEDULE", "DEL", "s"},
                           {"SCHEDULE", "GET", "s"}}));
  EXPECT_THAT(replies, AllOf(HasSubstr("$7\r\ncreated\r\n"), HasSubstr("$7\r\nupdated\r\n"),
                             HasSubstr("$6\r\npaused\r\n"), HasSubstr("*1\r\n*6\r\n"),
                             testing::EndsWith("+OK\r\n$-1\r\n")))
      << replies;
  EXPECT_GT(client.resumed(), 0);
}

TEST_F(RespSchedules, commands_of_a_transaction_take_effect_in_their_order) {
  std::string replies =
      client.say(pipeline({{"MULTI"},
                           {"SCHEDULE", "SET", "s", "EVERY", "1h", "TOPIC", "t", "BODY", "b"},
                           {"SCHEDULE", "GET", "s"},
                           {"SCHEDULE", "DEL", "s"},
                           {"SCHEDULE", "GET", "s"},
                           {"EXEC"}}));
  for (int turns = 0; turns < 9; ++turns) replies += client.say(std::string_view());
  EXPECT_THAT(replies, AllOf(HasSubstr("+QUEUED\r\n*4\r\n"), HasSubstr("$7\r\ncreated\r\n"),
                             HasSubstr("$4\r\nbody\r\n$1\r\nb\r\n"), testing::EndsWith("+OK\r\n$-1\r\n")));
  EXPECT_EQ(client.say(pipeline({{"MULTI"}, {"SCHEDULE", "SETT"}, {"EXEC"}})),
            "+OK\r\n+QUEUED\r\n*1\r\n-INVALID \"SETT\" is not understood here; usage: SCHEDULE "
            "SET|GET|LIST|DEL|PAUSE|RESUME|RUN|NEXT ...\r\n");
}

TEST_F(RespSchedules, command_tells_of_it_once) {
  EXPECT_THAT(client.say({"COMMAND", "LIST"}), HasSubstr("$8\r\nschedule\r\n"));
  EXPECT_THAT(client.say({"COMMAND", "LIST"}), Not(HasSubstr("schedule ")));
}

// ---- tokens

/// The words of a SET, as one command.
std::string set_of(std::string_view name, std::string_view body) {
  std::string bytes;
  append_command(bytes, {"SCHEDULE", "SET", name, "CRON", "0 * * * *", "TOPIC", "t", "BODY", body});
  return bytes;
}

TEST_F(RespSchedules, sets_of_one_pipeline_go_together) {
  const std::string sets = set_of("a", "1") + set_of("b", "1") + set_of("c", "1");
  const std::string bytes = sets + pipeline({{"SCHEDULE", "DEL", "b"}, {"PING"}});
  EXPECT_EQ(client.conversation().read(bytes), sets.size()) << "without an answer in between";
  EXPECT_FALSE(client.conversation().wants_input()) << "what comes behind them waits for all of them";
  std::string replies = client.hear();
  replies += client.say(bytes.substr(sets.size()));
  EXPECT_THAT(replies, HasSubstr("name\r\n$1\r\na\r\n"));
  EXPECT_LT(replies.find("\r\na\r\n"), replies.find("\r\nb\r\n"));
  EXPECT_LT(replies.find("\r\nb\r\n"), replies.find("\r\nc\r\n"));
  EXPECT_TRUE(replies.ends_with("+OK\r\n+PONG\r\n")) << replies;
  EXPECT_EQ(text(ask({"SCHEDULE", "GET", "b"}), "name"), "(none)");
  EXPECT_EQ(text(ask({"SCHEDULE", "GET", "c"}), "state"), "active");
}

TEST_F(RespSchedules, sets_of_one_name_take_effect_in_their_order) {
  const std::string first = set_of("a", "1") + set_of("b", "1");
  const std::string bytes = first + set_of("a", "2") + set_of("a", "3");
  EXPECT_EQ(client.conversation().read(bytes), first.size());
  client.hear();
  client.say(bytes.substr(first.size()));
  EXPECT_EQ(text(ask({"SCHEDULE", "GET", "a"}), "body"), "3");
}

TEST_F(RespSchedules, a_wrong_set_amid_others_is_answered_in_its_place) {
  const std::string replies =
      client.say(set_of("a", "1") +
                 pipeline({{"SCHEDULE", "SET", "x", "CRON", "0 * * * *", "TOPIC", "t"},
                           {"SCHEDULE", "SET", "y", "CRON", "nonsense", "TOPIC", "t", "BODY", "b"},
                           {"SCHEDULE", "SET", "z"}}) +
                 set_of("b", "1"));
  const size_t a = replies.find("\r\na\r\n");
  const size_t missing = replies.find("-INVALID BODY: is missing");
  const size_t nonsense = replies.find("nonsense");
  const size_t b = replies.find("\r\nb\r\n");
  ASSERT_NE(a, std::string::npos) << replies;
  ASSERT_NE(b, std::string::npos) << replies;
  EXPECT_LT(a, missing);
  EXPECT_LT(missing, nonsense);
  EXPECT_LT(nonsense, b);
}

TEST_F(RespSchedules, many_sets_go_in_batches_that_are_bounded) {
  std::string bytes;
  for (int i = 0; i < 500; ++i) bytes += set_of(fmt::format("s{}", i), "b");
  const size_t taken = client.conversation().read(bytes);
  EXPECT_GT(taken, bytes.size() / 10);
  EXPECT_LT(taken, bytes.size() / 2);
  client.hear();
  client.say(bytes.substr(taken));
  EXPECT_EQ(text(ask({"SCHEDULE", "GET", "s499"}), "state"), "active");
}

TEST_F(RespSchedules, sets_of_a_transaction_take_effect_in_their_order) {
  std::string bytes = pipeline({{"MULTI"}}) + set_of("a", "1") + set_of("b", "1") + set_of("a", "2") +
                      pipeline({{"SCHEDULE", "GET", "a"}, {"EXEC"}});
  std::string replies = client.say(bytes);
  for (int turns = 0; turns < 9; ++turns) replies += client.say(std::string_view());
  EXPECT_THAT(replies, HasSubstr("body\r\n$1\r\n2\r\n"));
}

class RespScheduleTokens : public RespSchedules {
 protected:
  RespScheduleTokens() {
    set_hourly("bills", "bill");
    set_hourly("orders", "order.eu");
    set_hourly("zebras", "zebra");
    backend.host.front->access.replace({token("shop", kSecretHash, scopes_, {"order.*"}),
                                        token("boss", kOtherHash, only(Scope::kAdmin), {"*"})});
    client.say({"AUTH", "secret"});
  }
  void allow(Scopes scopes) {
    backend.host.front->access.replace({token("shop", kSecretHash, scopes, {"order.*"}),
                                        token("boss", kOtherHash, only(Scope::kAdmin), {"*"})});
  }

  Scopes scopes_ = only(Scope::kSchedule);
};

TEST_F(RespScheduleTokens, one_of_another_topic_is_as_if_it_were_not_there) {
  EXPECT_EQ(client.say({"SCHEDULE", "GET", "bills"}), "$-1\r\n");
  for (const std::string_view verb : {"DEL", "PAUSE", "RESUME", "RUN", "NEXT"}) {
    EXPECT_EQ(client.say({"SCHEDULE", verb, "bills"}), "-NOTFOUND there is no schedule \"bills\"\r\n")
        << verb;
  }
  const std::string page = client.say({"SCHEDULE", "LIST", "COUNT", "1"});
  EXPECT_THAT(page, AllOf(HasSubstr("orders"), Not(HasSubstr("bills")), Not(HasSubstr("zebras"))));
  EXPECT_THAT(client.say({"SCHEDULE", "LIST", "AFTER", "orders"}), "*2\r\n$0\r\n\r\n*0\r\n");
  EXPECT_EQ(client.say({"SCHEDULE", "SET", "bills", "EVERY", "1h", "TOPIC", "order.x", "BODY", "b"}),
            "-CONFLICT the name \"bills\" is taken by a schedule of another topic\r\n");
  client.say({"AUTH", "other"});
  EXPECT_THAT(client.say({"SCHEDULE", "GET", "bills"}), HasSubstr("active"));
}

TEST_F(RespScheduleTokens, the_topic_must_be_the_tokens) {
  EXPECT_THAT(client.say({"SCHEDULE", "SET", "s", "EVERY", "1h", "TOPIC", "bill", "BODY", "b"}),
              StartsWith("-NOPERM the token \"shop\" is not for this topic"));
  EXPECT_THAT(client.say({"SCHEDULE", "SET", "s", "EVERY", "1h", "topic", "order.x", "TOPIC", "bill"}),
              StartsWith("-NOPERM "));
  EXPECT_THAT(client.say({"SCHEDULE", "SET", "orders", "EVERY", "1h", "TOPIC", "bill", "BODY", "b"}),
              StartsWith("-NOPERM "));
  EXPECT_THAT(client.say({"SCHEDULE", "SET", "s", "EVERY", "1h", "TOPIC", "order.x", "BODY", "b"}),
              HasSubstr("created"));
  EXPECT_THAT(
      client.say(pipeline(
          {{"MULTI"}, {"SCHEDULE", "SET", "s", "EVERY", "1h", "TOPIC", "bill", "BODY", "b"}, {"EXEC"}})),
      HasSubstr("-EXECABORT"));
}

TEST_F(RespScheduleTokens, scopes_say_what_may_be_done) {
  const std::initializer_list<Words> looks{{"SCHEDULE", "GET", "orders"},
                                           {"SCHEDULE", "LIST"},
                                           {"SCHEDULE", "NEXT", "orders"},
                                           {"SCHEDULE", "NEXT", "EVERY", "1h"}};
  const std::initializer_list<Words> changes{
      {"SCHEDULE", "SET", "orders", "EVERY", "1h", "TOPIC", "order.eu", "BODY", "b"},
      {"SCHEDULE", "PAUSE", "orders"},
      {"SCHEDULE", "RESUME", "orders"},
      {"SCHEDULE", "RUN", "orders"},
      {"SCHEDULE", "DEL", "orders"}};
  allow(Scope::kPush | Scope::kConsume);
  for (const Words& words : looks)
    EXPECT_THAT(client.say(words), StartsWith("-NOPERM the token \"shop\" has no scope read or schedule"));
  for (const Words& words : changes)
    EXPECT_THAT(client.say(words), StartsWith("-NOPERM the token \"shop\" has no scope schedule"));
  allow(only(Scope::kRead));
  for (const Words& words : looks) EXPECT_THAT(client.say(words), Not(StartsWith("-")));
  for (const Words& words : changes) EXPECT_THAT(client.say(words), StartsWith("-NOPERM "));
  for (const Scope scope : {Scope::kSchedule, Scope::kAdmin}) {
    allow(only(scope));
    backend.pass(Millis{1});  // the id of a job that is made now has the time
    for (const Words& words : changes) EXPECT_THAT(client.say(words), Not(StartsWith("-")));
    EXPECT_THAT(client.say({"PING"}), "+PONG\r\n");
  }
}

}  // namespace
}  // namespace delayq::resp
