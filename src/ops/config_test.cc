#include "ops/config.h"

#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace delayq {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(Config, of_an_empty_file_is_the_default) {
  const ConfigOutcome outcome = parse_config("", "a.toml");
  EXPECT_THAT(outcome.errors, IsEmpty());
  EXPECT_EQ(outcome.config, Config{});
}

TEST(Config, reads_every_kind_of_value) {
  const ConfigOutcome outcome = parse_config(R"(
[server]
resp = "[::1]:0"
engine = "memory"
grace = 3
[journal]
durability = "interval"
segment = 2097152
[limits]
body = "64MiB"
jobs = 5
memory = "1GiB"
[log]
level = "debug"
file = "delayq.log"
)",
                                             "a.toml");
  ASSERT_THAT(outcome.errors, IsEmpty());
  const Config& config = outcome.config;
  EXPECT_EQ(config.server.addresses[ProtocolKind::kResp], (Address{"::1", 0}));
  EXPECT_EQ(config.server.engine, Config::Engine::kMemory);
  EXPECT_EQ(config.server.grace, seconds{3});
  EXPECT_EQ(config.journal.durability, Config::Durability::kInterval);
  EXPECT_EQ(config.journal.segment_bytes, 2u << 20);
  EXPECT_EQ(config.limits.jobs, 5u);
  EXPECT_EQ(config.limits.memory_bytes, 1u << 30);
  EXPECT_EQ(config.log.level, Config::LogLevel::kDebug);
  EXPECT_EQ(config.log.file, "delayq.log");
}

TEST(Config, reads_topics) {
  const ConfigOutcome outcome = parse_config(R"(
[topics."*"]
lease = "5m"
keep_done = {time = "2h", count = 7}
[topics.order]
attempts = 5
backoff = ["10s", "1m"]
rate = "100/1s"
concurrency = 8
priority = 1
paused = true
delivery = "webhook"
redis_key = "orders"
redis_content = "id"
redis_maxlen = 5000
callback = "https://shop.example/hook"
callback_timeout = "5s"
callback_format = "cloudevents"
callback_secrets = ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]
keep_dead.count = 3
[topics."order.paid"]
)",
                                             "a.toml");
  ASSERT_THAT(outcome.errors, IsEmpty());
  Settings defaults;
  defaults.lease = minutes{5};
  defaults.keep_done = Retention{hours{2}, 7};
  Settings order;
  order.attempts = 5;
  order.backoff = StepBackoff{{seconds{10}, minutes{1}}};
  order.rate = Rate{100, seconds{1}};
  order.concurrency = 8;
  order.priority = 1;
  order.paused = true;
  order.delivery = Delivery::kWebhook;
  order.callback = "https://shop.example/hook";
  order.callback_timeout = seconds{5};
  order.callback_format = CallbackFormat::kCloudEvents;
  order.callback_secrets = {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"};
  order.redis_key = "orders";
  order.redis_content = RedisContent::kId;
  order.redis_maxlen = 5'000;
  order.keep_dead.count = 3;
  EXPECT_EQ(outcome.config.topics,
            (std::map<std::string, Settings>{{"*", defaults}, {"order", order}, {"order.paid", {}}}));
  EXPECT_EQ(queue_config(outcome.config).defaults, defaults);
}

TEST(Config, a_key_of_too_many_parts_is_an_error) {
  const auto key_of = [](size_t parts) {
    std::string key = "a";
    for (size_t i = 1; i < parts; ++i) key += ".a";
    return key;
  };
  const std::string long_key = key_of(200'000);
  const std::vector<std::string> hostile{
      "\n" + long_key + " = 1\n",
      "\n[" + long_key + "]\n",
      "\n[[" + long_key + "]]\n",
      "\nx = {" + long_key + " = 1}\n",
      "\nx = [{y = 1, " + long_key + " = 1}]\n",
      "# it's \"\n" + long_key + " = 1",
      "x = [\n{y = \"\"\"a\"\"\"\"\", " + long_key + " = 1}]",
      "x = \"\\\"\" # '\n" + long_key + " = 1",
  };
  for (const std::string& text : hostile) {
    EXPECT_THAT(parse_config(text, "a.toml").errors,
                ElementsAre(HasSubstr("a.toml:2: this is not TOML: a key has more than 32 parts")));
  }
  const std::string dots(1'000, '.');
  const std::string harmless = "[topics.order]\ncallback = 'http://a/" + dots + "'\n# " + dots +
                               "\n[topics.\"" + dots.substr(0, 200) + "\"]\nattempts = 3\n";
  EXPECT_THAT(parse_config(harmless, "a.toml").errors, IsEmpty());
}

TEST(Config, stops_at_what_is_not_toml) {
  EXPECT_THAT(parse_config("[server]\nengin = 1\nlease = 1ms\n", "a.toml").errors,
              ElementsAre(HasSubstr("a.toml:3: this is not TOML: ")));
}

TEST(Config, takes_other_scripts_in_quotes_and_comments) {
  const ConfigOutcome outcome =
      parse_config("# \u00e9\n[topics.\"\u8ba2\u5355\"] # \u00e9\nattempts = 1\n[topics.'\u00e9']\n", "a");
  EXPECT_THAT(outcome.errors, IsEmpty());
  EXPECT_TRUE(outcome.config.topics.contains("\u8ba2\u5355"));
  for (const std::string text :
       {"level = \u00e9", "level = 1'\u00e9'", "\u00e9 = 1", "file = \"\"\"\\ \u00e9\"\"\""}) {
    EXPECT_THAT(parse_config("[log]\n" + text + "\n", "a").errors,
                ElementsAre(HasSubstr("a:2: this is not TOML: ")))
        << text;
  }
}

TEST(Config, tells_all_errors_and_what_would_be_right) {
  const ConfigOutcome outcome = parse_config(R"([server]
resp = "nowhere"
engin = "journal"
engine = "sqlite"
grace = "2h"
[limits]
body = "65MiB"
topics = -1
durability = "commit"
[jurnal]
interval = "1s"
[topics.order.paid]
attempts = 1
[topics."a b"]
lease = "1ms"
[topics.x]
backoff = [1.5]
paused = "maybe"
rate = "5/2d"
delivery = "pigeon"
callback = "shop.example"
callback_secrets = ["hunter2!"]
)",
                                             "a.toml");
  EXPECT_THAT(
      outcome.errors,
      ElementsAre(
          R"(a.toml:2: server.resp: "nowhere" is not an address: use "host:port", ":port" or "[::1]:port")",
          "a.toml:3: server.engin: unknown key: did you mean engine?",
          R"(a.toml:4: server.engine: "sqlite" is not known: use journal or memory or redis or kafka)",
          R"(a.toml:5: server.grace: "2h" is out of range: 0s to 1h is allowed)",
          R"(a.toml:7: limits.body: "65MiB" is out of range: 1B to 64MiB is allowed)",
          "a.toml:8: limits.topics: -1 is not allowed: use a whole number from 1 to 10000000",
          "a.toml:9: limits.durability: unknown key: durability belongs to [journal]",
          "a.toml:11: jurnal.interval: unknown section: did you mean journal?",
          HasSubstr("a.toml:13: topics.order.paid.attempts: unknown key: a topic's name with dots"),
          HasSubstr("a.toml:15: topics.a b.lease: topic"), HasSubstr("a.toml:17: topics.x.backoff: "),
          HasSubstr("a.toml:18: topics.x.paused: "), HasSubstr("a.toml:19: topics.x.rate: "),
          HasSubstr("a.toml:20: topics.x.delivery: \"pigeon\" is not known"),
          HasSubstr("a.toml:21: topics.x.callback: callback \"shop.example\" is not a URL"),
          AllOf(HasSubstr("a.toml:22: topics.x.callback_secrets: "), Not(HasSubstr("hunter2")))));
}

TEST(Config, passwords_are_in_no_message) {
  const ConfigOutcome outcome =
      parse_config("[redis]\npassword = \"hush\"\nurl = \"redis://u:hush@a\"\n", "a");
  EXPECT_THAT(outcome.errors, IsEmpty());
  EXPECT_EQ(outcome.config.redis.password, "hush");
  EXPECT_THAT(config_in_force(outcome.said),
              AllOf(HasSubstr("url = \"redis://u:***@a\"  # a:3\n"),
                    HasSubstr("password = \"(not shown)\"  # a:2\n"), Not(HasSubstr("hush"))));
  for (const std::string text : {"password = 4711", "url = 4711", "password = \"4711\\u0000\""}) {
    EXPECT_THAT(parse_config("[redis]\n" + text + "\n", "a").errors,
                ElementsAre(AllOf(HasSubstr("a:2: redis."), Not(HasSubstr("4711")))))
        << text;
  }
}

TEST(Config, knows_sections_from_keys) {
  const ConfigOutcome outcome = parse_config("server = 1\nfoo = 2\ntopics.a = 3\ntokens = 4\n", "a");
  EXPECT_THAT(outcome.errors,
              ElementsAre(HasSubstr("a:1: server: this is a section"), HasSubstr("a:2: foo: unknown"),
                          HasSubstr("a:3: topics.a: this is a section"),
                          HasSubstr("a:4: tokens: this is a section")));
}

TEST(Config, names_of_the_server) {
  const ConfigOutcome outcome = parse_config("[server]\nhosts = [\"delayq\", \"*.example.com\"]\n", "a.toml");
  EXPECT_THAT(outcome.errors, IsEmpty());
  EXPECT_THAT(outcome.config.server.hosts, ElementsAre("delayq", "*.example.com"));
  EXPECT_THAT(parse_config("[server]\nhosts = [\"delayq\", \"http://a:80\"]\n", "a.toml").errors,
              ElementsAre(AllOf(HasSubstr("a.toml:2"), HasSubstr("server.hosts"),
                                HasSubstr("\"http://a:80\""), HasSubstr("without scheme and port"))));
}

TEST(Config, tokens) {
  constexpr std::string_view kHash = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789ABCDEF";
  const ConfigOutcome outcome = parse_config(
      fmt::format("[[tokens]]\nname = \"shop\"\nsha256 = \"{0}\"\nscopes = [\"push\", \"consume\"]\n"
                  "topics = [\"order\", \"order.*\"]\nrequests_per_second = 10\n"
                  "[[tokens]]\nname = \"boss\"\nsha256 = \"{0}\"\nscopes = [\"admin\"]\n",
                  kHash),
      "a");
  ASSERT_THAT(outcome.errors, IsEmpty());
  ASSERT_EQ(outcome.config.tokens.size(), 2u);
  const Token& shop = outcome.config.tokens[0];
  EXPECT_EQ(shop.name, "shop");
  EXPECT_EQ(shop.sha256[1], 0x23);
  EXPECT_EQ(shop.scopes, Scope::kPush | Scope::kConsume);
  EXPECT_TRUE(shop.covers("order.paid"));
  EXPECT_FALSE(shop.covers("orders"));
  EXPECT_EQ(shop.requests_per_second, 10u);
  EXPECT_TRUE(outcome.config.tokens[1].covers_all());
}

TEST(Config, what_is_wrong_with_tokens) {
  const ConfigOutcome wrong = parse_config(
      "[[tokens]]\nname = \"\"\nsha256 = \"my secret\"\nscopes = [\"all\"]\ntopics = [\"a b\"]\nscope = 1\n",
      "a");
  EXPECT_THAT(
      wrong.errors,
      ElementsAre(HasSubstr("a:2: tokens.0.name: it is empty"),
                  AllOf(HasSubstr("a:3: tokens.0.sha256: expected the 64 hexadecimal digits"),
                        Not(HasSubstr("my secret"))),
                  HasSubstr("a:4: tokens.0.scopes: \"all\" is not a scope: use a list of push, consume, "),
                  HasSubstr("a:5: tokens.0.topics: topic"),
                  HasSubstr("a:6: tokens.0.scope: unknown key: did you mean scopes?")));
}

TEST(Config, of_a_file_that_is_not_there) {
  EXPECT_THAT(load_config("/no/such/delayq.toml").errors,
              ElementsAre(HasSubstr("/no/such/delayq.toml: cannot be opened: No such file")));
  EXPECT_THAT(load_config("/").errors, ElementsAre(HasSubstr("/: cannot be read: is it a file?")));
}

TEST(ConfigOption, goes_through_the_same_rows) {
  Config config;
  EXPECT_TRUE(set_option(config, "server.resp", "127.0.0.1:0"));
  EXPECT_TRUE(set_option(config, "limits.jobs", "7"));
  EXPECT_TRUE(set_option(config, "topics.a.b.attempts", "3"));
  EXPECT_TRUE(set_option(config, "topics.a.b.keep_done.count", "4"));
  EXPECT_TRUE(set_option(config, "topics.a.b.backoff", "1s,2s"));
  EXPECT_EQ(config.server.addresses[ProtocolKind::kResp].port, 0);
  EXPECT_EQ(config.limits.jobs, 7u);
  ASSERT_EQ(config.topics.size(), 1u);
  EXPECT_EQ(config.topics["a.b"].attempts, 3u);
  EXPECT_EQ(config.topics["a.b"].keep_done.count, 4u);
}

TEST(ConfigOption, leaves_the_configuration_when_it_is_wrong) {
  Config config;
  EXPECT_THAT(set_option(config, "server.resp", "x").error().detail,
              HasSubstr("server.resp: \"x\" is not an"));
  for (const std::string key :
       {"", "server", "server.rsp", "topics", "topics.a", "topics.a.attempt", "a.b.c"}) {
    EXPECT_FALSE(set_option(config, key, "1")) << key;
  }
  EXPECT_FALSE(set_option(config, "topics.a.lease", "1ms"));
  EXPECT_EQ(config, Config{});
}

TEST(ConfigEnvironment, goes_through_the_same_rows) {
  Config config;
  const auto variable = [](const char* name) -> const char* {
    if (std::string_view(name) == "DELAYQ_SERVER_MAX_CONNECTIONS") return "5";
    return std::string_view(name) == "DELAYQ_LOG_LEVEL" ? "loud" : nullptr;
  };
  EXPECT_THAT(
      apply_environment(config, variable),
      ElementsAre("DELAYQ_LOG_LEVEL in the environment: \"loud\" is not known: use debug or info or warn or "
                  "error or off"));
  EXPECT_EQ(config.server.max_connections, 5u);
}

}  // namespace
}  // namespace delayq
