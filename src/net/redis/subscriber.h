#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net/redis/deployment.h"

namespace delayq::net::redis {

/// One subscription.
struct Channel {
  std::string name;
  std::function<void(std::string_view)> heard;
  std::function<void()> listening;
};

/// Shared with the messages that have come and are not handed out yet.
using SharedChannel = std::shared_ptr<const Channel>;

class SubscriberEvents {
 public:
  virtual ~SubscriberEvents() = default;
  virtual void on_heard(const SharedChannel& channel, std::string_view message) = 0;
  virtual void on_listening(const SharedChannel& channel) = 0;
  /// There is no connection, or the server does not let us listen.
  virtual void on_deaf(const Error& why) = 0;
};

/// Subscriptions, on a connection of their own, which is made when there is one.
class Subscriber final : private LinkEvents {
 public:
  Subscriber(LinkFactory& factory, SubscriberEvents& events) : factory_(factory), events_(events) {}

  void add(Channel channel);
  /// Where it can listen. It stays where it is when that is one of them.
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

}  // namespace delayq::net::redis
