#include "net/listener.h"

#include <chrono>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <fmt/format.h>

#include "net/asio_socket.h"

namespace delayq::net {

namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;

/// Out of descriptors: trying again at once would only burn the processor.
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
    return "; ports below 1024 are for root or who has CAP_NET_BIND_SERVICE: choose another port";
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
  const tcp::endpoint endpoint = acceptor_.local_endpoint(ignored);
  return endpoint.address().is_v6() ? fmt::format("[{}]:{}", endpoint.address().to_string(), endpoint.port())
                                    : fmt::format("{}:{}", endpoint.address().to_string(), endpoint.port());
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
