#include "sdk/cpp/src/local_pipe.h"

#include <utility>

namespace delayq::sdk {

namespace {

/// Commands that are kept for a session that reads none now.
constexpr std::size_t kMostInput = std::size_t{1} << 20;

}  // namespace

LocalPipe::LocalPipe(std::shared_ptr<embedded::Engine> engine)
    : engine_(std::move(engine)),
      flight_([this](std::unique_ptr<Call> call) { Pipe::end(std::move(call)); }) {
  engine_->add(*this);
}

LocalPipe::~LocalPipe() { stop(); }

void LocalPipe::finish() {
  finishes_ = true;
  wake();
}

void LocalPipe::stop() {
  if (std::exchange(is_stopped_, true)) return;
  engine_->remove(*this);
}

void LocalPipe::end() {
  const Error error(ErrorCode::stopping, "the client is closed");
  refuse(error);
  session_.reset();
  lose(error);
  make_room();
}

void LocalPipe::send_waiting(Steady::time_point now) {
  while (!waiting_.empty()) {
    std::unique_ptr<Call>& next = waiting_.front();
    if (!next->jobs.empty()) {
      if (read_ < input_.size()) return;  // the commands before it come first
      session_->push(next->bytes, next->jobs, ++last_ticket_);
      pushing_.emplace(last_ticket_, std::move(next));
    } else {
      if (input_.size() - read_ >= kMostInput) return;
      input_ += next->bytes;
      flight_.add(std::move(next), now);
    }
    waiting_.pop_front();
  }
}

bool LocalPipe::read_input() {
  if (read_ == input_.size()) return false;
  const std::size_t taken = session_->read(std::string_view(input_).substr(read_));
  read_ += taken;
  if (read_ == input_.size()) {
    input_.clear();
    read_ = 0;
  } else if (read_ > input_.size() / 2) {
    input_.erase(0, std::exchange(read_, 0));
  }
  return taken > 0;
}

void LocalPipe::take_pushed(Steady::time_point now) {
  Flight::Again again;
  for (embedded::Pushed& each : session_->take_pushed()) {
    const auto call = pushing_.find(each.ticket);
    if (call == pushing_.end()) continue;  // it has failed: the session was over
    flight_.pushed(std::move(call->second), std::move(each.refused), now, again);
    pushing_.erase(call);
  }
  delay(std::move(again));
}

void LocalPipe::delay(Flight::Again again) {
  for (std::unique_ptr<Call>& call : again) {
    const Steady::time_point when = Flight::not_before(*call);
    delayed_.add(std::move(call), when);
  }
}

bool LocalPipe::turn() {
  for (std::unique_ptr<Call>& call : take_incoming()) waiting_.push_back(std::move(call));
  const Steady::time_point now = Steady::now();
  delayed_.take_due(now, waiting_);
  const std::uint64_t before = last_ticket_;
  send_waiting(now);
  bool is_busy = read_input() || last_ticket_ != before;
  if (finishes_ && waiting_.empty() && input_.empty() && pushing_.empty()) session_->end_input();
  std::string& output = session_->output();
  if (!output.empty()) {
    is_busy = true;
    std::string_view rest = output;
    Flight::Again again;
    flight_.feed(rest, now, again);
    output.erase(0, output.size() - rest.size());
    delay(std::move(again));
  }
  if (!pushing_.empty()) take_pushed(now);
  if (session_->is_over()) {
    const Error error = finishes_ ? Error(ErrorCode::stopping, "the client is closed")
                                  : Error(ErrorCode::too_large, "a command was too large to be read");
    refuse(error);
    lose(error);
  }
  make_room();
  return is_busy;
}

void LocalPipe::lose(const Error& error) {
  Flight::Again again;
  flight_.lose(error, Steady::time_point::max(), again);
  delayed_.take_due(Steady::time_point::max(), waiting_);
  for (std::unique_ptr<Call>& call : std::exchange(waiting_, {})) fail(std::move(call), error);
  for (auto& [ticket, call] : std::exchange(pushing_, {})) fail(std::move(call), error);
}

}  // namespace delayq::sdk
