#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <absl/container/flat_hash_set.h>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include "core/result.h"
#include "net/loop.h"
#include "net/redis/options.h"
#include "net/redis/request.h"
#include "net/stream.h"
#include "net/tls.h"
#include "resp/value.h"

namespace delayq::net::redis {

/// The expected server, and the login.
struct GreetingSettings {
  std::string user;
  std::string password;  ///< empty: no AUTH
  uint32_t database = 0;
  bool needs_master = false;
  Version oldest{};  ///< 0.0: any will do
};

/// The first commands of a client on a connection, and the checks of their replies. All are sent at once.
class Greeting {
 public:
  explicit Greeting(const GreetingSettings& settings);

  /// The commands, to be sent in this order.
  const std::vector<std::vector<std::string>>& commands() const { return commands_; }
  /// Checks the next reply. An error says why this connection cannot be used.
  Status hear(const resp::Value& reply);
  bool is_over() const { return heard_ == commands_.size(); }

 private:
  Status hear_version(const resp::Value& reply) const;

  Version oldest_;
  std::vector<std::vector<std::string>> commands_;
  size_t heard_ = 0;
};

struct ConnectionSettings {
  GreetingSettings greeting;
  std::shared_ptr<TlsClient> tls;  ///< null: none
  std::string server_name;         ///< in the server's certificate; empty: the host
  bool is_subscriber = false;      ///< for SUBSCRIBE and PING only
  Millis connect_timeout{};
  Millis reply_timeout{};
  Millis keep_alive{};
};

/// The events of a connection. They are called from inside the loop's turn.
class ConnectionEvents {
 public:
  virtual ~ConnectionEvents() = default;
  virtual void on_ready() = 0;
  virtual void on_reply(Request request, resp::Value reply) = 0;
  virtual void on_message(std::string_view channel, std::string_view message) = 0;
  /// It broke and cannot be used any more. The requests in `unanswered` may have been sent or not.
  virtual void on_broken(const Error& why, std::vector<Request> unanswered) = 0;
};

/// One connection to one server: it logs in, sends requests in order, those of a turn together, and matches
/// replies to them.
class Connection final : public AtTurnEnd, public std::enable_shared_from_this<Connection> {
 public:
  Connection(Loop& loop, const ConnectionSettings& settings, Address address, ConnectionEvents& events);

  void start();
  /// REQUIRES: is_ready(), or it is internal.
  void send(Request request);
  /// Closes it without calling `events`, which may then be destroyed. Unanswered requests are destroyed.
  void close();
  /// Closes it as if it had broken: `events` is called.
  void abandon(std::string why) {
    if (!is_closed()) fail(std::move(why));
  }
  bool is_ready() const { return state_ == State::kReady; }
  const Address& address() const { return address_; }
  size_t outstanding() const { return pending_.size(); }

  bool finish_turn() override;

 private:
  enum class State : uint8_t { kConnecting, kGreeting, kReady, kClosed };
  struct Pending {
    Request request;
    Loop::Steady sent_at;
  };
  using Endpoints = std::vector<boost::asio::ip::tcp::endpoint>;

  void resolve();
  void connect(const Endpoints& endpoints);
  void greet();
  void touch();
  void flush();
  void wait_for_input();
  void wait_for_room();
  void receive();
  /// Returns what recv() returned; the bytes are appended to input_.
  ssize_t receive_some();
  void take_replies();
  void handle(resp::Value reply);
  void hear_greeting(const resp::Value& reply);
  void check_time();
  void arm(Loop::Steady until);
  /// A possible reason for a connection that ends before the first reply; empty otherwise.
  std::string doubt() const;
  void fail(std::string why);
  void shut();
  bool is_closed() const { return state_ == State::kClosed; }

  Loop& loop_;
  const ConnectionSettings settings_;
  const Address address_;
  ConnectionEvents* events_;
  State state_ = State::kConnecting;
  Greeting greeting_;
  boost::asio::ip::tcp::resolver resolver_;
  boost::asio::ip::tcp::socket socket_;
  std::unique_ptr<Stream> stream_;
  boost::asio::steady_timer timer_;
  Loop::Steady armed_until_{};
  Loop::Steady last_received_{};
  std::deque<Pending> pending_;
  absl::flat_hash_set<const KnownScript*> sent_scripts_;  ///< the server has seen their source
  std::string output_;
  size_t sent_ = 0;  ///< of output_
  std::string input_;
  size_t filled_ = 0;       ///< of input_
  bool has_heard_ = false;  ///< a reply
  bool is_touched_ = false;
  bool waits_for_input_ = false;
  bool waits_for_room_ = false;
};

}  // namespace delayq::net::redis
