#include "net/listener.h"

#include <chrono>
#include <memory>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <fmt/format.h>

namespace delayq::net {

namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;

/// How long to wait when there are no descriptors left: an attempt at once would fail again.
constexpr std::chrono::milliseconds kPause{100};

error_code bind_to(tcp::acceptor& acceptor, const std::string& host, uint16_t port) {
  error_code problem;
  tcp::resolver resolver(acceptor.get_executor());
  const auto found = resolver.resolve(host, std::to_string(port),
                                      tcp::resolver::passive | tcp::resolver::numeric_service, problem);
  if (problem) return problem;
  const tcp::endpoint endpoint = found.begin()->endpoint();
  acceptor.open(endpoint.protocol(), problem);
  if (!problem) acceptor.set_option(tcp::acceptor::reuse_address(true), problem);
  if (!problem) acceptor.bind(endpoint, problem);
  return problem;
}

/// What an operator can do about it.
std::string_view advice_for(const error_code& problem) {
  if (problem == boost::asio::error::address_in_use)
    return "; another program listens there, perhaps another delayq: stop it, or choose another port";
  if (problem == boost::asio::error::access_denied)
    return "; ports below 1024 need root or CAP_NET_BIND_SERVICE: choose another port";
  if (problem == boost::system::errc::address_not_available)
    return "; this machine has no such address: use one of its own, or 127.0.0.1";
  if (problem.category() == boost::asio::error::get_netdb_category())
    return "; the host name cannot be resolved: use an address of this machine, for example 127.0.0.1:9277";
  return {};
}

Error failure(const std::string& host, uint16_t port, const error_code& problem) {
  return {ErrorCode::kUnavailable,
          "listen",
          fmt::format("{}:{}: {}{}", host, port, problem.message(), advice_for(problem)),
          {}};
}

/// "127.0.0.1:9278", "[::1]:9278".
std::string text_of(const tcp::endpoint& end) {
  const std::string address = end.address().to_string();
  return end.address().is_v6() ? fmt::format("[{}]:{}", address, end.port())
                               : fmt::format("{}:{}", address, end.port());
}

/// A TCP socket on a loop, for one session.
class AsioSocket final : public Socket {
 public:
  AsioSocket(Loop& loop, tcp::socket socket);

  /// Sets the session to call. Call this once, before any wait.
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

  tcp::socket socket_;
  boost::asio::steady_timer timer_;
  Session* session_ = nullptr;
};

AsioSocket::AsioSocket(Loop& loop, tcp::socket socket) : socket_(std::move(socket)), timer_(loop.context()) {
  error_code ignored;
  socket_.set_option(tcp::no_delay(true), ignored);
  socket_.non_blocking(true, ignored);
}

void AsioSocket::wait_for_input() {
  socket_.async_wait(tcp::socket::wait_read, [session = session()](const error_code& problem) {
    if (problem) return session->close();
    session->on_input();
  });
}

void AsioSocket::wait_for_room() {
  socket_.async_wait(tcp::socket::wait_write, [session = session()](const error_code& problem) {
    if (problem) return session->close();
    session->on_room();
  });
}

void AsioSocket::set_alarm(Steady at) {
  timer_.expires_at(at);
  timer_.async_wait([session = session()](const error_code& problem) {
    if (!problem) session->on_alarm();
  });
}

void AsioSocket::end_output() {
  error_code ignored;
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
}

void AsioSocket::close() {
  timer_.cancel();
  error_code ignored;
  socket_.close(ignored);
}

std::string AsioSocket::peer() const {
  error_code unknown;
  const tcp::endpoint end = socket_.remote_endpoint(unknown);
  return unknown ? std::string() : text_of(end);
}

}  // namespace

Listener::Listener(Loop& loop, Options options, MakeProtocol make)
    : loop_(loop),
      options_(std::move(options)),
      make_(std::move(make)),
      acceptor_(loop.context()),
      pause_(loop.context()) {}

Result<std::unique_ptr<Listener>> Listener::open(Loop& loop, Options options, MakeProtocol make) {
  auto listener = std::make_unique<Listener>(loop, std::move(options), std::move(make));
  if (Status status = listener->listen(); !status.ok()) return status.error();
  return listener;
}

Status Listener::check(const std::string& host, uint16_t port) {
  boost::asio::io_context context;
  tcp::acceptor acceptor(context);
  const error_code problem = bind_to(acceptor, host, port);
  if (!problem || problem == boost::asio::error::address_in_use) return {};
  return failure(host, port, problem);
}

Status Listener::listen() {
  error_code problem = bind_to(acceptor_, options_.host, options_.port);
  if (!problem) acceptor_.listen(4096, problem);
  if (!problem) acceptor_.non_blocking(true, problem);
  if (problem) return failure(options_.host, options_.port, problem);
  accept();
  return {};
}

void Listener::accept() {
  acceptor_.async_accept([this](const error_code& problem, tcp::socket socket) {
    if (problem == boost::asio::error::operation_aborted) return;
    if (problem) {
      pause_.expires_after(kPause);
      pause_.async_wait([this](const error_code& stopped) {
        if (!stopped) accept();
      });
      return;
    }
    const bool has_room = loop_.sessions().size() < options_.max_sessions || loop_.sessions().drop_stranger();
    has_room ? start_session(std::move(socket)) : refuse(std::move(socket));
    accept();
  });
}

void Listener::start_session(tcp::socket socket) {
  const int handle = socket.native_handle();
  std::unique_ptr<Stream> stream =
      options_.tls != nullptr ? options_.tls->accept(handle) : std::make_unique<PlainStream>(handle);
  auto edge = std::make_unique<AsioSocket>(loop_, std::move(socket));
  AsioSocket& waits = *edge;
  const auto session =
      std::make_shared<Session>(loop_.sessions(), std::move(edge), std::move(stream), options_.session);
  waits.serve(*session);
  session->start(make_);
}

void Listener::refuse(tcp::socket socket) {
  ++refused_;
  error_code ignored;
  socket.non_blocking(true, ignored);
  if (options_.tls == nullptr) socket.write_some(boost::asio::buffer(options_.refusal), ignored);
}

std::string Listener::address() const {
  error_code ignored;
  return text_of(acceptor_.local_endpoint(ignored));
}

uint16_t Listener::port() const {
  error_code ignored;
  return acceptor_.local_endpoint(ignored).port();
}

void Listener::close() {
  error_code ignored;
  acceptor_.close(ignored);
  pause_.cancel();
}

}  // namespace delayq::net
