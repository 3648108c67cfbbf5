#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include "core/result.h"
#include "net/loop.h"
#include "net/session.h"
#include "net/tls.h"

namespace delayq::net {

/// Accepts connections at one address and starts a Session on each.
class Listener {
 public:
  struct Options {
    std::string host;
    uint16_t port = 0;  ///< 0: any free one
    /// One more takes the place of a client that never said who it is, if there is one,
    size_t max_sessions = 20'000;
    std::string refusal;  ///< and else gets this to read and is closed
    SessionLimits session;
    std::shared_ptr<const TlsContext> tls{};  ///< none: as it is
  };

  static Result<std::unique_ptr<Listener>> open(Loop& loop, Options options, MakeProtocol make);
  /// What would keep open() from listening there, without accepting anybody. A port that is taken at the
  /// moment is not told: whoever has it may be the server that is to be replaced.
  static Status check(const std::string& host, uint16_t port);
  Listener(Loop& loop, Options options, MakeProtocol make);

  /// "127.0.0.1:9278": with the port that it really has.
  std::string address() const;
  uint16_t port() const;
  /// Other certificates, for connections that come from now on.
  void set_tls(std::shared_ptr<const TlsContext> tls) { options_.tls = std::move(tls); }
  uint64_t refused() const { return refused_; }
  void close();

 private:
  Status listen();
  void accept();
  void start_session(boost::asio::ip::tcp::socket socket);
  void refuse(boost::asio::ip::tcp::socket socket);

  Loop& loop_;
  Options options_;
  MakeProtocol make_;
  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::steady_timer pause_;
  uint64_t refused_ = 0;
};

}  // namespace delayq::net
