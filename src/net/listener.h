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
    /// Above this number a new client replaces one that sent no request or did not authenticate;
    size_t max_sessions = 20'000;
    std::string refusal;  ///< if there is none, the new client is sent this text and closed
    SessionLimits session;
    std::shared_ptr<const TlsContext> tls{};  ///< null: connections are not encrypted
  };

  static Result<std::unique_ptr<Listener>> open(Loop& loop, Options options, MakeProtocol make);
  /// Returns the error that open() would fail with, without accepting connections. A port that is in use is
  /// not an error: it may belong to the server that will be replaced.
  static Status check(const std::string& host, uint16_t port);
  Listener(Loop& loop, Options options, MakeProtocol make);

  /// "127.0.0.1:9278", with the actual port.
  std::string address() const;
  uint16_t port() const;
  /// Replaces the certificates, for new connections.
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
