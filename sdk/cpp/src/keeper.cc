// A worker's leases: extended at a third of their length, for as long as the handler runs.
#include <algorithm>
#include <utility>

#include "sdk/cpp/src/worker_core.h"

namespace delayq {
inline namespace v1 {

namespace {

/// A lease of unknown length is extended by this, to learn the server's clock.
constexpr std::chrono::milliseconds kProbe = std::chrono::minutes{1};
constexpr std::chrono::milliseconds kShortestLease{100};
constexpr std::chrono::milliseconds kLongestLease = std::chrono::hours{24};
constexpr std::chrono::milliseconds kAgain{500};  ///< after a look that came to nothing

std::chrono::milliseconds unix_now() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::system_clock::now().time_since_epoch());
}

}  // namespace

/// EXTEND and GET, and what they have found.
class WorkerCore::Look final : public sdk::Call {
 public:
  Look(std::shared_ptr<WorkerCore> worker, JobPointer job)
      : worker_(std::move(worker)), job_(std::move(job)) {}

  void on_reply(std::uint32_t index, sdk::Value&& value) override {
    if (index == extend_index) {
      if (value.is_error()) {
        is_lost = sdk::error_of(value.text).code() == ErrorCode::stale_lease;
        return;
      }
      extended_until = std::chrono::milliseconds(value.integer);
      offset = *extended_until - extends_by - unix_now();
      return;
    }
    if (value.is_error() || value.is_null()) return;
    is_cancelled = value.number_of("cancel_requested") != 0;
    const bool is_ours = value.text_of("state") == "reserved" && value.number_of("attempts") == job_->attempt;
    if (is_ours) until = std::chrono::milliseconds(value.number_of("until_ms"));
  }
  void on_failure(std::uint32_t /*index*/, const Error& /*error*/) override {}
  void on_end() override { worker_->looked(*this); }

  const JobPointer& job() const { return job_; }

  static constexpr std::uint32_t kNoExtend = 9;
  std::uint32_t extend_index = kNoExtend;
  std::chrono::milliseconds extends_by{};

  bool is_lost = false;
  bool is_cancelled = false;
  std::optional<std::chrono::milliseconds> until{};           ///< as GET says it
  std::optional<std::chrono::milliseconds> extended_until{};  ///< as EXTEND says it
  std::optional<std::chrono::milliseconds> offset{};

 private:
  std::shared_ptr<WorkerCore> worker_;
  JobPointer job_;
};

void WorkerCore::keep_leases() {
  std::unique_lock lock(mutex_);
  while (!is_over_) {
    const Steady::time_point now = Steady::now();
    Steady::time_point next = Steady::time_point::max();
    std::vector<JobPointer> due;
    for (const JobPointer& job : jobs_) {
      if (job->is_looked_after || job->is_given_up || job->reason() == StopReason::lease_lost) continue;
      if (job->next_look <= now) {
        job->is_looked_after = true;
        due.push_back(job);
      } else {
        next = std::min(next, job->next_look);
      }
    }
    if (!due.empty()) {
      lock.unlock();
      for (const JobPointer& job : due) look(job);
      lock.lock();
      continue;
    }
    keeper_wakes_ = next;
    if (next == Steady::time_point::max()) {
      keep_.wait(lock);
    } else {
      keep_.wait_until(lock, next);
    }
  }
}

void WorkerCore::look(const JobPointer& job) {
  auto call = std::make_unique<Look>(shared_from_this(), job);
  std::optional<std::chrono::milliseconds> length;
  bool knows_clock = false;
  {
    const std::lock_guard lock(mutex_);
    length = job->lease_length;
    knows_clock = clock_offset_.has_value();
  }
  sdk::Words get;
  get << "GET" << job->topic << job->id;
  sdk::Words extend;
  call->extends_by = length.value_or(kProbe);
  (extend << "EXTEND" << job->lease).millis(call->extends_by);
  if (length) {
    call->extend_index = 0;
    extend.append_to(call->bytes);
    get.append_to(call->bytes);
  } else {
    get.append_to(call->bytes);
    if (!knows_clock) {
      call->extend_index = 1;
      extend.append_to(call->bytes);
    }
  }
  call->commands = length || !knows_clock ? 2 : 1;
  client_->set_times(*call);
  call->is_safe_to_repeat = true;
  client_->pipe().send(std::move(call));
}

void WorkerCore::looked(const Look& look) {
  RunningJob& job = *look.job();
  if (look.is_lost) job.tell(StopReason::lease_lost);
  if (look.is_cancelled && !look.is_lost) job.tell(StopReason::cancelled);
  const Steady::time_point now = Steady::now();
  const std::lock_guard lock(mutex_);
  if (look.offset) clock_offset_ = look.offset;
  job.is_looked_after = false;
  job.next_look = now + kAgain;
  const bool knew_length = job.lease_length.has_value();
  if (knew_length && look.extended_until) {
    job.until = sdk::moment_of(look.extended_until->count());
    job.next_look = now + *job.lease_length / 3;
  } else if (!knew_length && look.until && clock_offset_) {
    const auto age = std::chrono::duration_cast<std::chrono::milliseconds>(now - job.popped_at);
    const auto left = *look.until - (unix_now() + *clock_offset_);
    job.lease_length = std::clamp(left + age, kShortestLease, kLongestLease);
    job.until = sdk::moment_of(look.until->count());
    // The probe may have made it shorter or longer: it is set right at once.
    job.next_look = look.extended_until ? now : job.popped_at + *job.lease_length / 3;
  } else if (!knew_length && !look.until) {
    // It is not ours any more, as it seems. EXTEND will say so.
    job.lease_length = kProbe;
    job.next_look = now;
  }
  keep_.notify_one();
}

}  // namespace v1
}  // namespace delayq
