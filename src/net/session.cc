#include "net/session.h"

#include <algorithm>
#include <cerrno>
#include <sys/socket.h>
#include <utility>

#include <fmt/format.h>

namespace delayq::net {

namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;

/// A buffer that was large once is given back when it is empty.
constexpr size_t kKeptCapacity = 64 * 1024;

void clear(std::string& buffer) {
  if (buffer.capacity() > kKeptCapacity) {
    std::string().swap(buffer);
  } else {
    buffer.clear();
  }
}

bool is_temporary(int error) { return error == EAGAIN || error == EINTR; }

/// How long a client that is still sending has to read why it was refused.
constexpr std::chrono::seconds kGoodbye{2};

}  // namespace

Session::Session(Loop& loop, tcp::socket socket, std::unique_ptr<Stream> stream, SessionLimits limits)
    : loop_(loop),
      socket_(std::move(socket)),
      limits_(limits),
      stream_(std::move(stream)),
      stall_timer_(loop.context()) {}

void Session::start(const MakeProtocol& make) {
  loop_.sessions_.insert(shared_from_this());
  error_code ignored;
  socket_.set_option(tcp::no_delay(true), ignored);
  socket_.non_blocking(true, ignored);
  protocol_ = make(*this);
  watch_request();
  wait_for_input();
}

std::string_view Session::peer() const {
  if (peer_.empty()) {
    error_code unknown;
    const tcp::endpoint end = socket_.remote_endpoint(unknown);
    const std::string address = end.address().to_string();
    if (!unknown) {
      peer_ = end.address().is_v6() ? fmt::format("[{}]:{}", address, end.port())
                                    : fmt::format("{}:{}", address, end.port());
    }
  }
  return peer_;
}

void Session::touch() {
  if (is_touched_ || is_closed_) return;
  is_touched_ = true;
  loop_.touch(shared_from_this());
}

bool Session::may_read() const {
  return protocol_->wants_input() && !protocol_->is_over() && !input_ended_ &&
         output_.size() - sent_ < limits_.output_bytes;
}

bool Session::finish_turn() {
  is_touched_ = false;
  if (is_closed_) return false;
  send();
  if (is_closed_ || is_closing_ || !may_read()) return false;
  const bool any = pass_on();
  if (ends_input_) end_input();
  if (is_closed_) return false;
  watch_request();
  if (stream_->has_more()) receive();
  wait_for_input();
  return any;
}

void Session::wait_for_input() {
  if (waits_for_input_ || input_ended_ || ends_input_ || is_closed_) return;
  // While it is not read, a little is kept so that a client that hangs up is noticed; then TCP holds it back.
  if (!is_closing_ && !may_read() && input_.size() >= limits_.waiting_input_bytes) return;
  waits_for_input_ = true;
  socket_.async_wait(tcp::socket::wait_read, [self = shared_from_this()](const error_code& problem) {
    self->waits_for_input_ = false;
    if (problem) return self->close();
    self->receive();
  });
}

ssize_t Session::receive_behind(std::string_view& came) {
  const size_t had = input_.size();
  if (may_read() && had <= loop_.scratch_.size() / 2) {
    // Into the buffer that all share, behind what this one had left: usually the piece of a command.
    std::string& scratch = loop_.scratch_;
    std::copy(input_.begin(), input_.end(), scratch.begin());
    const ssize_t count = stream_->receive(scratch.data() + had, scratch.size() - had);
    came = std::string_view(scratch).substr(0, had + (count > 0 ? static_cast<size_t>(count) : 0));
    return count;
  }
  // A large one grows with what has come, whatever it says is still to come.
  const size_t room = may_read() ? std::max(had, kKeptCapacity) : limits_.waiting_input_bytes - had;
  input_.resize(had + room);
  const ssize_t count = stream_->receive(input_.data() + had, room);
  input_.resize(had + (count > 0 ? static_cast<size_t>(count) : 0));
  came = input_;
  return count;
}

void Session::receive() {
  if (is_closed_) return;
  if (is_closing_) {  // what still comes is of no interest
    const ssize_t count = stream_->receive(loop_.scratch_.data(), loop_.scratch_.size());
    if (count == 0 || (count < 0 && !is_temporary(errno))) return close();
    return wait_for_input();
  }
  std::string_view came;
  const ssize_t count = receive_behind(came);
  if (count == 0) return end_input();
  if (count < 0 && !is_temporary(errno)) return close();
  if (count < 0 && stream_->waits_for_room()) return wait_for_room();
  total_received_ += count > 0 ? static_cast<uint64_t>(count) : 0;
  if (count > 0 && may_read()) {
    const size_t taken = came.size() < protocol_->needed() ? 0 : protocol_->read(came);
    keep(came.substr(taken));
  }
  watch_request();
  touch();
  wait_for_input();
}

void Session::keep(std::string_view rest) {
  if (rest.empty()) return clear(input_);
  if (rest.data() + rest.size() == input_.data() + input_.size()) {  // its own tail
    input_.erase(0, input_.size() - rest.size());
  } else {
    input_.assign(rest);
  }
}

void Session::end_input() {
  // What came before the end is read first; finish_turn() calls this again.
  ends_input_ = !input_.empty() && protocol_->is_catching_up();
  if (ends_input_) return;
  input_ended_ = true;
  const bool has_more_to_say = protocol_->end_input();
  const bool has_output = !protocol_->output().empty() || !output_.empty();
  if (!has_more_to_say && !(has_output && protocol_->is_over())) return close();
  touch();
}

bool Session::pass_on() {
  if (input_.empty() || input_.size() < protocol_->needed()) return false;
  const size_t taken = protocol_->read(input_);
  if (taken == 0) return false;
  keep(std::string_view(input_).substr(taken));
  touch();
  return true;
}

void Session::send() {
  std::string& fresh = protocol_->output();
  if (output_.empty()) {
    output_.swap(fresh);
  } else {
    output_ += fresh;
    fresh.clear();
  }
  while (sent_ < output_.size()) {
    const ssize_t count = stream_->send(output_.data() + sent_, output_.size() - sent_);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && is_temporary(errno)) return wait_for_room();
    if (count < 0) return close();
    sent_ += static_cast<size_t>(count);
    total_sent_ += static_cast<size_t>(count);
  }
  sent_ = 0;
  clear(output_);
  if (fresh.capacity() == 0) fresh.swap(output_);  // the room that it grew is used again
  if (!protocol_->is_over()) return;
  if (!input_ended_ && (!input_.empty() || protocol_->is_amid_request())) return close_gently();
  close();
}

void Session::wait_for_room() {
  // What was sent is dropped when it is most of the buffer, so that a slow client costs what it still has to
  // get.
  if (sent_ > output_.size() / 2) {
    output_.erase(0, sent_);
    sent_ = 0;
  }
  watch_for_stall();
  if (waits_for_room_) return;
  waits_for_room_ = true;
  socket_.async_wait(tcp::socket::wait_write, [self = shared_from_this()](const error_code& problem) {
    self->waits_for_room_ = false;
    if (problem) return self->close();
    if (self->stream_->waits_for_room()) self->receive();
    self->touch();
  });
}

void Session::watch_for_stall() {
  if (watches_stall_) return;
  watches_stall_ = true;
  stall_timer_.expires_after(limits_.stall);
  stall_timer_.async_wait([self = shared_from_this(), before = total_sent_](const error_code& problem) {
    self->watches_stall_ = false;
    if (problem || self->is_closed_ || self->output_.empty()) return;
    if (self->total_sent_ == before) return self->close();
    self->watch_for_stall();
  });
}

void Session::watch_request() {
  const bool is_amid = !is_closed_ && may_read() &&
                       (!input_.empty() || protocol_->is_amid_request() || stream_->is_greeting());
  if (!is_amid) return begun_.reset();
  if (begun_ != nullptr && begun_->number == protocol_->requests()) return;
  begun_ = std::make_unique<Begun>(Begun{Loop::steady_now(), protocol_->requests(), total_received_,
                                         boost::asio::steady_timer(loop_.context())});
  check_request();
}

void Session::check_request() {
  const auto allowed =
      limits_.request + std::chrono::milliseconds(1000 * (total_received_ - begun_->received_before) /
                                                  limits_.bytes_per_second);
  const auto end = begun_->at + allowed;
  if (Loop::steady_now() >= end) {
    protocol_->time_out();
    if (!protocol_->is_over()) return close();
    return touch();
  }
  begun_->timer.expires_at(end);
  begun_->timer.async_wait([self = shared_from_this(), begun = begun_.get()](const error_code& problem) {
    if (!problem && !self->is_closed_ && self->begun_.get() == begun) self->check_request();
  });
}

void Session::close_gently() {
  if (is_closing_) return;
  is_closing_ = true;
  clear(input_);
  begun_.reset();
  stream_->finish();
  error_code ignored;
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
  stall_timer_.expires_after(kGoodbye);
  stall_timer_.async_wait([self = shared_from_this()](const error_code& problem) {
    if (!problem) self->close();
  });
  wait_for_input();
}

void Session::close() {
  if (is_closed_) return;
  is_closed_ = true;
  begun_.reset();
  protocol_->hang_up();
  stall_timer_.cancel();
  if (!is_closing_) stream_->finish();
  error_code ignored;
  socket_.close(ignored);
  loop_.sessions_.erase(shared_from_this());  // whoever called this holds it, too
}

}  // namespace delayq::net
