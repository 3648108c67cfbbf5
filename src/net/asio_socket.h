#pragma once

#include <memory>
#include <string>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include "net/loop.h"
#include "net/session.h"
#include "net/socket.h"

namespace delayq::net {

/// A TCP socket on a loop, for one session.
class AsioSocket final : public Socket {
 public:
  AsioSocket(Loop& loop, boost::asio::ip::tcp::socket socket);

  /// Whom to call. To be said once, before anything is waited for.
  void serve(Session& session) { session_ = &session; }

  void wait_for_input() override;
  void wait_for_room() override;
  void set_alarm(Steady at) override;
  void end_output() override;
  void close() override;
  std::string peer() const override;
  Steady now() const override { return Loop::steady_now(); }

 private:
  /// A wait keeps its session alive.
  std::shared_ptr<Session> session() { return session_->shared_from_this(); }

  boost::asio::ip::tcp::socket socket_;
  boost::asio::steady_timer timer_;
  Session* session_ = nullptr;
};

}  // namespace delayq::net
