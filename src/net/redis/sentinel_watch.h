#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net/redis/link.h"

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

}  // namespace delayq::net::redis
