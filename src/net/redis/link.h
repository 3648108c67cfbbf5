#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <boost/asio/steady_timer.hpp>

#include "core/random.h"
#include "net/loop.h"
#include "net/redis/connection.h"

namespace delayq::net::redis {

/// Calls a function once, at a given moment. If it is set again, cancelled or destroyed before that, the
/// function is not called, even when the call is already scheduled.
class Timer {
 public:
  explicit Timer(Loop& loop) : timer_(loop.context()) {}
  ~Timer() { cancel(); }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  void set(Loop::Steady at, std::function<void()> then) {
    cancel();
    is_set_ = std::make_shared<bool>(true);
    at_ = at;
    timer_.expires_at(at);
    timer_.async_wait([is_set = is_set_, then = std::move(then)](const boost::system::error_code& problem) {
      if (problem || !std::exchange(*is_set, false)) return;
      then();
    });
  }
  void set_after(Millis delay, std::function<void()> then) {
    set(Loop::steady_now() + delay, std::move(then));
  }
  void cancel() {
    if (is_set_ == nullptr) return;
    *is_set_ = false;
    is_set_.reset();
    timer_.cancel();
  }
  bool is_set() const { return is_set_ != nullptr && *is_set_; }
  Loop::Steady at() const { return at_; }

 private:
  boost::asio::steady_timer timer_;
  std::shared_ptr<bool> is_set_;
  Loop::Steady at_{};
};

class Link;

/// What a link reports to its owner, from inside the loop's turn. The owner may close the link meanwhile, but
/// not destroy it.
class LinkEvents {
 public:
  virtual ~LinkEvents() = default;
  virtual void on_ready(Link& link) = 0;
  virtual void on_reply(Link& link, Request request, resp::Value reply) = 0;
  virtual void on_message(std::string_view channel, std::string_view message) = 0;
  /// There is no connection: it broke, or could not be made. The link tries again by itself.
  virtual void on_down(Link& link, const Error& why, std::vector<Request> unanswered) = 0;
};

struct BackoffSettings {
  Millis base{};
  Millis cap{};
};

/// How long to wait before attempt `failures` + 1: evenly from zero to base * 2^(failures - 1), at most the
/// cap. `random` is any 64 random bits. REQUIRES: failures > 0.
Millis reconnect_delay(const BackoffSettings& settings, int failures, uint64_t random);

/// A connection that is opened again whenever it is lost.
class Link final : private ConnectionEvents {
 public:
  Link(Loop& loop, ConnectionSettings settings, BackoffSettings backoff, uint64_t seed, LinkEvents& events);
  ~Link() override;
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  /// Connects to the first of `places` now; when that fails, to the next. A connection to another place is
  /// dropped, and its requests are answered by on_down().
  void go_to(std::vector<Address> places);
  /// The same, but stays where it is when that is one of `places`.
  void stay_at(std::vector<Address> places);
  /// REQUIRES: is_ready().
  void send(Request request) { connection_->send(std::move(request)); }
  bool is_ready() const { return connection_ != nullptr && connection_->is_ready(); }
  /// Drops the connection as if it had broken: the other end is not the expected server.
  void drop(std::string why);
  /// The address that it is connected to, or tries to connect to; null before go_to() was called.
  const Address* address() const { return places_.empty() ? nullptr : &places_[place_]; }
  size_t outstanding() const { return connection_ == nullptr ? 0 : connection_->outstanding(); }
  /// How often it became ready.
  uint64_t times_ready() const { return times_ready_; }

 private:
  void on_ready() override;
  void on_reply(Request request, resp::Value reply) override;
  void on_message(std::string_view channel, std::string_view message) override;
  void on_broken(const Error& why, std::vector<Request> unanswered) override;
  void connect();
  void retry_later();

  Loop& loop_;
  ConnectionSettings settings_;
  BackoffSettings backoff_;
  Random random_;
  LinkEvents& events_;
  std::vector<Address> places_;
  size_t place_ = 0;
  std::shared_ptr<Connection> connection_;
  Timer retry_;
  int failures_ = 0;
  uint64_t times_ready_ = 0;
};

/// Makes the links of a client: the same settings, each with its own random seed.
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

}  // namespace delayq::net::redis
