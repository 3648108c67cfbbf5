#include "sdk/cpp/src/pipe.h"

#include <algorithm>
#include <csignal>
#include <pthread.h>
#include <utility>

namespace delayq::sdk {

namespace {

constexpr std::chrono::milliseconds kFirstWait{50};
constexpr std::chrono::milliseconds kLongestWait{2000};

thread_local bool is_pipe_thread = false;

}  // namespace

NoSignals::NoSignals() {
  sigset_t all;
  sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, &before_);
}

NoSignals::~NoSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

// ---- Flight

void Flight::add(std::unique_ptr<Call> call, Steady::time_point now) {
  call->answer_by_ = now + call->timeout;
  calls_.push_back(std::move(call));
}

Steady::time_point Flight::answer_by() const {
  return calls_.empty() ? Steady::time_point::max() : calls_.front()->answer_by_;
}

bool Flight::feed(std::string_view& input, Steady::time_point now, Again& again) {
  while (!input.empty()) {
    const char sign = input[0];
    const bool may_be_long = sign == '*' || sign == '%' || sign == '$' || sign == '~' || sign == '>';
    if (may_be_long) {
      const Taken end = scan_.advance(input);
      if (end == Taken::kPartial) return true;
      if (end == Taken::kBroken) return false;
    }
    Value value;
    Taken taken = Taken::kValue;
    if (sign == '$' && !calls_.empty() && !calls_.front()->needs_text()) {
      value.type = Value::Type::kText;
      input.remove_prefix(scan_.size());
    } else {
      taken = take_value(input, value);
    }
    scan_.reset();
    if (taken == Taken::kPartial) return true;
    if (taken == Taken::kBroken || calls_.empty()) return false;
    Call& call = *calls_.front();
    reply(call, std::move(value), now);
    if (call.answered_ < call.commands) {
      call.answer_by_ = now + call.timeout;  // it is being answered
      continue;
    }
    std::unique_ptr<Call> over = std::move(calls_.front());
    calls_.pop_front();
    if (!calls_.empty())
      calls_.front()->answer_by_ = std::max(calls_.front()->answer_by_, now + calls_.front()->timeout);
    finish(std::move(over), now, again);
  }
  return true;
}

void Flight::finish(std::unique_ptr<Call> call, Steady::time_point now, Again& again) {
  if (call->refused_.empty()) return end_(std::move(call));
  keep(*call, std::exchange(call->refused_, {}));
  call->not_before_ = now + call->wait_;
  again.push_back(std::move(call));
}

void Flight::pushed(std::unique_ptr<Call> call, std::vector<embedded::Pushed::Refused> refused,
                    Steady::time_point now, Again& again) {
  for (embedded::Pushed::Refused& each : refused) {
    Value value;
    value.type = Value::Type::kError;
    value.text = std::move(each.error);
    call->answered_ = each.index;
    reply(*call, std::move(value), now);
  }
  finish(std::move(call), now, again);
}

void Flight::reply(Call& call, Value&& value, Steady::time_point now) {
  const std::uint32_t command = call.answered_++;
  if (value.is_error() && call.repeats_refused) {
    const Error error = error_of(value.text);
    const auto backoff = std::min(kLongestWait, kFirstWait * (1 << std::min(call.tries_, 6U)));
    const auto wait = std::max(error.retry_after().value_or(0ms), backoff);
    // An engine that is away may have done what it was asked for; what was refused for another reason was not
    // begun.
    const bool may_be_done = error.code() == ErrorCode::unavailable && !call.is_safe_to_repeat;
    if (error.retryable() && !may_be_done && now + wait < call.retry_until) {
      call.wait_ = call.refused_.empty() ? wait : std::max(call.wait_, wait);
      call.refused_.push_back(command);
      return;
    }
  }
  call.on_reply(call.index_of(command), std::move(value));
}

void Flight::keep(Call& call, const std::vector<std::uint32_t>& commands) {
  std::string bytes;
  std::vector<embedded::PushJob> jobs;
  std::vector<std::uint32_t> indexes;
  std::uint32_t at = 0;
  std::string_view rest = call.bytes;
  for (const std::uint32_t command : commands) {
    indexes.push_back(call.index_of(command));
    if (!call.jobs.empty()) {
      jobs.push_back(call.jobs[command]);
      continue;
    }
    rest.remove_prefix(size_of_commands(rest, command - at));
    const std::size_t size = size_of_commands(rest, 1);
    bytes += rest.substr(0, size);
    rest.remove_prefix(size);
    at = command + 1;
  }
  if (jobs.empty()) call.bytes = std::move(bytes);  // otherwise the texts stay where they are
  call.jobs = std::move(jobs);
  call.commands = static_cast<std::uint32_t>(commands.size());
  call.indexes_ = std::move(indexes);
  call.answered_ = 0;
  ++call.tries_;
}

void Flight::lose(const Error& error, Steady::time_point now, Again& again) {
  scan_.reset();
  for (std::unique_ptr<Call>& call : std::exchange(calls_, {})) {
    std::vector<std::uint32_t> left = std::exchange(call->refused_, {});
    const bool goes_on = call->is_safe_to_repeat && now < call->retry_until;
    for (std::uint32_t i = call->answered_; i < call->commands; ++i) {
      if (goes_on) {
        left.push_back(i);
      } else {
        call->on_failure(call->index_of(i), error);
      }
    }
    if (left.empty()) {
      end_(std::move(call));
      continue;
    }
    keep(*call, left);
    call->not_before_ = now;
    again.push_back(std::move(call));
  }
}

// ---- Pipe

bool Pipe::is_own_thread() { return is_pipe_thread; }

void Pipe::begin_thread(const char* name) {
  is_pipe_thread = true;
  ::pthread_setname_np(::pthread_self(), name);
}

void Pipe::send(std::unique_ptr<Call> call) {
  const std::size_t size = call->bytes.size();
  std::optional<Error> error;
  {
    std::unique_lock lock(mutex_);
    const auto may_go_on = [this] { return refusal_ || has_room(); };
    if (!may_go_on() && !is_own_thread())
      changed_.wait_until(lock, call->retry_until + call->timeout, may_go_on);
    if (refusal_) {
      error = refusal_;
    } else if (!has_room()) {
      error = Error(ErrorCode::overloaded, "too many requests of this client are on their way");
    } else {
      call->counted_bytes_ = size;
      call->counted_commands_ = call->commands;
      bytes_ += size;
      commands_ += call->commands;
      incoming_.push_back(std::move(call));
    }
  }
  if (!error) return wake();
  for (std::uint32_t i = 0; i < call->commands; ++i) call->on_failure(i, *error);
  call->on_end();
}

std::deque<std::unique_ptr<Call>> Pipe::take_incoming() {
  const std::lock_guard lock(mutex_);
  return std::exchange(incoming_, {});
}

void Pipe::end(std::unique_ptr<Call> call) {
  call->on_end();
  ended_bytes_ += call->counted_bytes_;
  ended_commands_ += call->counted_commands_;
  if (call->jobs.empty() || call->bytes.capacity() > kLargestSpare || ended_spare_.size() >= kMostSpare)
    return;
  ended_spare_.push_back({std::move(call->bytes), std::move(call->jobs)});
}

Pipe::Spare Pipe::take_spare() {
  const std::lock_guard lock(mutex_);
  if (spare_.empty()) return {};
  Spare spare = std::move(spare_.back());
  spare_.pop_back();
  return spare;
}

void Pipe::make_room() {
  if (ended_commands_ == 0) return;
  const std::lock_guard lock(mutex_);
  const bool had_room = has_room();
  bytes_ -= std::exchange(ended_bytes_, 0);
  commands_ -= std::exchange(ended_commands_, 0);
  if (!had_room || commands_ == 0) changed_.notify_all();
  for (Spare& each : ended_spare_) {
    if (spare_.size() >= kMostSpare) break;
    each.bytes.clear();
    each.jobs.clear();
    spare_.push_back(std::move(each));
  }
  ended_spare_.clear();
}

void Pipe::fail(std::unique_ptr<Call> call, const Error& error) {
  for (std::uint32_t i = 0; i < call->commands; ++i) call->on_failure(call->index_of(i), error);
  end(std::move(call));
}

void Pipe::refuse(const Error& error) {
  std::deque<std::unique_ptr<Call>> left;
  {
    const std::lock_guard lock(mutex_);
    if (!refusal_) refusal_ = error;
    left = std::exchange(incoming_, {});
    changed_.notify_all();
  }
  for (std::unique_ptr<Call>& call : left) fail(std::move(call), error);
  make_room();
}

bool Pipe::drain(Steady::time_point deadline) {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, deadline, [this] { return commands_ == 0; });
}

// ---- Delayed

Steady::time_point Delayed::next() const {
  Steady::time_point next = Steady::time_point::max();
  for (const Waiting& each : calls_) next = std::min(next, each.when);
  return next;
}

void Delayed::take_due(Steady::time_point now, std::deque<std::unique_ptr<Call>>& due) {
  const auto later = std::stable_partition(calls_.begin(), calls_.end(),
                                           [now](const Waiting& each) { return each.when > now; });
  for (auto each = later; each != calls_.end(); ++each) due.push_back(std::move(each->call));
  calls_.erase(later, calls_.end());
}

}  // namespace delayq::sdk
