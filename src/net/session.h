#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include "net/loop.h"
#include "net/protocol.h"
#include "net/stream.h"

namespace delayq::net {

struct SessionLimits {
  /// A client that does not take its replies is read no further above this,
  size_t output_bytes = 1 << 20;
  /// and dropped when it took nothing for this long.
  std::chrono::seconds stall = std::chrono::seconds{30};
  /// A request that has begun must come within this, and a second more for each `bytes_per_second`.
  std::chrono::milliseconds request = std::chrono::seconds{20};
  size_t bytes_per_second = 16 * 1024;
  /// Input that is kept while the protocol wants none.
  size_t waiting_input_bytes = 64 * 1024;
};

/// One accepted connection and the protocol spoken over it.
class Session final : public Connection, public AtTurnEnd, public std::enable_shared_from_this<Session> {
 public:
  Session(Loop& loop, boost::asio::ip::tcp::socket socket, std::unique_ptr<Stream> stream,
          SessionLimits limits);

  void start(const MakeProtocol& make);
  /// Sends and reads what was held up in this turn. Answers whether it read something.
  bool finish_turn() override;
  void on_output() override { touch(); }
  void on_resume() override { touch(); }
  std::string_view peer() const override;
  size_t unsent() const override { return output_.size() - sent_; }

 private:
  void touch();
  void wait_for_input();
  void wait_for_room();
  void receive();
  /// Reads behind what is there already. Answers what recv() does.
  ssize_t receive_behind(std::string_view& came);
  void end_input();
  /// What is left of the input; may be the end of input_ itself.
  void keep(std::string_view rest);
  /// Gives the protocol what has come. Answers whether it took any of it.
  bool pass_on();
  bool may_read() const;
  void send();
  void watch_for_stall();
  void watch_request();
  void check_request();
  /// Lets the other side read why, when it is still sending: a socket that is closed on unread input takes
  /// back what was sent last.
  void close_gently();
  void close();

  Loop& loop_;
  boost::asio::ip::tcp::socket socket_;
  SessionLimits limits_;
  std::unique_ptr<Stream> stream_;
  std::shared_ptr<Protocol> protocol_;
  std::string input_;  ///< came, and not yet taken
  std::string output_;
  size_t sent_ = 0;  ///< of output_
  boost::asio::steady_timer stall_timer_;
  uint64_t total_sent_ = 0;
  /// A request of which a part has come.
  struct Begun {
    Loop::Steady at;
    uint64_t number = 0;           ///< of requests before it
    uint64_t received_before = 0;  ///< bytes
    boost::asio::steady_timer timer;
  };
  std::unique_ptr<Begun> begun_;
  uint64_t total_received_ = 0;
  mutable std::string peer_;  ///< once somebody asked
  bool is_touched_ = false;
  bool waits_for_input_ = false;
  bool waits_for_room_ = false;
  bool watches_stall_ = false;
  bool ends_input_ = false;  ///< the end has come, behind input that is not read yet
  bool input_ended_ = false;
  bool is_closing_ = false;
  bool is_closed_ = false;
};

}  // namespace delayq::net
