#include "kafka/client_options.h"

#include <gmock/gmock.h>

namespace delayq::kafka {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

ClientOptions somewhere() {
  ClientOptions options;
  options.brokers = "127.0.0.1:1";
  return options;
}

std::string refusal(const ClientOptions& options) {
  const Status status = check_options(options);
  return status.ok() ? "" : status.error().detail;
}

TEST(KafkaClientOptions, WhatLibrdkafkaAcceptsIsRight) {
  ClientOptions options = somewhere();
  options.brokers = "a:9092, b:9092,[::1]:9092,c";
  options.settings = {{"linger.ms", "20"}, {"compression.codec", "lz4"}};
  EXPECT_EQ(refusal(options), "");
}

TEST(KafkaClientOptions, AWrongSettingIsRefusedByItsName) {
  ClientOptions options = somewhere();
  options.settings = {{"linger.sm", "5"}};
  EXPECT_EQ(refusal(options), "settings.linger.sm: librdkafka has no such setting");
  options.settings = {{"linger.ms", "-5"}};
  EXPECT_THAT(refusal(options), AllOf(StartsWith("settings.linger.ms: "), HasSubstr("-5")));
  options.settings = {{"compression.codec", "zip"}};
  EXPECT_THAT(refusal(options), StartsWith("settings.compression.codec: "));
  EXPECT_EQ(check_options(options).error().field, "settings.compression.codec");
}

TEST(KafkaClientOptions, SettingsThatDoNotGoTogetherAreRefused) {
  ClientOptions options = somewhere();
  options.settings = {{"security.protocol", "sasl_plaintext"}, {"sasl.mechanisms", "BANANA"}};
  EXPECT_THAT(refusal(options), StartsWith("settings: "));
}

TEST(KafkaClientOptions, WhatDelayqNeedsCannotBeChanged) {
  ClientOptions options = somewhere();
  options.settings = {{"acks", "1"}};
  EXPECT_EQ(refusal(options), "settings.acks: this cannot be set here: delayq needs it to be all");
  options.settings = {{"bootstrap.servers", "elsewhere:9092"}};
  EXPECT_THAT(refusal(options), HasSubstr("set brokers"));
}

TEST(KafkaClientOptions, ABrokerIsAHostAndAPort) {
  for (const char* brokers : {"", ",", "a:9092,", ":9092", "a:b", "kafka://a:9092", "a:123456"}) {
    ClientOptions options = somewhere();
    options.brokers = brokers;
    EXPECT_THAT(refusal(options), StartsWith("brokers: ")) << brokers;
  }
}

TEST(KafkaClientOptions, SaslNeedsUserAndPasswordAndTheyNeedSasl) {
  ClientOptions options = somewhere();
  options.sasl = Sasl::kScramSha256;
  options.user = "delayq";
  EXPECT_EQ(refusal(options), "user: sasl needs user and password");
  options.password = "hush";
  EXPECT_EQ(refusal(options), "");
  options.sasl = Sasl::kNone;
  EXPECT_THAT(refusal(options), HasSubstr("needs sasl"));
}

TEST(KafkaClientOptions, FilesOfTlsAreReadNow) {
  ClientOptions options = somewhere();
  options.ca_file = "/nowhere/ca.pem";
  EXPECT_EQ(refusal(options), "ca_file: needs tls = true");
  options.uses_tls = true;
  EXPECT_EQ(refusal(options), "ca_file: \"/nowhere/ca.pem\" cannot be read");
  options.ca_file = "/dev/null";
  EXPECT_THAT(refusal(options), StartsWith("settings: "));
  options.ca_file = "";
  options.certificate = "/dev/null";
  EXPECT_EQ(refusal(options), "certificate: certificate and key are needed together");
}

TEST(KafkaClientOptions, SecretsAreNotRepeated) {
  ClientOptions options = somewhere();
  options.settings = {{"ssl.key.pem", "hush"}, {"security.protocol", "ssl"}};
  EXPECT_THAT(refusal(options), Not(HasSubstr("hush")));
}

}  // namespace
}  // namespace delayq::kafka
