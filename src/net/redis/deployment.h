#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/result.h"
#include "net/redis/link.h"
#include "net/redis/options.h"
#include "net/redis/sentinel_watch.h"
#include "net/redis/slot.h"
#include "resp/value.h"

namespace delayq::net::redis {

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

/// Slots of a cluster that one master has.
struct SlotRange {
  uint16_t first = 0;
  uint16_t last = 0;  ///< included
  Address master;

  bool operator==(const SlotRange&) const = default;
};

/// Reads the reply to CLUSTER SLOTS that `asked` gave. A node that does not know its own name leaves it out:
/// then it is the one by which it was asked.
Result<std::vector<SlotRange>> slot_ranges(const resp::Value& reply, const Address& asked);

/// Many masters, each with some of the slots. Linked are all masters, and the nodes that the options name:
/// these are asked for the way when all masters that were known are gone.
class Cluster final : public Deployment {
 public:
  Cluster(LinkFactory& factory, const ClientOptions& options, LinkEvents& links, DeploymentEvents& events);

  void start() override;
  Link* link_for(std::optional<uint16_t> slot) override;
  Link* link_at(const Address& address, uint16_t slot) override;
  bool on_moved(uint16_t slot, const Address& to) override;
  /// A former master, which says so by MOVED as well.
  void on_replica(Link&) override { refresh(); }
  void on_cluster_down() override { refresh(); }
  void on_ready(Link& link) override;
  void on_down(Link& link) override;
  bool is_connected() const override;
  std::vector<Address> places() const override;

 private:
  struct Node {
    std::vector<std::unique_ptr<Link>> links;
    bool is_seed = false;
    bool is_master = false;
  };

  Node& node_at(const Address& address);
  Link* any_ready_link();
  /// Asks a node that answers for the map, unless that is on its way.
  void refresh();
  void refresh_later();
  void hear(const resp::Value& reply, const Address& asked);
  void adopt(const std::vector<SlotRange>& ranges);
  void drop_useless_nodes();

  LinkFactory& factory_;
  const ClientOptions& options_;
  LinkEvents& links_;
  DeploymentEvents& events_;
  std::map<Address, std::unique_ptr<Node>> nodes_;
  /// Nodes of no use any more: they go with the next map, when nothing of theirs is on the stack.
  std::vector<std::unique_ptr<Node>> retired_;
  std::array<Node*, kSlots> owners_{};
  Timer next_;
  size_t turn_ = 0;  ///< whom to ask next
  bool is_refreshing_ = false;
  bool is_covered_ = false;  ///< every slot has an owner
};

}  // namespace delayq::net::redis
