// The threads of a worker that call handlers, and what becomes of the jobs.
#include <algorithm>
#include <utility>

#include "sdk/cpp/src/worker_core.h"

namespace delayq {
inline namespace v1 {

namespace {

/// A result goes on trying to reach the server at least this long: until another worker may have the job.
constexpr std::chrono::seconds kLongestReport{60};
constexpr std::string_view kStopped = "worker stopped";

}  // namespace

/// What a worker tells about a job: ACK, NACK or RELEASE.
class WorkerCore::Report final : public sdk::Call {
 public:
  Report(std::shared_ptr<WorkerCore> worker, JobPointer job, bool is_release)
      : worker_(std::move(worker)), job_(std::move(job)), is_release_(is_release) {}

  void on_reply(std::uint32_t /*index*/, sdk::Value&& value) override {
    if (!value.is_error()) return;
    const Error error = sdk::error_of(value.text);
    // Its lease ended before: another worker has the job, or had it.
    if (error.code() == ErrorCode::stale_lease) return;
    const bool is_unknown =
        error.code() == ErrorCode::invalid && value.text.find("unknown command") != std::string::npos;
    if (is_release_ && is_unknown) return worker_->release_by_nack(job_);
    on_failure(0, error);
  }
  void on_failure(std::uint32_t /*index*/, const Error& error) override {
    worker_->client_->log(LogLevel::warning,
                          "the result of " + job_->topic + "/" + job_->id + " is lost: " + error.what());
  }
  void on_end() override { worker_->reported(); }

 private:
  std::shared_ptr<WorkerCore> worker_;
  JobPointer job_;
  bool is_release_;
};

void WorkerCore::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    work_.wait(lock, [this] { return is_over_ || (!ready_.empty() && !stops_); });
    if (is_over_) return;
    const JobPointer job = std::move(ready_.front());
    ready_.pop_front();
    job->is_running = true;
    lock.unlock();
    handle(job);
    leave(job);
    lock.lock();
  }
}

void WorkerCore::leave(const JobPointer& job) {
  const std::lock_guard lock(mutex_);
  std::erase(jobs_, job);
  --busy_;
  room_.notify_all();
}

void WorkerCore::call(RunningJob& job, std::size_t depth) {
  if (depth == middleware.size()) return handlers.find(job.topic)->second(job.as_job());
  middleware[depth](job.as_job(), [&] { call(job, depth + 1); });
}

void WorkerCore::handle(const JobPointer& job) {
  bool has_failed = true;
  bool is_dead = false;
  std::optional<std::chrono::milliseconds> delay;
  std::string text;
  sdk::running_headers = &job->headers;
  try {
    call(*job, 0);
    has_failed = false;
  } catch (const RetryIn& retry) {
    delay = std::max(retry.delay(), std::chrono::milliseconds::zero());
    text = retry.what();
  } catch (const Dead& dead) {
    is_dead = true;
    text = dead.what();
  } catch (const std::exception& error) {
    text = error.what();
  } catch (...) {
    text = "an exception that is no std::exception";
  }
  sdk::running_headers = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (job->is_given_up) return;
    job->is_given_up = true;
  }
  const std::optional<StopReason> reason = job->reason();
  if (reason == StopReason::lease_lost) return;
  if (!has_failed) return ack(job);
  if (reason == StopReason::stopping) return release(job);
  nack(job, delay, text, is_dead);
}

void WorkerCore::ack(const JobPointer& job) {
  sdk::Words words;
  words << "ACK" << job->lease;
  report(job, words, false);
}

void WorkerCore::nack(const JobPointer& job, std::optional<std::chrono::milliseconds> delay,
                      std::string_view text, bool is_dead) {
  const std::string reason = sdk::clean_reason(text);
  sdk::Words words;
  words << "NACK" << job->lease;
  if (delay) (words << "DELAY").millis(*delay);
  if (!reason.empty()) words << "REASON" << reason;
  if (is_dead) words << "DEAD";
  report(job, words, false);
}

void WorkerCore::release(const JobPointer& job) {
  sdk::Words words;
  words << "RELEASE" << job->lease;
  report(job, words, true);
}

void WorkerCore::release_by_nack(const JobPointer& job) {
  sdk::Words words;
  words << "NACK" << job->lease << "DELAY"
        << "0"
        << "REASON" << kStopped;
  report(job, words, false);
}

void WorkerCore::report(const JobPointer& job, const sdk::Words& words, bool is_release) {
  auto call = std::make_unique<Report>(shared_from_this(), job, is_release);
  words.append_to(call->bytes);
  client_->set_times(*call);
  call->is_safe_to_repeat = true;
  {
    const std::lock_guard lock(mutex_);
    ++reports_;
    const auto lease = job->lease_length.value_or(kLongestReport);
    call->retry_until = std::max(call->retry_until,
                                 Steady::now() + std::max<std::chrono::milliseconds>(lease, kLongestReport));
  }
  client_->pipe().send(std::move(call));
}

void WorkerCore::reported() {
  const std::lock_guard lock(mutex_);
  --reports_;
  settled_.notify_all();
}

}  // namespace v1
}  // namespace delayq
