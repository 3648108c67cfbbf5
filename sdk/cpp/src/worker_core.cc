// A worker's pops, and its end.
#include "sdk/cpp/src/worker_core.h"

#include <algorithm>
#include <array>
#include <utility>

namespace delayq {
inline namespace v1 {

namespace {

constexpr std::uint32_t kMostAtOnce = 1000;
/// A lease of unknown length is looked at this long after the pop: before the shortest one, 100 ms, is over.
constexpr std::chrono::milliseconds kFirstLook{30};
constexpr std::chrono::seconds kLastGrace{1};
constexpr std::chrono::milliseconds kFirstPause{100};
constexpr std::chrono::milliseconds kLongestPause{5000};
constexpr std::size_t kPoppedFields = 7;

bool is_pop_option(const std::string& topic) {
  constexpr std::array<std::string_view, 5> kOptions{"COUNT", "WAIT", "LEASE", "AUTOACK", "HEADERS"};
  std::string upper = topic;
  for (char& c : upper) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return std::find(kOptions.begin(), kOptions.end(), upper) != kOptions.end();
}

}  // namespace

// ---- RunningJob

RunningJob::RunningJob(WorkerCore& owner, sdk::Value& popped)
    : worker(owner),
      lease(std::move(popped.items[0].text)),
      topic(std::move(popped.items[1].text)),
      id(std::move(popped.items[2].text)),
      payload(std::move(popped.items[3].text)),
      attempt(static_cast<std::uint32_t>(popped.items[4].integer)),
      due_at(sdk::moment_of(popped.items[5].integer)),
      headers(sdk::headers_of(&popped.items[6])) {}

void RunningJob::tell(StopReason reason) {
  const int value = static_cast<int>(reason);
  int before = kNone;
  while (before == kNone || reason == StopReason::lease_lost) {
    if (reason_.compare_exchange_weak(before, value)) break;
    if (before == value) return;
  }
  stop.request_stop();
}

std::optional<StopReason> RunningJob::reason() const {
  const int value = reason_.load();
  return value == kNone ? std::nullopt : std::optional(static_cast<StopReason>(value));
}

Time RunningJob::lease_until() { return worker.ask_until(*this); }

Time WorkerCore::ask_until(RunningJob& job) {
  {
    const std::lock_guard lock(mutex_);
    if (job.until) return *job.until;
  }
  sdk::Words words;
  words << "GET" << job.topic << job.id;
  const std::int64_t until = client_->ask(words, true, sdk::Value::Type::kMap, true).number_of("until_ms");
  if (until == 0) throw Error(ErrorCode::stale_lease, "the job is not reserved any more");
  const std::lock_guard lock(mutex_);
  if (!job.until) job.until = sdk::moment_of(until);
  return *job.until;
}

// ---- WorkerCore

void WorkerCore::order_topics() {
  topics_.clear();
  for (const auto& each : handlers) topics_.push_back(each.first);
  const auto odd = std::stable_partition(topics_.begin(), topics_.end(), is_pop_option);
  if (odd - topics_.begin() > 1)
    throw Error(ErrorCode::invalid,
                "topic: at most one topic of a worker may have the name of an option of POP");
}

void WorkerCore::run() {
  if (handlers.empty())
    throw Error(ErrorCode::invalid, "handle: a worker needs a handler for at least one topic");
  order_topics();
  if (has_begun_.exchange(true)) throw Error(ErrorCode::invalid, "run: a worker runs once; make another one");
  if (sdk::Pipe::is_own_thread()) throw Error(ErrorCode::invalid, "run: not in a callback");
  if (client_->is_embedded()) clock_offset_ = std::chrono::milliseconds::zero();
  {
    const std::lock_guard lock(mutex_);
    if (!stops_) pops_ = client_->make_pipe();
  }
  for (unsigned i = 0; i < options_.concurrency; ++i) start_thread(&WorkerCore::serve);
  start_thread(&WorkerCore::keep_leases);
  std::exception_ptr problem;
  try {
    pop_until_stopped();
  } catch (...) {
    problem = std::current_exception();
  }
  finish();
  if (problem) std::rethrow_exception(problem);
}

void WorkerCore::stop() {
  const std::lock_guard lock(mutex_);
  if (stops_.exchange(true)) return;
  room_.notify_all();
  if (pops_ != nullptr) pops_->finish();
}

void WorkerCore::pop_until_stopped() {
  std::chrono::milliseconds pause{0};
  while (!stops_) {
    const std::uint32_t count = wait_for_room();
    if (count == 0) return;
    if (pop_once(count)) {
      pause = std::chrono::milliseconds::zero();
      continue;
    }
    pause = std::clamp(2 * pause, kFirstPause, kLongestPause);
    std::unique_lock lock(mutex_);
    room_.wait_for(lock, pause, [this] { return stops_.load(); });
  }
}

std::uint32_t WorkerCore::wait_for_room() {
  std::unique_lock lock(mutex_);
  room_.wait(lock, [this] { return stops_ || busy_ < options_.concurrency; });
  return stops_ ? 0 : std::min(kMostAtOnce, options_.concurrency - busy_);
}

bool WorkerCore::pop_once(std::uint32_t count) {
  sdk::Words words;
  words << "POP";
  for (const std::string& topic : topics_) words << topic;
  (words << "COUNT").number(count);
  (words << "WAIT").millis(options_.wait);
  if (options_.lease) (words << "LEASE").millis(*options_.lease);
  words << "HEADERS";
  const sdk::OneReply reply;
  std::unique_ptr<sdk::Call> call = reply.make_call();
  words.append_to(call->bytes);
  // The server prefers the first topic, so the order changes. Only the first word of a POP is always a topic.
  const auto first = topics_.begin() + (is_pop_option(topics_.front()) ? 1 : 0);
  if (first != topics_.end()) std::rotate(first, topics_.end() - 1, topics_.end());
  client_->set_times(*call);
  call->timeout += options_.wait;
  call->repeats_refused = false;
  pops_->send(std::move(call));
  try {
    take(sdk::checked(reply.wait(client_->last_moment() + options_.wait)));
    return true;
  } catch (const Error& error) {
    if (stops_) return true;
    if (!error.retryable()) throw;
    client_->log(LogLevel::warning,
                 std::string("the worker gets no jobs now, and tries again: ") + error.what());
    return false;
  }
}

void WorkerCore::take(sdk::Value popped) {
  const auto is_job = [](const sdk::Value& each) {
    return each.items.size() >= kPoppedFields && each.items[4].type == sdk::Value::Type::kInteger;
  };
  const bool is_list = popped.is_null() || popped.type == sdk::Value::Type::kList;
  if (!is_list || !std::all_of(popped.items.begin(), popped.items.end(), is_job))
    throw Error(ErrorCode::unavailable, "the answer to POP makes no sense");
  const Time now = std::chrono::system_clock::now();
  const std::lock_guard lock(mutex_);
  for (sdk::Value& each : popped.items) {
    auto job = std::make_shared<RunningJob>(*this, each);
    if (options_.lease) {
      job->lease_length = options_.lease;
      job->until = now + *options_.lease + clock_offset_.value_or(std::chrono::milliseconds::zero());
      job->next_look = job->popped_at + *options_.lease / 3;
    } else {
      job->next_look = job->popped_at + kFirstLook;
    }
    if (job->next_look < keeper_wakes_) keep_.notify_one();
    jobs_.push_back(job);
    ready_.push_back(std::move(job));
    ++busy_;
    work_.notify_one();
  }
}

bool WorkerCore::wait_for_handlers(Steady::time_point deadline) {
  std::unique_lock lock(mutex_);
  return room_.wait_until(lock, deadline, [this] { return busy_ == 0; });
}

void WorkerCore::finish() {
  stop();
  std::unique_ptr<sdk::Pipe> pops;
  std::deque<JobPointer> not_begun;
  {
    const std::lock_guard lock(mutex_);
    pops = std::move(pops_);
    not_begun.swap(ready_);
  }
  if (pops != nullptr) pops->stop();
  for (const JobPointer& job : not_begun) {
    release(job);
    leave(job);
  }
  if (!wait_for_handlers(Steady::now() + options_.grace)) {
    std::vector<JobPointer> running;
    {
      const std::lock_guard lock(mutex_);
      running = jobs_;
    }
    for (const JobPointer& job : running) job->tell(StopReason::stopping);
    if (!wait_for_handlers(Steady::now() + kLastGrace)) give_up_running();
  }
  join_threads();
  std::unique_lock lock(mutex_);
  if (!settled_.wait_until(lock, client_->last_moment(), [this] { return reports_ == 0; }))
    client_->log(LogLevel::error, "some results did not reach the server in time: their jobs will run again");
}

void WorkerCore::give_up_running() {
  std::vector<JobPointer> given_up;
  {
    const std::lock_guard lock(mutex_);
    for (const JobPointer& job : jobs_) {
      if (job->is_given_up) continue;
      job->is_given_up = true;
      given_up.push_back(job);
    }
  }
  for (const JobPointer& job : given_up) {
    client_->log(LogLevel::warning, "the handler of " + job->topic + "/" + job->id +
                                        " did not end when it was told to stop: the job is given back");
    if (job->reason() != StopReason::lease_lost) release(job);
  }
}

void WorkerCore::start_thread(void (WorkerCore::*body)()) {
  Thread& thread = threads_.emplace_back();
  thread.thread = std::thread([self = shared_from_this(), body, is_over = thread.is_over] {
    ((*self).*body)();
    *is_over = true;
    const std::lock_guard lock(self->mutex_);
    self->settled_.notify_all();
  });
}

void WorkerCore::join_threads() {
  std::unique_lock lock(mutex_);
  is_over_ = true;
  work_.notify_all();
  keep_.notify_all();
  // A thread that is in no handler ends at once; one that is may never end.
  const auto all_over = [this] {
    return std::count_if(threads_.begin(), threads_.end(),
                         [](const Thread& each) { return each.is_over->load(); }) +
               busy_ >=
           static_cast<std::ptrdiff_t>(threads_.size());
  };
  settled_.wait_until(lock, Steady::now() + kLastGrace, all_over);
  lock.unlock();
  for (Thread& each : threads_) {
    if (*each.is_over) {
      each.thread.join();
    } else {
      each.thread.detach();
    }
  }
  threads_.clear();
}

}  // namespace v1
}  // namespace delayq
