#include "net/asio_socket.h"

#include <utility>

#include <fmt/format.h>

namespace delayq::net {

using boost::asio::ip::tcp;
using boost::system::error_code;

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
  if (unknown) return {};
  const std::string address = end.address().to_string();
  return end.address().is_v6() ? fmt::format("[{}]:{}", address, end.port())
                               : fmt::format("{}:{}", address, end.port());
}

}  // namespace delayq::net
