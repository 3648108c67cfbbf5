#include "sdk/cpp/src/net_pipe.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <poll.h>
#include <random>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utility>

namespace delayq::sdk {

namespace {

constexpr std::size_t kMostOutput = std::size_t{1} << 20;  ///< given to the socket at once
constexpr std::chrono::milliseconds kFirstBackoff{50};
constexpr std::chrono::milliseconds kLongestBackoff{2000};
constexpr std::chrono::milliseconds kLinger{2000};  ///< a server that has nothing more to say closes at once

int poll_timeout(Steady::time_point until) {
  if (until == Steady::time_point::max()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Steady::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
}

}  // namespace

Remote parse_address(std::string_view address) {
  Remote remote;
  std::string_view host = address;
  std::string_view port = "9278";
  const std::size_t colon = address.rfind(':');
  const bool is_bracketed = address.starts_with('[');
  if (colon != std::string_view::npos && (!is_bracketed || colon > address.find(']'))) {
    host = address.substr(0, colon);
    port = address.substr(colon + 1);
  }
  if (is_bracketed && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  unsigned number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (host.empty() || error != std::errc() || end != port.data() + port.size() || number == 0 ||
      number > 65535)
    throw Error(ErrorCode::invalid, "address: \"" + std::string(address) + "\" is not host:port");
  remote.host = host;
  remote.port = port;
  return remote;
}

NetPipe::NetPipe(Remote remote)
    : remote_(std::move(remote)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      flight_([this](std::unique_ptr<Call> call) { end(std::move(call)); }) {
  if (wake_ < 0) throw Error(ErrorCode::unavailable, std::string("eventfd: ") + std::strerror(errno));
  const NoSignals no_signals;
  thread_ = std::thread([this] { run(); });
}

NetPipe::~NetPipe() {
  stop();
  ::close(wake_);
}

void NetPipe::wake() {
  if (is_awake_.exchange(true)) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_, &one, sizeof(one));
}

void NetPipe::finish() {
  finishes_ = true;
  is_awake_ = false;
  wake();
}

void NetPipe::stop() {
  stops_ = true;
  is_awake_ = false;
  wake();
  if (thread_.joinable()) thread_.join();
}

void NetPipe::run() {
  begin_thread("delayq-net");
  while (!stops_) turn();
  const Error error(ErrorCode::stopping, "the client is closed");
  refuse(error);
  lose(error);
  fail_those_before(Steady::time_point::max(), error);
  make_room();
}

void NetPipe::turn() {
  is_awake_ = false;
  for (std::unique_ptr<Call>& call : take_incoming()) waiting_.push_back(std::move(call));
  delayed_.take_due(Steady::now(), waiting_);
  if (finishes_ && !socket_.is_open()) {
    const Error error(ErrorCode::stopping, "the connection is closed");
    refuse(error);
    fail_those_before(Steady::time_point::max(), error);
  }
  if (!socket_.is_open() && !waiting_.empty() && Steady::now() >= next_attempt_) try_to_connect();
  if (socket_.is_open()) write_some();
  wait();
  if (socket_.is_open()) read_some();
  if (linger_until_ <= Steady::now()) {
    linger_until_ = Steady::time_point::max();
    lose(Error(ErrorCode::stopping, "the connection is closed"));
  }
  if (flight_.answer_by() <= Steady::now())
    lose(Error(ErrorCode::unavailable, "the server did not answer in time; it is not known what was done"));
}

void NetPipe::try_to_connect() {
  try {
    socket_.connect(remote_, stops_);
    greet();
    if (is_away_) log(LogLevel::info, "the server is there again");
    is_away_ = false;
    return;
  } catch (const Error& error) {
    socket_.close();
    if (stops_) return;
    const auto backoff = next_backoff();
    next_attempt_ = Steady::now() + backoff;
    if (!std::exchange(is_away_, true)) log(LogLevel::warning, error.what());
    // What the server refuses once, it will refuse again.
    fail_those_before(error.retryable() ? next_attempt_ : Steady::time_point::max(), error);
  }
}

void NetPipe::greet() {
  Words words;
  words << "HELLO"
        << "3";
  const ClientOptions& options = remote_.options;
  if (!options.token.empty())
    words << "AUTH" << (options.token_name.empty() ? std::string_view("default") : options.token_name)
          << options.token;
  std::string command;
  words.append_to(command);
  std::string_view rest = command;
  input_.clear();
  read_ = 0;
  has_ended_output_ = false;
  const Steady::time_point deadline = Steady::now() + options.connect_timeout;
  for (;;) {
    const auto written = rest.empty() ? Socket::Outcome::kWait : socket_.write(rest);
    if (written == Socket::Outcome::kClosed) break;
    if (socket_.read(input_) == Socket::Outcome::kClosed && input_.empty()) break;
    std::string_view input = input_;
    Value value;
    const Taken taken = take_value(input, value);
    if (taken == Taken::kBroken)
      throw Error(ErrorCode::unavailable, "the server does not speak RESP; is this its RESP port?");
    if (taken == Taken::kValue) {
      input_.erase(0, input_.size() - input.size());
      if (value.is_error()) throw error_of(value.text);
      output_.clear();
      unsent_ = {};
      return;
    }
    if (Steady::now() >= deadline || stops_)
      throw Error(ErrorCode::unavailable,
                  remote_.host + ":" + remote_.port + " accepts connections and does not answer");
    pollfd file{socket_.file(), static_cast<short>(POLLIN | (rest.empty() ? 0 : POLLOUT)), 0};
    ::poll(&file, 1, std::min(poll_timeout(deadline), 100));
  }
  throw Error(ErrorCode::unavailable, remote_.host + ":" + remote_.port + " closed the connection" +
                                          (socket_.problem().empty() ? "" : ": " + socket_.problem()));
}

std::chrono::milliseconds NetPipe::next_backoff() {
  thread_local std::minstd_rand random{std::random_device{}()};
  const auto longest = std::min(kLongestBackoff, kFirstBackoff * (1 << std::min(attempts_, 6U)));
  ++attempts_;
  const auto half = longest.count() / 2;
  return std::chrono::milliseconds(half +
                                   static_cast<std::int64_t>(random() % static_cast<unsigned>(half + 1)));
}

void NetPipe::write_some() {
  const Steady::time_point now = Steady::now();
  for (;;) {
    while (unsent_.size() < kMostOutput && !waiting_.empty()) {
      if (unsent_.empty()) output_.clear();
      const std::size_t sent = output_.size() - unsent_.size();
      if (sent > kMostOutput) output_.erase(0, sent);
      const std::size_t keeps = output_.size() - unsent_.size();
      output_ += waiting_.front()->bytes;
      unsent_ = std::string_view(output_).substr(unsent_.empty() ? 0 : keeps);
      flight_.add(std::move(waiting_.front()), now);
      waiting_.pop_front();
    }
    if (unsent_.empty()) break;
    const Socket::Outcome outcome = socket_.write(unsent_);
    if (outcome == Socket::Outcome::kWait) return;
    if (outcome == Socket::Outcome::kClosed) {
      read_some();  // an error reply may say why
      if (socket_.is_open())
        lose(Error(ErrorCode::unavailable, "the connection was lost; it is not known what was done"));
      return;
    }
  }
  if (finishes_ && !has_ended_output_ && delayed_.empty()) {
    has_ended_output_ = true;
    linger_until_ = now + kLinger;
    socket_.end_output();
  }
}

void NetPipe::read_some() {
  const Socket::Outcome outcome = socket_.read(input_);
  has_more_ = outcome == Socket::Outcome::kDone;
  std::string_view rest = std::string_view(input_).substr(read_);
  const std::size_t before = rest.size();
  Flight::Again again;
  const bool is_readable = flight_.feed(rest, Steady::now(), again);
  if (rest.size() < before) attempts_ = 0;
  read_ = input_.size() - rest.size();
  if (read_ == input_.size()) {
    input_.clear();
    read_ = 0;
  } else if (read_ > input_.size() / 2) {
    input_.erase(0, read_);
    read_ = 0;
  }
  take_back(std::move(again));
  if (!is_readable) return lose(Error(ErrorCode::unavailable, "the server sent what is no reply"));
  if (outcome != Socket::Outcome::kClosed) return;
  if (finishes_) return lose(Error(ErrorCode::stopping, "the connection is closed"));
  lose(Error(ErrorCode::unavailable, "the connection was lost; it is not known what was done" +
                                         (socket_.problem().empty() ? "" : " (" + socket_.problem() + ")")));
}

void NetPipe::wait() {
  make_room();
  pollfd files[2] = {{wake_, POLLIN, 0}, {socket_.file(), POLLIN, 0}};
  Steady::time_point until = std::min({delayed_.next(), flight_.answer_by(), linger_until_});
  if (!socket_.is_open() && !waiting_.empty()) until = std::min(until, next_attempt_);
  if (!unsent_.empty() && !socket_.wants_input_to_write()) files[1].events |= POLLOUT;
  const int timeout = std::exchange(has_more_, false) ? 0 : poll_timeout(until);
  const int ready = ::poll(files, socket_.is_open() ? 2 : 1, timeout);
  if (ready > 0 && (files[0].revents & POLLIN) != 0) {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = ::read(wake_, &count, sizeof(count));
  }
}

void NetPipe::lose(const Error& error) {
  socket_.close();
  output_.clear();
  unsent_ = {};
  input_.clear();
  read_ = 0;
  Flight::Again again;
  flight_.lose(error, Steady::now(), again);
  if (stops_ || finishes_) {
    for (std::unique_ptr<Call>& call : again) fail(std::move(call), error);
    return;
  }
  if (!again.empty() || !waiting_.empty()) log(LogLevel::warning, error.what());
  take_back(std::move(again));
  next_attempt_ = attempts_ == 0 ? Steady::time_point() : Steady::now() + next_backoff();
  if (attempts_ == 0) attempts_ = 1;
}

void NetPipe::take_back(Flight::Again again) {
  const Steady::time_point now = Steady::now();
  while (!again.empty()) {
    std::unique_ptr<Call> call = std::move(again.back());
    again.pop_back();
    if (const Steady::time_point when = Flight::not_before(*call); when > now) {
      delayed_.add(std::move(call), when);
    } else {
      waiting_.push_front(std::move(call));
    }
  }
}

void NetPipe::fail_those_before(Steady::time_point moment, const Error& error) {
  std::deque<std::unique_ptr<Call>> left;
  delayed_.take_due(Steady::time_point::max(), waiting_);
  for (std::unique_ptr<Call>& call : std::exchange(waiting_, {})) {
    if (moment == Steady::time_point::max() || call->retry_until <= moment) {
      fail(std::move(call), error);
    } else {
      left.push_back(std::move(call));
    }
  }
  for (std::unique_ptr<Call>& call : left) waiting_.push_back(std::move(call));
}

void NetPipe::log(LogLevel level, const std::string& what) const {
  if (remote_.options.log) remote_.options.log(level, what);
}

}  // namespace delayq::sdk
