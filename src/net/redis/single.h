#pragma once

#include <memory>
#include <vector>

#include "net/redis/deployment.h"
#include "net/redis/sentinel_watch.h"

namespace delayq::net::redis {

/// One master has all: a server by itself, or the one that the sentinels name.
class Single final : public Deployment, private SentinelEvents {
 public:
  Single(LinkFactory& factory, const ClientOptions& options, LinkEvents& links, DeploymentEvents& events);

  void start() override;
  Link* link_for(std::optional<uint16_t> slot) override;
  Link* link_at(const Address& address, uint16_t slot) override;
  bool on_moved(uint16_t, const Address&) override { return false; }
  void on_replica(Link& link) override;
  void on_cluster_down() override {}
  void on_ready(Link& link) override;
  void on_down(Link& link) override;
  bool is_connected() const override;
  std::vector<Address> places() const override;

 private:
  void on_master(const Address& master) override;
  void on_sentinel_trouble(const Error& why) override;

  const ClientOptions& options_;
  DeploymentEvents& events_;
  std::vector<std::unique_ptr<Link>> links_;
  std::unique_ptr<SentinelWatch> sentinels_;
};

}  // namespace delayq::net::redis
