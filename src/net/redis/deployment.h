#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "net/redis/link.h"

namespace delayq::net::redis {

/// Makes the links of a client: the same settings, each with its own randomness.
class LinkFactory {
 public:
  LinkFactory(Loop& loop, const ClientOptions& options, std::shared_ptr<TlsClient> tls);

  /// To a node that has data.
  std::unique_ptr<Link> to_node(bool needs_master, LinkEvents& events);
  /// For SUBSCRIBE, to such a node.
  std::unique_ptr<Link> to_listen(LinkEvents& events);
  std::unique_ptr<Link> to_sentinel(bool to_listen, LinkEvents& events);
  Loop& loop() const { return loop_; }

 private:
  ConnectionSettings common() const;
  std::unique_ptr<Link> make(ConnectionSettings settings, LinkEvents& events);

  Loop& loop_;
  const ClientOptions& options_;
  std::shared_ptr<TlsClient> tls_;
  Random random_;
};

/// What a deployment tells the client.
class DeploymentEvents {
 public:
  virtual ~DeploymentEvents() = default;
  /// Requests that wait for a link may find one now.
  virtual void on_change() = 0;
  /// Something that is not a node's link went wrong.
  virtual void on_trouble(const Error& why) = 0;
};

/// Which nodes there are, and which of them has what. Owns the links to them; a link's events go to the
/// client, which tells the deployment.
class Deployment {
 public:
  virtual ~Deployment() = default;

  virtual void start() = 0;
  /// The link for a slot, or for anything; null when no node is known to have it. It may not be ready.
  virtual Link* link_for(std::optional<uint16_t> slot) = 0;
  /// The link to a node that another one has named.
  virtual Link* link_at(const Address& address, uint16_t slot) = 0;
  /// A node says that another one has the slot. False: there are no slots here.
  virtual bool on_moved(uint16_t slot, const Address& to) = 0;
  /// A node says that it is a replica.
  virtual void on_replica(Link& link) = 0;
  /// A node says that it cannot serve the slot.
  virtual void on_cluster_down() = 0;
  virtual void on_ready(Link& link) = 0;
  virtual void on_down(Link& link) = 0;
  virtual bool is_connected() const = 0;
  /// Where one can SUBSCRIBE; empty: not known yet.
  virtual std::vector<Address> places() const = 0;
};

}  // namespace delayq::net::redis
