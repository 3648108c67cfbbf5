#include "ops/seed_config.h"

#include <fstream>
#include <iterator>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/config.h"
#include "ops/config_table.h"

namespace delayq {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

std::string file(const std::string& name) {
  std::ifstream in(std::string(DELAYQ_SOURCE_FOLDER) + "/tests/data/seeds/" + name, std::ios::binary);
  EXPECT_TRUE(in) << name;
  return {std::istreambuf_iterator<char>(in), {}};
}

/// As `delayq -c` reads it.
ConfigOutcome read(std::string_view text) {
  ConfigOutcome outcome = parse_config(text, "f");
  keep_to_this_machine(outcome);
  tell_engine(outcome);
  if (outcome.ok()) outcome.errors = check_config(outcome.config);
  return outcome;
}

TEST(SeedConfig, delayq_as_its_document_shows_it) {
  const ConfigOutcome outcome = read(file("delayq.conf"));
  EXPECT_THAT(outcome.errors, IsEmpty());
  EXPECT_EQ(outcome.form, "DelayQ");
  Config expected;
  expected.server.pid_file = "/var/run/delayq.pid";
  expected.log.access = "logs/access.log";
  expected.log.file = "logs/error.log";
  expected.server.engine = Config::Engine::kRedis;
  EXPECT_EQ(outcome.config, expected);
  EXPECT_THAT(
      outcome.warnings,
      ElementsAre(
          "f:3: delayq.timer_interval: not needed: a job is handed over at its time, not at the "
          "next scan",
          HasSubstr("f:12: redis.max_idle: not needed: commands are pipelined"),
          HasSubstr("f:13: redis.max_active: not"), HasSubstr("f:14: redis.idle_timeout: not"),
          HasSubstr("f:15: redis.conn_max_lifetime: not"),
          "f:8: jobs are kept in this Redis (redis://127.0.0.1:6379), below the keys delayq:*, by the "
          "redis engine; -t journal keeps them in the directory data of this machine instead, and needs "
          "no Redis"));
}

TEST(SeedConfig, redis_is_where_the_file_says) {
  const ConfigOutcome outcome =
      read("[delayq]\npid = a\n[redis]\nhost = r\nport = 7\ndatabase = 3\npassword = p\n");
  EXPECT_THAT(outcome.errors, IsEmpty());
  EXPECT_EQ(outcome.config.redis.url, "redis://r:7");
  EXPECT_EQ(outcome.config.redis.database, 3u);
  EXPECT_EQ(outcome.config.redis.password, "p");
  EXPECT_THAT(config_in_force(outcome.said),
              AllOf(HasSubstr("engine = \"redis\"  # f:4\n"), HasSubstr("url = \"redis://r:7\"  # f:4\n")));
}

TEST(SeedConfig, the_engine_may_be_chosen_elsewhere) {
  ConfigOutcome outcome = parse_config("redis.host = r:7\njob.key = k\n", "f");
  ASSERT_TRUE(set_option(outcome.config, "server.engine", "journal", &outcome.said));
  tell_engine(outcome);
  EXPECT_EQ(outcome.config.server.engine, Config::Engine::kJournal);
  EXPECT_THAT(outcome.warnings,
              Contains("f:1: redis://r:7 is not used: another engine was chosen by command line"));
  outcome = parse_config("redis.host = r:7\njob.key = k\n", "f");
  ASSERT_TRUE(set_option(outcome.config, "redis.url", "redis://other", &outcome.said));
  tell_engine(outcome);
  EXPECT_EQ(outcome.config.server.engine, Config::Engine::kRedis);
  EXPECT_EQ(outcome.config.redis.url, "redis://other");
}

TEST(SeedConfig, delayq_as_its_program_reads_it) {
  const ConfigOutcome outcome = read("[delayq]\npid_file = a.pid\n[delayqcli]\nhost = h\nport = 6379\n");
  EXPECT_THAT(outcome.errors, IsEmpty());
  EXPECT_EQ(outcome.config.server.pid_file, "a.pid");
  EXPECT_THAT(outcome.warnings, ElementsAre(HasSubstr("f:4: delayqcli.host: not used: consumers"),
                                            HasSubstr("f:5: delayqcli.port: not used: consumers")));
}

TEST(SeedConfig, go_delay_queue) {
  const ConfigOutcome outcome = read(file("go-delay-queue.conf"));
  EXPECT_THAT(outcome.errors, IsEmpty());
  EXPECT_EQ(outcome.form, "go-delay-queue");
  Config expected;
  expected.server.request_timeout = seconds{10};
  expected.server.write_timeout = seconds{10};
  expected.log.file = "logs/delay-queue.log";
  expected.log.level = Config::LogLevel::kDebug;
  expected.server.engine = Config::Engine::kRedis;
  expected.redis.database = 1;
  expected.redis.connect_timeout = seconds{5};
  expected.redis.timeout = seconds{5};
  expected.kafka.brokers = "127.0.0.1:9093";
  expected.kafka.partition_groups = {{0, 1}};
  expected.kafka.partitions = 2;
  expected.topics["*"] = {.keep_done = Retention{std::chrono::hours{24}, 1'000'000},
                          .delivery = Delivery::kRedisList,
                          .redis_content = RedisContent::kId};
  EXPECT_EQ(outcome.config, expected);
  // All 28 keys but the brokers with the four of the login, the groups of partitions, the address and
  // Redis's, which are told for another reason, two timeouts of it and four of Redis, three of the log and
  // the time for which jobs are kept. (An empty password is none.)
  EXPECT_THAT(outcome.warnings, SizeIs(10 + 3));
  EXPECT_THAT(outcome.warnings,
              Contains(HasSubstr("due ids are written to the list of their topic in this Redis")));
  EXPECT_THAT(outcome.warnings,
              Contains(HasSubstr("kafkaqueue.delay_durations: not used: the kafka engine has")));
  EXPECT_THAT(outcome.warnings, Contains(HasSubstr("f:4: 0.0.0.0:9277 can be reached from other machines")));
  EXPECT_THAT(outcome.warnings.back(), HasSubstr("jobs are kept in this Redis (redis://127.0.0.1:6379)"));
}

constexpr std::string_view kWithBrokers = "job.key = k\nkafka.bootstrap_servers = b:9092\n";

TEST(SeedConfig, login_and_encryption_of_kafka) {
  const std::string login =
      "kafka.sasl_mechanism = SCRAM-SHA-256\nkafka.sasl_username = u\nkafka.sasl_password = \"p;#\"\n";
  const auto with = [&](std::string_view protocol, const std::string& rest) {
    return read(fmt::format("{}kafka.security_protocol = {}\n{}", kWithBrokers, protocol, rest));
  };
  for (const auto& [protocol, tls] : {std::pair{"SASL_SSL", true}, std::pair{"sasl_plaintext", false}}) {
    const ConfigOutcome outcome = with(protocol, login);
    EXPECT_THAT(outcome.errors, IsEmpty());
    EXPECT_EQ(outcome.config.kafka.tls, tls);
    EXPECT_EQ(outcome.config.kafka.sasl, Config::Kafka::Sasl::kScramSha256);
    EXPECT_EQ(outcome.config.kafka.user, "u");
    EXPECT_EQ(outcome.config.kafka.password, "p;#");
    EXPECT_THAT(config_in_force(outcome.said), Not(HasSubstr("p;#")));
  }
  const ConfigOutcome encrypted = with("ssl", "");
  EXPECT_THAT(encrypted.errors, IsEmpty());
  EXPECT_TRUE(encrypted.config.kafka.tls);
  EXPECT_EQ(encrypted.config.kafka.sasl, Config::Kafka::Sasl::kNone);
}

TEST(SeedConfig, login_to_kafka_that_cannot_be) {
  const auto errors = [&](std::string_view rest) {
    return read(fmt::format("{}{}", kWithBrokers, rest)).errors;
  };
  EXPECT_THAT(errors("kafka.security_protocol = TLS\n"),
              ElementsAre("f:3: kafka.security_protocol: \"TLS\" is not allowed: use one of plaintext, ssl, "
                          "sasl_plaintext, sasl_ssl"));
  EXPECT_THAT(errors("kafka.security_protocol = SASL_SSL\nkafka.sasl_mechanism = PLAIN\n"),
              ElementsAre("f:3: kafka.security_protocol: to log in, kafka.sasl_username is needed, too",
                          "f:3: kafka.security_protocol: to log in, kafka.sasl_password is needed, too"));
  EXPECT_THAT(errors("kafka.security_protocol = SASL_SSL\nkafka.sasl_mechanism = GSSAPI\n"
                     "kafka.sasl_username = u\nkafka.sasl_password = p\n"),
              ElementsAre(AllOf(HasSubstr("f:4: kafka.sasl_mechanism: "), HasSubstr("scram-sha-256"),
                                HasSubstr("(it is kafka.sasl here)"))));
  const ConfigOutcome open = read(fmt::format("{}kafka.sasl_username = u\n", kWithBrokers));
  EXPECT_THAT(open.errors, IsEmpty());
  EXPECT_EQ(open.config.kafka.user, "");
  EXPECT_THAT(open.warnings, Contains("f:3: kafka.sasl_username: not used: kafka.security_protocol does not "
                                      "begin with sasl_"));
}

TEST(SeedConfig, the_system_from_which_go_delay_queue_descends) {
  const ConfigOutcome outcome =
      read("bind_address = '127.0.0.1:5920'\nbucket_size = 3\nqueue_block_timeout = 178\nredis.db = 1\n");
  EXPECT_THAT(outcome.errors, IsEmpty());
  EXPECT_EQ(outcome.config.server.addresses[ProtocolKind::kHttp], (Address{"127.0.0.1", 5920}));
  EXPECT_EQ(outcome.config.server.engine, Config::Engine::kJournal) << "nothing is said of where a Redis is";
  EXPECT_THAT(outcome.warnings, SizeIs(2));
}

TEST(SeedConfig, due_ids_of_go_delay_queue_go_to_lists_only_where_its_redis_is_used) {
  const std::string text = "server.bind_address = 127.0.0.1:1\nredis.host = 127.0.0.1:6379\n";
  const ConfigOutcome lists = read(text);
  EXPECT_EQ(lists.config.topics.at("*").delivery, Delivery::kRedisList);
  EXPECT_EQ(lists.config.topics.at("*").keep_done.time, std::chrono::hours{24}) << "its default";
  EXPECT_THAT(config_in_force(lists.said), HasSubstr("delivery = \"redis_list\"  # f:2\n"));

  ConfigOutcome journal = parse_config(text, "f");
  ASSERT_TRUE(set_option(journal.config, "server.engine", "journal", &journal.said));
  tell_engine(journal);
  EXPECT_EQ(journal.config.topics.at("*").delivery, std::nullopt);
  EXPECT_THAT(journal.warnings, Contains(HasSubstr("due ids are not written to lists in Redis")));
  EXPECT_THAT(config_in_force(journal.said), Not(HasSubstr("redis_list")));

  ConfigOutcome popped = parse_config(text, "f");
  ASSERT_TRUE(set_option(popped.config, "topics.*.delivery", "pull", &popped.said));
  tell_engine(popped);
  EXPECT_EQ(popped.config.topics.at("*").delivery, Delivery::kPull);
  EXPECT_EQ(read("queue_name = q\nbind_address = 127.0.0.1:1\nredis.host = r:1\n").config.topics.size(), 0u)
      << "of the system from which it descends, jobs are popped";
}

TEST(SeedConfig, callback) {
  const ConfigOutcome outcome = read(file("callback.conf"));
  EXPECT_THAT(outcome.errors, IsEmpty());
  EXPECT_EQ(outcome.form, "delay_queue_callback");
  Config expected;
  expected.server.addresses[ProtocolKind::kHttp] = {"127.0.0.1", 9527};
  expected.log.file = "log/delay.log";
  expected.server.engine = Config::Engine::kRedis;
  expected.redis.database = 1;
  expected.topics["*"].attempts = 3;
  expected.topics["*"].callback_timeout = seconds{30};
  EXPECT_EQ(outcome.config, expected);
  EXPECT_EQ(queue_config(outcome.config).defaults.attempts, 3u);
  EXPECT_THAT(outcome.warnings, SizeIs(3));
}

TEST(SeedConfig, an_example_with_everything_commented_out_says_nothing) {
  const ConfigOutcome outcome = read(";listen = 0.0.0.0:9527 ; x\n;bucket.size = 3\n");
  EXPECT_THAT(outcome.errors, IsEmpty());
  EXPECT_EQ(outcome.config, Config{});
  EXPECT_THAT(outcome.warnings, ElementsAre(HasSubstr("f: the file sets nothing")));
}

TEST(SeedConfig, our_own_files_stay_toml) {
  for (const std::string text :
       {"", "# nothing\n", "log.level = \"debug\"\n", "[server]\nhttp = \"127.0.0.1:1\"\n",
        "[topics.\"*\"]\nattempts = 3\n", "[topics.timeout]\nlease = \"30s\"\n"}) {
    const ConfigOutcome outcome = read(text);
    EXPECT_THAT(outcome.errors, IsEmpty()) << text;
    EXPECT_EQ(outcome.form, "") << text;
  }
  EXPECT_THAT(read("server.http = \"127.0.0.1:1\"\nlisten = 1\n").errors,
              ElementsAre(HasSubstr("f:2: listen: unknown section")));
  EXPECT_THAT(read("listn = 1:2\n").errors, ElementsAre(HasSubstr("f:1: this is not TOML")));
}

TEST(SeedConfig, no_key_means_one_thing_here_and_another_there) {
  for (const SeedKey& key : seed_keys()) {
    EXPECT_NE(key.to.empty(), key.note.empty()) << key.name;
    const size_t dot = key.name.find('.');
    if (dot == std::string_view::npos) continue;
    const bool is_ours = find_row(key.name.substr(0, dot), key.name.substr(dot + 1)) != nullptr;
    EXPECT_TRUE(!is_ours || key.name == key.to) << key.name;
  }
}

TEST(SeedConfig, names_what_it_does_not_know) {
  const ConfigOutcome outcome =
      read("[delayq]\npid = a\nacess_log = b\n[redis]\nhots = c\n[other]\nkey = d\n");
  EXPECT_THAT(outcome.errors, IsEmpty());
  EXPECT_THAT(outcome.warnings,
              ElementsAre("f:3: delayq.acess_log: unknown key, ignored: DelayQ has no such key; did you mean "
                          "delayq.access_log?",
                          AllOf(HasSubstr("f:5: redis.hots: unknown"), HasSubstr("redis.host?")),
                          "f:7: other.key: unknown key, ignored: DelayQ has no such key"));
}

TEST(SeedConfig, tells_all_errors_with_their_lines) {
  const ConfigOutcome outcome = read(
      "listen = nowhere\nmax_tries = 0\ntimeout = -1\nbroken\nredis.db = one\nbucket.size = 3000000000\n"
      "redis.password = \"hush\n");
  EXPECT_THAT(
      outcome.errors,
      ElementsAre(AllOf(HasSubstr("f:1: listen: \"nowhere\" is not an address: use"),
                        HasSubstr("(it is server.http here)")),
                  "f:2: max_tries: \"0\" is not allowed: use a whole number from 1 to 2147483647",
                  "f:3: timeout: \"-1\" is not allowed: use a whole number from 0 to 2147483647",
                  HasSubstr("f:4: expected key = value"), HasSubstr("f:5: redis.db: \"one\" is not allowed"),
                  HasSubstr("f:6: bucket.size: "), HasSubstr("f:7: the value's closing quote is missing")));
  EXPECT_THAT(read("max_tries = 5000000\n").errors,
              ElementsAre(HasSubstr("f:1: max_tries: \"5000000\" is out")));
  EXPECT_THAT(read("[delayq]\npid=a\n[redis]\nport = 65536\n").errors,
              ElementsAre(HasSubstr("from 1 to 65535")));
  EXPECT_THAT(read("log.log_level = loud\njob.key = k\n").errors,
              ElementsAre(HasSubstr("f:1: log.log_level: \"loud\" is not known: use debug or info")));
}

TEST(SeedConfig, the_last_of_several_counts) {
  const ConfigOutcome outcome = read("listen = 127.0.0.1:1\nmax_tries = 2\nlisten = 127.0.0.1:2\n");
  EXPECT_THAT(outcome.errors, IsEmpty());
  EXPECT_EQ(outcome.config.server.addresses[ProtocolKind::kHttp].port, 2);
  EXPECT_THAT(outcome.warnings, ElementsAre("f:1: listen: set again in line 3; the last value is used"));
}

TEST(SeedConfig, levels_of_other_loggers) {
  for (const auto& [theirs, ours] : {std::pair{"TRACE", Config::LogLevel::kDebug},
                                     {"Warning", Config::LogLevel::kWarn},
                                     {"fatal", Config::LogLevel::kError}}) {
    EXPECT_EQ(read(fmt::format("log.level = {}\njob.key = k\n", theirs)).config.log.level, ours) << theirs;
  }
}

TEST(SeedConfig, half_of_a_logs_name_is_completed_as_there) {
  EXPECT_EQ(read("log.log_path = /var/log/dq\n").config.log.file, "/var/log/dq/delay-queue.log");
  EXPECT_EQ(read("log.log_name = x.log\n").config.log.file, "logs/x.log");
}

TEST(SeedConfig, listens_for_other_machines_only_when_told_so) {
  for (const std::string address : {"0.0.0.0:9277", ":9277", "[::]:9277", "10.0.0.1:9277"}) {
    const ConfigOutcome outcome = read("listen = " + address + "\n");
    EXPECT_THAT(outcome.errors, IsEmpty());
    EXPECT_EQ(outcome.config.server.addresses[ProtocolKind::kHttp], (Address{"127.0.0.1", 9277})) << address;
    EXPECT_THAT(outcome.warnings, ElementsAre(HasSubstr("f:1: " + address + " can be reached")));
    EXPECT_THAT(config_in_force(outcome.said), HasSubstr("http = \"127.0.0.1:9277\"  # f:1\n"));
  }
  ConfigOutcome opened = parse_config("listen = 0.0.0.0:9277\n", "f");
  ASSERT_TRUE(set_option(opened.config, "server.allow_anonymous", "true", &opened.said));
  keep_to_this_machine(opened);
  EXPECT_EQ(opened.config.server.addresses[ProtocolKind::kHttp].host, "0.0.0.0");
  EXPECT_THAT(opened.warnings, IsEmpty());
  ConfigOutcome silent = parse_config("redis.host = r:1\nredisqueue.bucket_size = 3\n", "f");
  ASSERT_TRUE(set_option(silent.config, "server.allow_anonymous", "true", &silent.said));
  keep_to_this_machine(silent);
  EXPECT_EQ(silent.config.server.addresses[ProtocolKind::kHttp], (Address{"0.0.0.0", 9277}))
      << "as go-delay-queue does";
  ConfigOutcome overridden = parse_config("listen = 0.0.0.0:9277\n", "f");
  ASSERT_TRUE(set_option(overridden.config, "server.http", "0.0.0.0:1", &overridden.said));
  keep_to_this_machine(overridden);
  EXPECT_EQ(overridden.config.server.addresses[ProtocolKind::kHttp].host, "0.0.0.0")
      << "that is for check_config to refuse";
}

TEST(SeedConfig, what_is_in_force_can_be_written_as_our_own) {
  const ConfigOutcome outcome = read(file("callback.conf"));
  const std::string text = config_in_force(outcome.said);
  EXPECT_THAT(
      text,
      AllOf(HasSubstr("http = \"127.0.0.1:9527\"  # f:2\n"),
            HasSubstr("[topics.\"*\"]\nattempts = \"3\"  # f:9\ncallback_timeout = \"30s\"  # f:10\n")));
  const ConfigOutcome again = parse_config(text, "again");
  EXPECT_THAT(again.errors, IsEmpty());
  EXPECT_EQ(again.form, "");
  EXPECT_EQ(again.config, outcome.config);
}

TEST(SeedConfig, secrets_are_in_no_message) {
  const ConfigOutcome outcome = read("[delayq]\npid = a\n[redis]\npassword = hush\npasswort = hush\n");
  EXPECT_THAT(outcome.warnings, SizeIs(1));
  EXPECT_THAT(outcome.warnings, Not(Contains(HasSubstr("hush"))));
  EXPECT_THAT(config_in_force(outcome.said), Not(HasSubstr("hush")));
}

}  // namespace
}  // namespace delayq
