#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/config.h"

namespace delayq {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> problems_of(std::string_view toml) {
  const ConfigOutcome outcome = parse_config(toml, "a");
  EXPECT_THAT(outcome.errors, IsEmpty()) << "each value by itself is right";
  return check_config(outcome.config);
}

TEST(ConfigCheck, finds_nothing_wrong_with_the_defaults) { EXPECT_THAT(check_config({}), IsEmpty()); }

TEST(ConfigCheck, tokens_need_what_makes_them) {
  EXPECT_THAT(problems_of("[[tokens]]\nname = \"x\"\n[[tokens]]\nname = \"x\"\nscopes = [\"read\"]\n"),
              ElementsAre("tokens.0: sha256 is missing", "tokens.0: scopes is missing",
                          "tokens.1: sha256 is missing", "tokens.1: another token has the name x"));
}

TEST(ConfigCheck, no_two_tokens_have_one_secret) {
  const std::string hash(64, 'a');
  const std::string tokens = fmt::format(
      "[[tokens]]\nname = \"x\"\nscopes = [\"read\"]\nsha256 = \"{0}\"\n"
      "[[tokens]]\nname = \"y\"\nscopes = [\"admin\"]\nsha256 = \"{0}\"\n",
      hash);
  EXPECT_THAT(problems_of(tokens), ElementsAre("tokens.1: x has the same sha256: which of them is meant?"));
}

TEST(ConfigCheck, tls_needs_both_files) {
  EXPECT_THAT(problems_of("[tls]\ncertificate = \"c.pem\"\n"),
              ElementsAre("tls: certificate and key are needed together"));
  EXPECT_THAT(problems_of("[tls]\nkey = \"k.pem\"\n"),
              ElementsAre("tls: certificate and key are needed together"));
  EXPECT_THAT(problems_of("[tls]\nclient_ca = \"c.pem\"\n"), ElementsAre(HasSubstr("tls.client_ca: needs")));
  EXPECT_THAT(problems_of("[tls]\ncertificate = \"c.pem\"\nkey = \"k.pem\"\n"), IsEmpty());
}

TEST(ConfigCheck, where_other_machines_come_somebody_must_be_asked) {
  EXPECT_THAT(problems_of("[server]\nhttp = \":1\"\nresp = \"10.0.0.1:2\"\n"),
              ElementsAre(HasSubstr("server.http: :1 can be reached"),
                          HasSubstr("server.resp: 10.0.0.1:2 can be reached")));
  EXPECT_THAT(problems_of("[server]\nhttp = \":1\"\nallow_anonymous = true\n"), IsEmpty());
}

TEST(ConfigCheck, each_protocol_needs_a_port_of_its_own) {
  EXPECT_THAT(problems_of("[server]\nhttp = \"127.0.0.1:1\"\nresp = \"127.0.0.1:1\"\n"),
              ElementsAre(HasSubstr("server.http: 127.0.0.1:1 is server.resp, too")));
  EXPECT_THAT(problems_of("[server]\nhttp = \"127.0.0.1:0\"\nresp = \"127.0.0.1:0\"\n"), IsEmpty());
}

TEST(ConfigCheck, each_partition_is_in_one_group) {
  Config config;
  config.kafka.partition_groups = {{0, 1}, {2, 3}};
  EXPECT_THAT(check_config(config), IsEmpty()) << "other engines have no groups";
  config.server.engine = Config::Engine::kKafka;
  EXPECT_THAT(
      check_config(config),
      ElementsAre("kafka.partition_groups: no group names partition 4, and kafka.partitions is 6: add it "
                  "to a group, or set kafka.partitions = 4"));
  config.kafka.partitions = 4;
  EXPECT_THAT(check_config(config), IsEmpty());
  config.kafka.partitions = 3;
  EXPECT_THAT(
      check_config(config),
      ElementsAre("kafka.partition_groups: a group names partition 3, and kafka.partitions is 3: remove "
                  "it from the group, or set kafka.partitions = 4"));
}

TEST(ConfigCheck, groups_of_partitions_are_read_as_lists_of_lists) {
  Config config;
  const auto set = [&](const char* text) -> std::string {
    const Status status = set_option(config, "kafka.partition_groups", text);
    return status.ok() ? "" : status.error().detail;
  };
  EXPECT_EQ(set("[[0,1], [2]]"), "");
  EXPECT_EQ(config.kafka.partition_groups, (std::vector<std::vector<int32_t>>{{0, 1}, {2}}));
  EXPECT_EQ(set(""), "");
  EXPECT_TRUE(config.kafka.partition_groups.empty());
  for (const char* wrong : {"[0,1]", "0,1", "[[0,1]", "[[-1]]", "[[0.5]]", "[[\"0\"]]", "{}", "[[0]] x"})
    EXPECT_THAT(set(wrong), HasSubstr("write groups of partitions, as [[0,1],[2,3]]")) << wrong;
  EXPECT_THAT(set("[[0,1],[1]]"), HasSubstr("partition 1 is named twice"));
  EXPECT_THAT(set("[[0],[]]"), HasSubstr("a group has no partitions"));
  EXPECT_THAT(set("[[10000]]"), HasSubstr("partition 10000 is not allowed: use 0 to 9999"));
  EXPECT_TRUE(config.kafka.partition_groups.empty()) << "nothing wrong is stored";
}

TEST(ConfigCheck, an_empty_token_is_told_too) {
  EXPECT_THAT(
      problems_of("[[tokens]]\n"),
      ElementsAre("tokens.0: name is missing", "tokens.0: sha256 is missing", "tokens.0: scopes is missing"));
}

TEST(ConfigCheck, an_error_has_the_place_of_its_key) {
  ConfigOutcome outcome = parse_config(
      "[[tokens]]\n[[tokens]]\nscopes = [\"read\"]\nname = \"x\"\n[tls]\nkey = "
      "\"k\"\n[topics.\"a.b\"]\nlease "
      "= \"1s\"\n",
      "f.toml");
  ASSERT_TRUE(outcome.ok());
  const auto placed = [&](const std::string& error) { return with_origin(error, outcome.said); };
  EXPECT_EQ(placed("tls.key: no"), "f.toml:6: tls.key: no");
  EXPECT_EQ(placed("tls: no"), "f.toml:6: tls: no");
  EXPECT_EQ(placed("tls.certificate: no"), "tls.certificate: no") << "nobody said anything of it";
  EXPECT_EQ(placed("tokens.0: no"), "f.toml:1: tokens.0: no");
  EXPECT_EQ(placed("tokens.1: no"), "f.toml:3: tokens.1: no");
  EXPECT_EQ(placed("topics.\"a.b\": no"), "f.toml:8: topics.\"a.b\": no") << "its first key";
  EXPECT_EQ(placed("other text"), "other text");
  ASSERT_TRUE(set_option(outcome.config, "tls.key", "other", &outcome.said).ok());
  EXPECT_EQ(placed("tls.key: no"), "tls.key: no") << "by the command line, which needs no place";
  ASSERT_TRUE(set_option(outcome.config, "tls.key", "other", &outcome.said, "DELAYQ_TLS_KEY").ok());
  EXPECT_EQ(placed("tls.key: no"), "DELAYQ_TLS_KEY in the environment: tls.key: no");
}

TEST(ConfigCheck, what_could_not_be_read_is_not_called_missing) {
  const ConfigOutcome outcome =
      parse_config("[server]\nhttp = \":1\"\n[tls]\ncertificate = \"c.pem\"\nkey = 1\n", "a");
  EXPECT_THAT(outcome.errors, ElementsAre(HasSubstr("a:5: tls.key: ")));
  EXPECT_THAT(check_config(outcome.config, false), ElementsAre(HasSubstr("server.http: :1 can be reached")));
}

}  // namespace
}  // namespace delayq
