// Who is let in, and over which kind of connection.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/identity.h"
#include "tests/support/redis_driver.h"
#include "tests/support/redis_process.h"

namespace delayq::net::redis {
namespace {

using support::Identity;
using support::RedisDriver;
using support::RedisProcess;
using support::text_of;
using support::to;
using testing::HasSubstr;

/// Why the client does not get in.
std::string refusal(const ClientOptions& options) {
  RedisDriver driver(options);
  driver.turn_until("a refusal", [&] { return !driver.client().last_error().empty(); });
  EXPECT_FALSE(driver.client().is_connected());
  const auto reply = driver.call("k", {"GET", "k"});
  EXPECT_TRUE(!reply.ok() && reply.error().code == ErrorCode::kUnavailable);
  return std::string(driver.client().last_error());
}

TEST(Login, ByPassword) {
  RedisProcess redis;
  redis.command({"CONFIG", "SET", "requirepass", "right"});
  ClientOptions options = to(redis.port());
  EXPECT_THAT(refusal(options), HasSubstr("NOAUTH"));
  options.password = "wrong";
  EXPECT_THAT(refusal(options), HasSubstr("WRONGPASS"));
  options.password = "right";
  RedisDriver driver(options);
  driver.connect();
  EXPECT_EQ(text_of(driver.call("k", {"SET", "k", "1"})), "OK");
}

TEST(Login, AsAUserOfTheAcl) {
  RedisProcess redis;
  redis.command({"ACL", "SETUSER", "app", "on", ">pw", "~own:*", "+@read", "+@write", "+ping"});
  ClientOptions options = to(redis.port());
  options.user = "app";
  options.password = "pw";
  RedisDriver driver(options);
  driver.connect();  // neither ROLE nor CLIENT SETNAME is allowed, and neither is needed
  EXPECT_EQ(text_of(driver.call("own:k", {"SET", "own:k", "1"})), "OK");
  const auto refused = driver.call("other", {"SET", "other", "1"});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().detail, HasSubstr("NOPERM"));
  options.user = "nobody";
  EXPECT_THAT(refusal(options), HasSubstr("WRONGPASS"));
}

TEST(Login, ToADatabase) {
  RedisProcess redis;
  ClientOptions options = to(redis.port());
  options.database = 3;
  RedisDriver driver(options);
  driver.connect();
  EXPECT_EQ(text_of(driver.call("k", {"SET", "k", "1"})), "OK");
  EXPECT_EQ(text_of(redis.command({"GET", "k"})), "nil");
  redis.command({"SELECT", "3"});
  EXPECT_EQ(text_of(redis.command({"GET", "k"})), "1");
  redis.kill_clients();  // it is the same one after a reconnect
  driver.turn_until("a reconnect", [&] { return driver.client().figures().reconnects == 1; });
  EXPECT_EQ(text_of(driver.insist("k", {"GET", "k"})), "1");
  options.database = 99;
  EXPECT_THAT(refusal(options), HasSubstr("SELECT: ERR DB index is out of range"));
}

TEST(Login, ToAHostByName) {
  RedisProcess redis;
  ClientOptions options = to(redis.port());
  options.addresses[0].host = "localhost";
  RedisDriver driver(options);
  driver.connect();
  options.addresses[0].host = "nowhere.invalid";
  EXPECT_THAT(refusal(options), HasSubstr("nowhere.invalid"));
}

/// A server that speaks TLS and asks clients for a certificate of `clients`.
class TlsServer {
 public:
  explicit TlsServer(const Identity& server, const Identity& clients)
      : tls_port_(support::free_port()),
        redis_({"--tls-port", std::to_string(tls_port_), "--tls-cert-file", server.file(), "--tls-key-file",
                server.file(), "--tls-ca-cert-file", clients.file()}) {}
  ClientOptions options(const Identity& believed, const Identity& own) const {
    ClientOptions made = to(tls_port_);
    made.tls = {.is_on = true, .ca_file = believed.file(), .certificate = own.file()};
    return made;
  }

 private:
  uint16_t tls_port_;
  RedisProcess redis_;
};

TEST(Login, OverTls) {
  const Identity server("IP:127.0.0.1,DNS:redis.test");
  const Identity own("DNS:client.test");
  const Identity other("IP:127.0.0.1");
  const TlsServer redis(server, own);
  ClientOptions options = redis.options(server, own);
  {
    RedisDriver driver(options);
    driver.connect();
    const std::string large(1u << 20, 'x');
    EXPECT_EQ(text_of(driver.call("k", {"SET", "k", large})), "OK");
    EXPECT_EQ(text_of(driver.call("k", {"GET", "k"})), large);
    int replies = 0;
    for (int i = 0; i < 5000; ++i)
      driver.client().call("n", {"INCR", "n"},
                           [&](const auto& reply) { EXPECT_EQ(reply->integer, ++replies); });
    driver.turn_until("all replies", [&] { return driver.client().outstanding() == 0; });
  }
  options.tls.server_name = "redis.test";
  RedisDriver(options).connect();
  options.tls.server_name = "elsewhere.test";
  EXPECT_THAT(refusal(options), HasSubstr("the certificate is not trusted: hostname mismatch"));
  options.tls.skips_check = true;
  RedisDriver(options).connect();

  EXPECT_THAT(refusal(redis.options(other, own)), HasSubstr("the certificate is not trusted"));
  EXPECT_NE(refusal(redis.options(server, other)), "");
  ClientOptions nobody = redis.options(server, own);
  nobody.tls.certificate.clear();
  EXPECT_NE(refusal(nobody), "");
}

TEST(Login, OverTlsToAServerThatDoesNotSpeakIt) {
  RedisProcess redis;
  ClientOptions options = to(redis.port());
  options.tls.is_on = true;
  options.connect_timeout = Millis{500};
  EXPECT_NE(refusal(options), "");
}

}  // namespace
}  // namespace delayq::net::redis
