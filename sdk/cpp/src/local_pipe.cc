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

bool LocalPipe::turn() {
  bool is_busy = false;
  for (std::unique_ptr<Call>& call : take_incoming()) waiting_.push_back(std::move(call));
  const Steady::time_point now = Steady::now();
  delayed_.take_due(now, waiting_);
  while (!waiting_.empty() && input_.size() - read_ < kMostInput) {
    input_ += waiting_.front()->bytes;
    flight_.add(std::move(waiting_.front()), now);
    waiting_.pop_front();
  }
  if (read_ < input_.size()) {
    const std::size_t taken = session_->read(std::string_view(input_).substr(read_));
    is_busy = taken > 0;
    read_ += taken;
    if (read_ == input_.size()) {
      input_.clear();
      read_ = 0;
    } else if (read_ > input_.size() / 2) {
      input_.erase(0, std::exchange(read_, 0));
    }
  }
  if (finishes_ && waiting_.empty() && input_.empty()) session_->end_input();
  std::string& output = session_->output();
  if (!output.empty()) {
    is_busy = true;
    std::string_view rest = output;
    Flight::Again again;
    flight_.feed(rest, now, again);
    output.erase(0, output.size() - rest.size());
    for (std::unique_ptr<Call>& call : again) {
      const Steady::time_point when = Flight::not_before(*call);
      delayed_.add(std::move(call), when);
    }
  }
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
}

}  // namespace delayq::sdk
