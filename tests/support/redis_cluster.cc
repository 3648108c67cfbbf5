#include "tests/support/redis_cluster.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>

namespace delayq::support {

namespace {

constexpr size_t kMasters = 3;
constexpr size_t kNodes = 2 * kMasters;
constexpr std::array<std::string_view, kMasters> kSlotsOf{"0-5461", "5462-10922", "10923-16383"};

}  // namespace

std::string RedisCluster::id_of(size_t index) { return std::string(39, 'c') + std::to_string(index); }

RedisCluster::RedisCluster(const std::vector<std::string>& arguments) {
  // Another process may have taken a port meanwhile.
  for (int attempt = 0; nodes_.empty(); ++attempt) {
    try {
      start(arguments);
    } catch (const std::runtime_error&) {
      if (attempt == 2) throw;
      nodes_.clear();
      bus_ports_.clear();
    }
  }
  wait_until_well();
}

void RedisCluster::start(const std::vector<std::string>& arguments) {
  for (size_t i = 0; i < kNodes; ++i) {
    nodes_.push_back(std::make_unique<RedisProcess>(RedisProcess::NotYet{}));
    bus_ports_.push_back(free_port());
  }
  for (size_t i = 0; i < kNodes; ++i) {
    write_file(i);
    std::vector<std::string> all = usual_redis_arguments();
    for (const std::string& word :
         {std::string("--cluster-enabled"), std::string("yes"), std::string("--cluster-port"),
          std::to_string(bus_ports_[i]), std::string("--cluster-node-timeout"), std::string("500"),
          std::string("--cluster-replica-validity-factor"), std::string("0")}) {
      all.push_back(word);
    }
    all.insert(all.end(), arguments.begin(), arguments.end());
    nodes_[i]->set_arguments(std::move(all));
    nodes_[i]->start();
  }
}

void RedisCluster::write_file(size_t index) const {
  // The file that a node writes itself once it knows the others, so that CLUSTER MEET is not needed.
  std::ofstream file(nodes_[index]->directory() / "nodes.conf");
  for (size_t i = 0; i < kNodes; ++i) {
    const bool is_master = i < kMasters;
    file << id_of(i) << " 127.0.0.1:" << nodes_[i]->port() << "@" << bus_ports_[i] << " "
         << (i == index ? "myself," : "") << (is_master ? "master -" : "slave " + id_of(i - kMasters))
         << " 0 0 " << i % kMasters + 1 << " connected";
    if (is_master) file << " " << kSlotsOf[i];
    file << "\n";
  }
  file << "vars currentEpoch " << kMasters << " lastVoteEpoch 0\n";
}

std::vector<uint16_t> RedisCluster::ports() const {
  std::vector<uint16_t> ports;
  for (const auto& node : nodes_) ports.push_back(node->port());
  return ports;
}

size_t RedisCluster::owner_of(uint16_t slot) {
  for (const auto& node : nodes_) {
    if (!node->is_running()) continue;
    for (const resp::Value& row : node->command({"CLUSTER", "SLOTS"}).items) {
      if (row.items[0].integer > slot || row.items[1].integer < slot) continue;
      for (size_t i = 0; i < nodes_.size(); ++i) {
        if (nodes_[i]->port() == row.items[2].items[1].integer) return i;
      }
    }
  }
  throw std::runtime_error("no node has the slot");
}

void RedisCluster::wait_until_well() {
  for (const auto& node : nodes_) {
    if (!node->is_running()) continue;
    wait_until("the cluster is well", [&] {
      const std::string state = node->command({"CLUSTER", "INFO"}).text;
      const std::string links = node->command({"INFO", "replication"}).text;
      const bool is_synced = links.find("role:master") != std::string::npos ||
                             links.find("master_link_status:up") != std::string::npos;
      return is_synced && state.find("cluster_state:ok") != std::string::npos &&
             state.find("cluster_slots_ok:16384") != std::string::npos;
    });
  }
}

void RedisCluster::wait_until_agreed() {
  // For each node: its id, its configuration epoch and its slots, as one node sees them.
  const auto view_of = [](RedisProcess& node) {
    std::map<std::string, std::string> view;
    std::istringstream lines(node.command({"CLUSTER", "NODES"}).text);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string id;
      std::string skipped;
      std::string epoch;
      std::string slots;
      words >> id >> skipped >> skipped >> skipped >> skipped >> skipped >> epoch >> skipped;
      std::getline(words, slots);
      view[id] = epoch + slots;
    }
    return view;
  };
  wait_until("all nodes know the same", [&] {
    return std::all_of(nodes_.begin() + 1, nodes_.begin() + kMasters,
                       [&](const auto& node) { return view_of(*node) == view_of(*nodes_[0]); });
  });
}

}  // namespace delayq::support
