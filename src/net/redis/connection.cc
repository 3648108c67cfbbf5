#include "net/redis/connection.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include <boost/asio/connect.hpp>
#include <boost/asio/ip/address.hpp>
#include <fmt/format.h>

#include "resp/value.h"

namespace delayq::net::redis {

namespace {

Version version_of(std::string_view text) {
  Version version;
  const char* const end = text.data() + text.size();
  const auto [dot, problem] = std::from_chars(text.data(), end, version.major);
  if (problem == std::errc{} && dot != end) std::from_chars(dot + 1, end, version.minor);
  return version;
}

}  // namespace

Greeting::Greeting(const GreetingSettings& settings) : oldest_(settings.oldest) {
  if (!settings.password.empty()) {
    if (settings.user.empty()) {
      commands_.push_back({"AUTH", settings.password});
    } else {
      commands_.push_back({"AUTH", settings.user, settings.password});
    }
  }
  commands_.push_back({"PING"});  // refused while data is loaded, without a password, with too many clients
  if (settings.database != 0) commands_.push_back({"SELECT", std::to_string(settings.database)});
  if (settings.needs_master) commands_.push_back({"ROLE"});
  if (oldest_ != Version{}) commands_.push_back({"INFO", "server"});
  commands_.push_back({"CLIENT", "SETNAME", "delayq"});
}

Status Greeting::hear(const resp::Value& reply) {
  const std::string& command = commands_[heard_++].front();
  if (command == "CLIENT") return {};  // not needed, and an ACL may forbid it
  if (command == "INFO") return hear_version(reply);
  if (command == "ROLE") {
    // An ACL may forbid this too; then a write to a replica is refused by READONLY.
    if (reply.is_error() || reply.items.empty() || reply.items[0].text == "master") return {};
    const std::string& role = reply.items[0].text;
    return Error{ErrorCode::kUnavailable,
                 "redis",
                 fmt::format("it is a {}, not a master", role == "slave" ? "replica" : role),
                 {}};
  }
  if (!reply.is_error()) return {};
  return Error{ErrorCode::kUnavailable, "redis", fmt::format("{}: {}", command, reply.text), {}};
}

Status Greeting::hear_version(const resp::Value& reply) const {
  const std::string_view version = resp::info_line(reply.text, "redis_version");
  // Without this permission, the commands that need it fail later.
  if (reply.is_error() || version_of(version) >= oldest_) return {};
  return Error{
      ErrorCode::kUnavailable,
      "redis",
      fmt::format("it is version {}: {}.{} or later is needed", version, oldest_.major, oldest_.minor),
      {}};
}

namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;

constexpr size_t kLeastRoom = 64 * 1024;
/// A larger buffer is released when it is empty.
constexpr size_t kKeptCapacity = 1024 * 1024;
/// After this many bytes, other connections have their turn.
constexpr int kReadsPerTurn = 16;

bool is_temporary(int error) { return error == EAGAIN || error == EINTR; }

std::string words_for(int error) { return error_code(error, boost::system::system_category()).message(); }

}  // namespace

Connection::Connection(Loop& loop, const ConnectionSettings& settings, Address address,
                       ConnectionEvents& events)
    : loop_(loop),
      settings_(settings),
      address_(std::move(address)),
      events_(&events),
      greeting_(settings.greeting),
      resolver_(loop.context()),
      socket_(loop.context()),
      timer_(loop.context()) {}

void Connection::start() {
  last_received_ = Loop::steady_now();
  arm(last_received_ + settings_.connect_timeout);
  resolve();
}

void Connection::resolve() {
  error_code not_numeric;
  const auto numeric = boost::asio::ip::make_address(address_.host, not_numeric);
  if (!not_numeric) return connect({tcp::endpoint(numeric, address_.port)});
  resolver_.async_resolve(
      address_.host, std::to_string(address_.port),
      [self = shared_from_this()](const error_code& problem, const tcp::resolver::results_type& found) {
        if (self->is_closed()) return;
        if (problem) return self->fail(fmt::format("the host is not known: {}", problem.message()));
        Endpoints endpoints;
        for (const auto& entry : found) endpoints.push_back(entry.endpoint());
        self->connect(endpoints);
      });
}

void Connection::connect(const Endpoints& endpoints) {
  boost::asio::async_connect(socket_, endpoints,
                             [self = shared_from_this()](const error_code& problem, const tcp::endpoint&) {
                               if (self->is_closed()) return;
                               if (problem) return self->fail(problem.message());
                               self->greet();
                             });
}

void Connection::greet() {
  error_code ignored;
  socket_.set_option(tcp::no_delay(true), ignored);
  socket_.set_option(tcp::socket::keep_alive(true), ignored);
  socket_.non_blocking(true, ignored);
  const std::string& name = settings_.server_name.empty() ? address_.host : settings_.server_name;
  if (settings_.tls != nullptr) {
    stream_ = settings_.tls->connect(socket_.native_handle(), name);
  } else {
    stream_ = std::make_unique<PlainStream>(socket_.native_handle());
  }
  state_ = State::kGreeting;
  for (const std::vector<std::string>& command : greeting_.commands()) {
    const std::vector<std::string_view> words(command.begin(), command.end());
    append(output_, make_command(words, nullptr), false);
  }
  flush();
  if (!is_closed()) wait_for_input();
}

void Connection::send(Request request) {
  if (is_closed()) return;
  const Loop::Steady now = Loop::steady_now();
  if (request.is_asking) {
    Request asking = make_internal({"ASKING"}, [](const Result<resp::Value>&) {});
    append(output_, asking, false);
    pending_.push_back({std::move(asking), now});
  }
  const bool with_source =
      request.script != nullptr && (sent_scripts_.insert(request.script).second || request.wants_source);
  append(output_, request, with_source);
  pending_.push_back({std::move(request), now});
  touch();
  if (armed_until_ > now + settings_.reply_timeout) arm(now + settings_.reply_timeout);
}

void Connection::touch() {
  if (is_touched_) return;
  is_touched_ = true;
  loop_.touch(shared_from_this());
}

bool Connection::finish_turn() {
  is_touched_ = false;
  flush();
  return false;
}

void Connection::flush() {
  if (is_closed() || stream_ == nullptr || waits_for_room_) return;
  while (sent_ < output_.size()) {
    const ssize_t count = stream_->send(output_.data() + sent_, output_.size() - sent_);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && is_temporary(errno)) {
      // A stream in its handshake waits for the other side: the socket itself has room.
      if (!stream_->is_greeting() || stream_->waits_for_room()) wait_for_room();
      return;
    }
    if (count < 0) {
      const std::string told = stream_->problem();
      return fail(told.empty() ? words_for(errno) : told);
    }
    sent_ += static_cast<size_t>(count);
  }
  sent_ = 0;
  if (output_.capacity() > kKeptCapacity) {
    std::string().swap(output_);
  } else {
    output_.clear();
  }
}

void Connection::wait_for_room() {
  if (sent_ > output_.size() / 2) {
    output_.erase(0, sent_);
    sent_ = 0;
  }
  if (waits_for_room_) return;
  waits_for_room_ = true;
  socket_.async_wait(tcp::socket::wait_write, [self = shared_from_this()](const error_code& problem) {
    self->waits_for_room_ = false;
    if (self->is_closed()) return;
    if (problem) return self->fail(problem.message());
    if (self->stream_->waits_for_room()) self->receive();
    self->flush();
  });
}

void Connection::wait_for_input() {
  if (waits_for_input_) return;
  waits_for_input_ = true;
  socket_.async_wait(tcp::socket::wait_read, [self = shared_from_this()](const error_code& problem) {
    self->waits_for_input_ = false;
    if (self->is_closed()) return;
    if (problem) return self->fail(problem.message());
    self->receive();
  });
}

ssize_t Connection::receive_some() {
  // The buffer of a long reply grows with the bytes that have arrived, not with the length that it claims.
  const size_t room = std::max(filled_, kLeastRoom);
  if (input_.size() < filled_ + room) input_.resize(filled_ + room);
  const ssize_t count = stream_->receive(input_.data() + filled_, input_.size() - filled_);
  if (count > 0) filled_ += static_cast<size_t>(count);
  return count;
}

void Connection::receive() {
  const bool was_greeting = stream_->is_greeting();
  for (int reads = 0; reads < kReadsPerTurn || stream_->has_more(); ++reads) {
    const ssize_t count = receive_some();
    if (count == 0) return fail("the server closed the connection" + doubt());
    if (count < 0 && is_temporary(errno)) {
      if (stream_->waits_for_room()) wait_for_room();
      break;
    }
    if (count < 0) {
      const std::string told = stream_->problem();
      return fail(told.empty() ? words_for(errno) + doubt() : told);
    }
    last_received_ = Loop::steady_now();
    take_replies();
    if (is_closed()) return;
  }
  if (was_greeting) flush();
  if (!is_closed()) wait_for_input();
}

void Connection::take_replies() {
  const std::string_view all(input_.data(), filled_);
  std::string_view rest = all;
  while (!is_closed()) {
    Result<std::optional<resp::Value>> reply = resp::take_reply(rest);
    if (!reply.ok()) return fail(fmt::format("it does not speak Redis's protocol: {}", reply.error().detail));
    if (!*reply) break;
    handle(std::move(**reply));
  }
  if (is_closed()) return;
  filled_ = rest.size();
  // Nothing of a long reply was consumed: without this check it would be moved to where it already is with
  // each read.
  if (rest.data() != input_.data()) std::memmove(input_.data(), rest.data(), rest.size());
  if (filled_ == 0 && input_.size() > kKeptCapacity) std::string().swap(input_);
}

void Connection::handle(resp::Value reply) {
  if (state_ == State::kGreeting) return hear_greeting(reply);
  if (settings_.is_subscriber && reply.items.size() == 3 && reply.items[0].text == "message")
    return events_->on_message(reply.items[1].text, reply.items[2].text);
  if (pending_.empty()) return fail("an unexpected reply");
  Request request = std::move(pending_.front().request);
  pending_.pop_front();
  if (!request.is_internal) return events_->on_reply(std::move(request), std::move(reply));
  if (reply.is_error()) return request.answer(Error{ErrorCode::kUnavailable, "redis", reply.text, {}});
  request.answer(std::move(reply));
}

void Connection::hear_greeting(const resp::Value& reply) {
  has_heard_ = true;
  if (const Status heard = greeting_.hear(reply); !heard.ok()) return fail(heard.error().detail);
  if (!greeting_.is_over()) return;
  state_ = State::kReady;
  arm(last_received_ + settings_.keep_alive);
  events_->on_ready();
}

void Connection::arm(Loop::Steady until) {
  armed_until_ = until;
  timer_.expires_at(until);
  timer_.async_wait([self = shared_from_this()](const error_code& problem) {
    if (!problem && !self->is_closed()) self->check_time();
  });
}

void Connection::check_time() {
  const Loop::Steady now = Loop::steady_now();
  if (now < armed_until_) return;  // it was set again after this call was scheduled
  if (state_ != State::kReady)
    return fail(fmt::format("no connection within {} ms{}", settings_.connect_timeout.count(),
                            settings_.tls != nullptr ? doubt() : ""));
  if (!pending_.empty()) {
    const auto silent_since = std::max(pending_.front().sent_at, last_received_);
    if (now >= silent_since + settings_.reply_timeout)
      return fail(fmt::format("no reply within {} ms", settings_.reply_timeout.count()));
    return arm(silent_since + settings_.reply_timeout);
  }
  if (now >= last_received_ + settings_.keep_alive) {
    send(make_internal({"PING"}, [](const Result<resp::Value>&) {}));
    return arm(now + settings_.reply_timeout);
  }
  arm(last_received_ + settings_.keep_alive);
}

std::string Connection::doubt() const {
  if (state_ != State::kGreeting) return {};
  if (settings_.tls != nullptr) return stream_->is_greeting() ? "; does it speak TLS at that port?" : "";
  return has_heard_ ? "" : "; does it want TLS (rediss)?";
}

void Connection::fail(std::string why) {
  const auto self = shared_from_this();  // the listener may release it
  ConnectionEvents* const events = events_;
  shut();
  const Error error{ErrorCode::kUnavailable, "redis", fmt::format("{}: {}", to_string(address_), why), {}};
  std::vector<Request> unanswered;
  for (Pending& each : std::exchange(pending_, {})) {
    if (each.request.is_internal) {
      each.request.answer(error);
    } else {
      unanswered.push_back(std::move(each.request));
    }
  }
  events->on_broken(error, std::move(unanswered));
}

void Connection::close() {
  if (is_closed()) return;
  shut();
  pending_.clear();
}

void Connection::shut() {
  state_ = State::kClosed;
  events_ = nullptr;
  resolver_.cancel();
  timer_.cancel();
  if (stream_ != nullptr) stream_->finish();
  error_code ignored;
  socket_.close(ignored);
}

}  // namespace delayq::net::redis
