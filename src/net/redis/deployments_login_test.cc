// Who is let in, and over which kind of connection, where there are several servers: each of them is spoken
// to in the same way, also those that only another one named.
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/identity.h"
#include "tests/support/redis_cluster.h"
#include "tests/support/redis_driver.h"
#include "tests/support/redis_sentinels.h"

namespace delayq::net::redis {
namespace {

using support::Identity;
using support::RedisCluster;
using support::RedisDriver;
using support::RedisProcess;
using support::RedisSentinels;
using support::text_of;
using testing::HasSubstr;

ClientOptions to(const std::vector<uint16_t>& ports, Mode mode) {
  ClientOptions options = support::to_all(ports);
  options.mode = mode;
  options.master_name = RedisSentinels::kMasterName;
  return options;
}

/// Why the client does not get in.
std::string refusal(const ClientOptions& options) {
  RedisDriver driver(options);
  driver.turn_until("a refusal", [&] { return !driver.client().last_error().empty(); });
  EXPECT_FALSE(driver.client().is_connected());
  return std::string(driver.client().last_error());
}

void add_user(RedisProcess& redis, std::string_view name, std::string_view password) {
  const std::string secret = ">" + std::string(password);
  EXPECT_EQ(text_of(redis.command({"ACL", "SETUSER", name, "on", secret, "~*", "&*", "+@all"})), "OK");
}

TEST(DeploymentsLogin, UsersOfSentinelsAndOfTheirServers) {
  RedisSentinels group;
  for (const auto& server : group.servers()) add_user(*server, "app", "pw");
  for (const auto& sentinel : group.sentinels()) {
    add_user(*sentinel, "watcher", "guard");
    sentinel->command({"ACL", "SETUSER", "default", "resetpass", ">other"});
  }
  ClientOptions options = to(group.sentinel_ports(), Mode::kSentinel);
  options.user = "app";
  options.password = "pw";
  EXPECT_THAT(refusal(options), HasSubstr("NOAUTH")) << "the servers' user is not the sentinels'";
  options.sentinel_user = "watcher";
  options.sentinel_password = "wrong";
  EXPECT_THAT(refusal(options), HasSubstr("WRONGPASS"));
  options.sentinel_password = "guard";
  options.password = "wrong";
  EXPECT_THAT(refusal(options), HasSubstr("WRONGPASS"));
  options.password = "pw";
  RedisDriver driver(options);
  driver.connect();
  EXPECT_EQ(text_of(driver.call("k", {"ACL", "WHOAMI"})), "app");
  // So it is with the next master, and for listening.
  int times_listening = 0;
  driver.client().subscribe(
      "news", [](std::string_view) {}, [&] { ++times_listening; });
  driver.turn_until("it listens", [&] { return times_listening == 1; });
  group.servers()[0]->kill();
  EXPECT_EQ(text_of(driver.insist("k", {"ACL", "WHOAMI"})), "app");
  driver.turn_until("it listens again", [&] { return times_listening >= 2; });
}

TEST(DeploymentsLogin, UsersOfAllNodesOfACluster) {
  RedisCluster cluster;
  for (const auto& node : cluster.nodes()) {
    add_user(*node, "app", "pw");
    node->command({"ACL", "SETUSER", "default", "resetpass", ">other"});
  }
  ClientOptions options = to({cluster.ports()[0]}, Mode::kCluster);
  EXPECT_THAT(refusal(options), HasSubstr("NOAUTH"));
  options.user = "app";
  options.password = "pw";
  RedisDriver driver(options);
  driver.connect();
  for (int i = 0; i < 20; ++i) {
    const std::string key = std::to_string(i);
    EXPECT_EQ(text_of(driver.call(key, {"ACL", "WHOAMI"})), "app");
    EXPECT_EQ(text_of(driver.call(key, {"SET", key, "1"})), "OK");
  }
}

/// What a server that speaks TLS is told.
std::vector<std::string> tls_arguments(const Identity& identity, uint16_t port) {
  return {"--tls-port",    std::to_string(port), "--tls-cert-file", identity.file(),      "--tls-key-file",
          identity.file(), "--tls-ca-cert-file", identity.file(),   "--tls-auth-clients", "no"};
}
ClientOptions with_tls(ClientOptions options, const Identity& believed) {
  options.tls = {.is_on = true, .ca_file = believed.file()};
  return options;
}

TEST(DeploymentsLogin, TlsToSentinelsAndTheirServers) {
  const Identity identity("IP:127.0.0.1");
  const Identity other("IP:127.0.0.1");
  const uint16_t server_port = support::free_port();
  RedisProcess server(tls_arguments(identity, server_port));
  RedisProcess sentinel{RedisProcess::NotYet{}};
  const uint16_t sentinel_port = support::free_port();
  {
    std::ofstream file(sentinel.directory() / "sentinel.conf");
    file << "bind 127.0.0.1\ntls-replication yes\nsentinel monitor " << RedisSentinels::kMasterName
         << " 127.0.0.1 " << server_port << " 1\n";
    const std::vector<std::string> words = tls_arguments(identity, sentinel_port);
    for (size_t i = 0; i < words.size(); i += 2) file << words[i].substr(2) << " " << words[i + 1] << "\n";
  }
  sentinel.set_arguments({(sentinel.directory() / "sentinel.conf").string(), "--sentinel"});
  sentinel.start();
  const ClientOptions plain = to({sentinel_port}, Mode::kSentinel);
  EXPECT_THAT(refusal(with_tls(plain, other)), HasSubstr("the certificate is not trusted"));
  RedisDriver driver(with_tls(plain, identity));
  bool is_listening = false;
  driver.client().subscribe(
      "news", [](std::string_view) {}, [&] { is_listening = true; });
  driver.connect();
  EXPECT_EQ(text_of(driver.call("k", {"SET", "k", "1"})), "OK");
  EXPECT_EQ(text_of(server.command({"GET", "k"})), "1");
  driver.turn_until("it listens", [&] { return is_listening; });
}

/// Two masters that speak TLS, also to each other.
class TlsCluster {
 public:
  explicit TlsCluster(const Identity& identity) {
    for (size_t i = 0; i < 2; ++i) {
      nodes_.push_back(std::make_unique<RedisProcess>(RedisProcess::NotYet{}));
      ports_.push_back(support::free_port());
      bus_ports_.push_back(support::free_port());
    }
    for (size_t i = 0; i < 2; ++i) {
      std::ofstream file(nodes_[i]->directory() / "nodes.conf");
      for (size_t each = 0; each < 2; ++each) {
        file << RedisCluster::id_of(each) << " 127.0.0.1:" << ports_[each] << "@" << bus_ports_[each]
             << (each == i ? " myself,master" : " master") << " - 0 0 " << each + 1 << " connected "
             << (each == 0 ? "0-8191" : "8192-16383") << "\n";
      }
      file << "vars currentEpoch 2 lastVoteEpoch 0\n";
      file.close();
      std::vector<std::string> words = support::usual_redis_arguments();
      for (const std::string& word : tls_arguments(identity, ports_[i])) words.push_back(word);
      for (const std::string& word :
           {std::string("--cluster-enabled"), std::string("yes"), std::string("--cluster-port"),
            std::to_string(bus_ports_[i]), std::string("--tls-cluster"), std::string("yes")}) {
        words.push_back(word);
      }
      nodes_[i]->set_arguments(std::move(words));
      nodes_[i]->start();
    }
    for (const auto& node : nodes_) {
      support::wait_until("the cluster is well", [&] {
        const std::string info = node->command({"CLUSTER", "INFO"}).text;
        return info.find("cluster_state:ok") != std::string::npos;
      });
    }
  }
  uint16_t first_port() const { return ports_[0]; }
  RedisProcess& node(size_t index) { return *nodes_[index]; }

 private:
  std::vector<std::unique_ptr<RedisProcess>> nodes_;
  std::vector<uint16_t> ports_;
  std::vector<uint16_t> bus_ports_;
};

TEST(DeploymentsLogin, TlsToAllNodesOfACluster) {
  const Identity identity("IP:127.0.0.1");
  const Identity other("IP:127.0.0.1");
  TlsCluster cluster(identity);
  const ClientOptions plain = to({cluster.first_port()}, Mode::kCluster);
  EXPECT_THAT(refusal(with_tls(plain, other)), HasSubstr("the certificate is not trusted"));
  RedisDriver driver(with_tls(plain, identity));
  driver.connect();
  for (int i = 0; i < 100; ++i) {
    const std::string key = std::to_string(i);
    EXPECT_EQ(text_of(driver.call(key, {"SET", key, "1"})), "OK");
  }
  EXPECT_GT(cluster.node(0).command({"DBSIZE"}).integer, 10);
  EXPECT_GT(cluster.node(1).command({"DBSIZE"}).integer, 10);
  EXPECT_EQ(driver.client().figures().retries, 0U);
}

TEST(DeploymentsLogin, ToAnAddressOfIpv6) {
  RedisProcess redis({"--bind", "127.0.0.1", "-::1"});
  if (redis.command({"CONFIG", "GET", "bind"}).items.size() != 2) GTEST_SKIP();
  if (std::ifstream("/proc/net/if_inet6").peek() == std::ifstream::traits_type::eof())
    GTEST_SKIP() << "this machine has no IPv6";
  ClientOptions options = to({redis.port()}, Mode::kStandalone);
  options.addresses[0].host = "::1";
  RedisDriver driver(options);
  driver.connect();
  EXPECT_EQ(text_of(driver.call("k", {"SET", "k", "1"})), "OK");
  EXPECT_THAT(redis.command({"CLIENT", "LIST"}).text, HasSubstr("addr=[::1]:"));
  redis.kill();
  driver.turn_until("it noticed", [&] { return !driver.client().is_connected(); });
  EXPECT_THAT(std::string(driver.client().last_error()), HasSubstr("[::1]:")) << "told as it is written";
}

TEST(DeploymentsLogin, TheOtherOfTwoServersWhenTheirRolesChange) {
  RedisProcess a;
  RedisProcess b;
  b.command({"REPLICAOF", "127.0.0.1", std::to_string(a.port())});
  RedisSentinels::wait_for_replicas(a, 1);
  RedisDriver driver(to({a.port(), b.port()}, Mode::kStandalone));
  driver.connect();
  EXPECT_EQ(text_of(driver.call("k", {"SET", "k", "1"})), "OK");
  RedisSentinels::wait_for_replicas(a, 1);
  b.command({"REPLICAOF", "NO", "ONE"});
  a.command({"REPLICAOF", "127.0.0.1", std::to_string(b.port())});
  const auto refused = driver.call("k", {"SET", "k", "2"});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(refused.error().detail, HasSubstr("READONLY"));
  EXPECT_EQ(text_of(driver.insist("k", {"SET", "k", "3"})), "OK");
  EXPECT_EQ(text_of(b.command({"GET", "k"})), "3");
}

}  // namespace
}  // namespace delayq::net::redis
