#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/config_options.h"
#include "tests/support/temporary_directory.h"

namespace delayq {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class Preflight : public testing::Test {
 protected:
  Preflight() {
    config.server.addresses[ProtocolKind::kHttp].port = 0;
    config.server.addresses[ProtocolKind::kResp].port = 0;
    config.server.data = folder / "data";
    std::ofstream(file) << "not a certificate\n";
  }

  support::TemporaryDirectory folder;
  const std::string file = folder / "file";
  Config config;
};

TEST_F(Preflight, finds_nothing_wrong_with_the_defaults_and_makes_nothing) {
  config.log.file = folder / "logs/today/delayq.log";
  EXPECT_THAT(check_start(config), IsEmpty());
  EXPECT_FALSE(std::ifstream(config.log.file).is_open());
  EXPECT_FALSE(std::filesystem::exists(config.server.data));
}

TEST_F(Preflight, files_that_cannot_be_made_are_named_with_their_setting) {
  config.server.data = file + "/data";
  config.server.pid_file = folder / ".";
  config.log.file = file + "/x.log";
  config.log.access = file + "/y/z.log";
  EXPECT_THAT(
      check_start(config),
      ElementsAre(StartsWith("server.data: " + file + " is not a directory"),
                  AllOf(StartsWith("server.pid_file: "), HasSubstr("is a directory: name a file in it")),
                  StartsWith("log.file: " + file + "/x.log cannot be made: " + file + " is not"),
                  StartsWith("log.access: " + file + "/y/z.log cannot be made: " + file + " is not")));
  config = Config();
  config.server.data = folder / "nightly.partial";
  EXPECT_THAT(check_start(config),
              ElementsAre(AllOf(StartsWith("server.data: "), HasSubstr("unfinished backup"))));
  config.server.engine = Config::Engine::kMemory;
  EXPECT_THAT(check_start(config), IsEmpty()) << "which has no directory";
}

TEST_F(Preflight, certificates_are_read) {
  config.tls.certificate = "/missing.pem";
  config.tls.key = "/missing.key";
  config.webhook.ca_file = file;
  EXPECT_THAT(check_start(config), ElementsAre(StartsWith("tls.certificate: /missing.pem: "),
                                               StartsWith("webhook.ca_file: " + file + ": ")));
  config = Config();
  config.server.engine = Config::Engine::kRedis;
  config.redis.url = "rediss://127.0.0.1:1";
  config.redis.ca_file = file;
  EXPECT_THAT(check_start(config), ElementsAre(StartsWith("redis.ca_file: " + file + ": ")));
  config.redis.ca_file.clear();
  config.redis.password_file = "/missing";
  EXPECT_THAT(check_start(config), ElementsAre(StartsWith("redis.password_file: /missing cannot be read")));
}

TEST_F(Preflight, addresses_are_of_this_machine_and_may_be_in_use) {
  config.server.addresses[ProtocolKind::kHttp] = {"192.0.2.1", 9277};
  EXPECT_THAT(check_start(config), ElementsAre(AllOf(StartsWith("server.http: 192.0.2.1:9277: "),
                                                     HasSubstr("this machine has no such address"))));
}

TEST_F(Preflight, topics_that_could_not_be_delivered) {
  config.topics["order.paid"].delivery = Delivery::kWebhook;
  config.topics["list"].delivery = Delivery::kRedisList;
  config.topics["fine"].lease = Millis{1'000};
  EXPECT_THAT(check_start(config),
              ElementsAre(StartsWith("topics.\"list\": delivery = redis_list needs a Redis"),
                          StartsWith("topics.\"order.paid\": callback is missing")));
  config.topics["*"].callback = "http://127.0.0.1:1/";
  config.redis_delivery.url = "redis://127.0.0.1:1";
  EXPECT_THAT(check_start(config), IsEmpty());
}

}  // namespace
}  // namespace delayq
