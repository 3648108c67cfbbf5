#include "tests/support/redis_sentinels.h"

#include <fstream>
#include <stdexcept>

namespace delayq::support {

namespace {

constexpr size_t kServers = 3;
constexpr size_t kSentinels = 3;
constexpr std::string_view kFile = "sentinel.conf";

std::string sentinel_id(size_t index) { return std::string(39, 'a') + std::to_string(index); }

/// The value of a key in a reply that is a list of keys and values.
std::string field(const resp::Value& reply, std::string_view key) {
  const resp::Value* const value = reply.find(key);
  return value == nullptr ? std::string() : value->text;
}

}  // namespace

RedisSentinels::RedisSentinels(const std::vector<std::string>& arguments) {
  for (size_t i = 0; i < kServers; ++i) {
    servers_.push_back(std::make_unique<RedisProcess>(arguments));
    if (i > 0) servers_[i]->command({"REPLICAOF", "127.0.0.1", std::to_string(servers_[0]->port())});
  }
  wait_for_replicas(*servers_[0], kServers - 1);
  for (size_t i = 0; i < kSentinels; ++i)
    sentinels_.push_back(std::make_unique<RedisProcess>(RedisProcess::NotYet{}));
  for (size_t i = 0; i < kSentinels; ++i) {
    write_file(i);
    sentinels_[i]->set_arguments({(sentinels_[i]->directory() / kFile).string(), "--sentinel"});
    sentinels_[i]->start();
  }
  for (const auto& sentinel : sentinels_) {
    wait_until("the sentinels know all", [&] {
      const resp::Value master = sentinel->command({"SENTINEL", "MASTER", kMasterName});
      return field(master, "flags") == "master" && field(master, "num-slaves") == "2" &&
             field(master, "num-other-sentinels") == "2" &&
             !sentinel->command({"SENTINEL", "CKQUORUM", kMasterName}).is_error();
    });
  }
}

void RedisSentinels::write_file(size_t index) const {
  std::ofstream file(sentinels_[index]->directory() / kFile);
  // Written here, because sentinels need some seconds to find this out from each other.
  file << "bind 127.0.0.1\n"
       << "sentinel myid " << sentinel_id(index) << "\n"
       << "sentinel monitor " << kMasterName << " 127.0.0.1 " << servers_[0]->port() << " 2\n"
       << "sentinel down-after-milliseconds " << kMasterName << " 500\n"
       << "sentinel failover-timeout " << kMasterName << " 3000\n";
  for (size_t i = 1; i < kServers; ++i)
    file << "sentinel known-replica " << kMasterName << " 127.0.0.1 " << servers_[i]->port() << "\n";
  for (size_t i = 0; i < kSentinels; ++i) {
    if (i == index) continue;
    file << "sentinel known-sentinel " << kMasterName << " 127.0.0.1 " << sentinels_[i]->port() << " "
         << sentinel_id(i) << "\n";
  }
}

std::vector<uint16_t> RedisSentinels::sentinel_ports() const {
  std::vector<uint16_t> ports;
  for (const auto& sentinel : sentinels_) ports.push_back(sentinel->port());
  return ports;
}

RedisProcess& RedisSentinels::master() {
  for (const auto& sentinel : sentinels_) {
    if (!sentinel->is_running()) continue;
    const resp::Value named = sentinel->command({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", kMasterName});
    for (const auto& server : servers_) {
      if (named.items.size() == 2 && named.items[1].text == std::to_string(server->port())) return *server;
    }
  }
  throw std::runtime_error("no sentinel names a master");
}

void RedisSentinels::wait_for_replicas(RedisProcess& master, int count) {
  // WAIT applies to the writes of its own connection, so this write comes after those of all others.
  master.command({"SET", "mark", "1"});
  master.command({"DEL", "mark"});
  wait_until("the replicas have all", [&] {
    return master.command({"WAIT", std::to_string(count), "100"}).integer >= count;
  });
}

}  // namespace delayq::support
