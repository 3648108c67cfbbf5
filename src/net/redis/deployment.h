#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "net/redis/client.h"
#include "net/redis/link.h"
#include "net/redis/options.h"
#include "resp/value.h"

namespace delayq::net::redis {

/// One subscription.
struct Channel {
  std::string name;
  std::function<void(std::string_view)> heard;
  std::function<void()> listening;
};

/// Shared with the messages that have arrived and are not handed out yet.
using SharedChannel = std::shared_ptr<const Channel>;

class SubscriberEvents {
 public:
  virtual ~SubscriberEvents() = default;
  virtual void on_heard(const SharedChannel& channel, std::string_view message) = 0;
  virtual void on_listening(const SharedChannel& channel) = 0;
  /// There is no connection, or the server does not let us listen.
  virtual void on_deaf(const Error& why) = 0;
};

/// Subscriptions. They have a connection of their own, which is opened with the first one.
class Subscriber final : private LinkEvents {
 public:
  Subscriber(LinkFactory& factory, SubscriberEvents& events) : factory_(factory), events_(events) {}

  void add(Channel channel);
  /// Sets the nodes at which it can listen. The current connection is kept if it is to one of them.
  void listen_at(std::vector<Address> places);

 private:
  void on_ready(Link& link) override;
  void on_reply(Link&, Request, resp::Value) override {}
  void on_message(std::string_view channel, std::string_view message) override;
  void on_down(Link&, const Error& why, std::vector<Request>) override { events_.on_deaf(why); }
  void subscribe(const SharedChannel& channel);
  void go();

  LinkFactory& factory_;
  SubscriberEvents& events_;
  std::vector<SharedChannel> channels_;
  std::vector<Address> places_;
  std::unique_ptr<Link> link_;
};

class SentinelEvents {
 public:
  virtual ~SentinelEvents() = default;
  /// A sentinel names the master; it may be the same as before.
  virtual void on_master(const Address& master) = 0;
  virtual void on_sentinel_trouble(const Error& why) = 0;
};

/// Asks Sentinels for the address of the master: at the start, when one of them announces a new master, when
/// the master is lost, and now and then in case an announcement was missed. Asks one Sentinel at a time; when
/// it fails, the next.
class SentinelWatch final : private LinkEvents {
 public:
  SentinelWatch(LinkFactory& factory, std::vector<Address> sentinels, std::string master_name,
                SentinelEvents& events);

  void start();
  /// The master is lost or is not a master: asks now, and often until calm() is called.
  void look();
  void calm() { is_urgent_ = false; }

 private:
  void on_ready(Link& link) override;
  void on_reply(Link& link, Request request, resp::Value reply) override;
  void on_message(std::string_view channel, std::string_view message) override;
  void on_down(Link& link, const Error& why, std::vector<Request> unanswered) override;
  void ask();
  void hear(const Result<resp::Value>& answer);
  void ask_later();

  std::vector<Address> sentinels_;
  std::string master_name_;
  SentinelEvents& events_;
  std::unique_ptr<Link> asking_;
  std::unique_ptr<Link> listening_;
  Timer next_;
  bool is_asking_ = false;
  bool is_urgent_ = true;
};

/// What a deployment reports to the client.
class DeploymentEvents {
 public:
  virtual ~DeploymentEvents() = default;
  /// Requests that wait for a link may find one now.
  virtual void on_change() = 0;
  /// Something that is not a node's link went wrong.
  virtual void on_trouble(const Error& why) = 0;
};

/// Knows the nodes and which keys each has. Owns the links to them; a link's events go to the client, which
/// forwards them to the deployment.
class Deployment {
 public:
  virtual ~Deployment() = default;

  virtual void start() = 0;
  /// The link for a slot, or for anything; null when no node is known to have it. It may not be ready.
  virtual Link* link_for(std::optional<uint16_t> slot) = 0;
  /// The link to a node that another one has named.
  virtual Link* link_at(const Address& address, uint16_t slot) = 0;
  /// A node replied that another one has the slot. Returns false if this deployment has no slots.
  virtual bool on_moved(uint16_t slot, const Address& to) = 0;
  /// A node replied that it is a replica.
  virtual void on_replica(Link& link) = 0;
  /// A node replied that it cannot serve the slot.
  virtual void on_cluster_down() = 0;
  virtual void on_ready(Link& link) = 0;
  virtual void on_down(Link& link) = 0;
  virtual bool is_connected() const = 0;
  /// The nodes at which a client can SUBSCRIBE; empty: not known yet.
  virtual std::vector<Address> places() const = 0;
};

/// One master has all keys: a single server, or the one that the sentinels name.
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

/// Reads the reply of `asked` to CLUSTER SLOTS. A node that does not know its own host leaves it out; then it
/// is that of `asked`.
Result<std::vector<SlotRange>> slot_ranges(const resp::Value& reply, const Address& asked);

/// Many masters, each with some of the slots. Has links to all masters and to the nodes of the options, which
/// are asked for the map of slots when all known masters are gone.
class Cluster final : public Deployment {
 public:
  Cluster(LinkFactory& factory, const ClientOptions& options, LinkEvents& links, DeploymentEvents& events);

  void start() override;
  Link* link_for(std::optional<uint16_t> slot) override;
  Link* link_at(const Address& address, uint16_t slot) override;
  bool on_moved(uint16_t slot, const Address& to) override;
  /// A former master, which also replies MOVED.
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
  /// Asks a connected node for the map of slots, unless a reply is outstanding.
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
  /// Nodes that are not used any more. They are destroyed with the next map, when none of their functions is
  /// on the stack.
  std::vector<std::unique_ptr<Node>> retired_;
  std::array<Node*, kSlots> owners_{};
  Timer next_;
  size_t turn_ = 0;  ///< the node to ask next
  bool is_refreshing_ = false;
  bool is_covered_ = false;  ///< every slot has an owner
};

}  // namespace delayq::net::redis
