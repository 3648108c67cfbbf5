// How much disk the journal takes under churn: pushes, takes, nacks, reschedules and cancels of jobs that
// live from a second to thirty days, over simulated days. The bound is checked after every batch.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "bench/micro/harness.h"
#include "core/random.h"

namespace delayq::bench {
namespace {

constexpr std::string_view kTopic = "order";
constexpr uint64_t kConstant = 256u << 20;

class Churn {
 public:
  explicit Churn(const std::string& directory) : host_(directory) {}

  /// One batch of each verb; the clock moves on.
  void step(size_t batch) {
    push(batch);
    reschedule(batch / 4);
    cancel(batch / 2);
    hand_over(batch);
    host_.now += std::chrono::seconds(30);
    host_->tick(host_.now);
    settle();
    const EngineUsage usage = host_->usage();
    most_disk_ = std::max(most_disk_, usage.disk_bytes);
    const auto bound = static_cast<double>(2 * usage.live_bytes + kConstant);
    worst_ = std::max(worst_, static_cast<double>(usage.disk_bytes) / bound);
    live_ = usage.live_bytes;
  }

  double worst() const { return worst_; }
  uint64_t live() const { return live_; }
  uint64_t most_disk() const { return most_disk_; }
  uint64_t written() const { return written_; }

 private:
  /// Waits for the answers of this round, not for cleaning: the bound must hold while that is going on.
  void settle() {
    host_.until([&] { return open_ == 0; });
  }

  void push(size_t count) {
    ids_.clear();
    std::vector<NewJob> jobs(count);
    for (size_t i = 0; i < count; ++i) ids_.push_back(JobMaker::id(pushed_ + i));
    for (size_t i = 0; i < count; ++i) {
      // Lives spread evenly over the orders of magnitude from 1 s to 30 days.
      const uint64_t shift = random_.below(22);
      jobs[i].topic = kTopic;
      jobs[i].id = ids_[i];
      jobs[i].body = body_.substr(0, 64 + random_.below(body_.size() - 64));
      jobs[i].due = host_.now + std::chrono::seconds(
                                    1 + random_.below(std::min<uint64_t>(uint64_t{1} << shift, 2'592'000)));
      written_ += jobs[i].body.size() + 120;
    }
    pushed_ += count;
    ++open_;
    host_->push(host_.now, jobs, [this](const Result<std::vector<PushAnswer>>&) { --open_; });
  }

  /// Mostly young jobs, as in life.
  std::string some_id() {
    const uint64_t back = random_.below(uint64_t{1} << (1 + random_.below(20)));
    return JobMaker::id(pushed_ - 1 - std::min(back, pushed_ - 1));
  }

  void reschedule(size_t count) {
    std::vector<std::string> ids(count);
    std::vector<RescheduleRequest> requests(count);
    for (size_t i = 0; i < count; ++i) {
      ids[i] = some_id();
      requests[i] = {{kTopic, ids[i]}, host_.now + std::chrono::seconds(1 + random_.below(864'000))};
    }
    ++open_;
    host_->reschedule(host_.now, requests,
                      [this](const Result<std::vector<RescheduleOutcome>>&) { --open_; });
  }

  void cancel(size_t count) {
    std::vector<std::string> ids(count);
    std::vector<JobRef> refs(count);
    for (size_t i = 0; i < count; ++i) {
      ids[i] = some_id();
      refs[i] = {kTopic, ids[i]};
    }
    ++open_;
    host_->cancel(host_.now, refs, [this](const Result<std::vector<CancelOutcome>>&) { --open_; });
  }

  void hand_over(size_t count) {
    TakeRequest request;
    request.topic = kTopic;
    request.count = static_cast<uint32_t>(count);
    request.lease_until = host_.now + std::chrono::minutes(5);
    ++open_;
    host_->take(host_.now, request, [this](Result<TakeAnswer> answer) {
      --open_;
      std::vector<AckRequest> acks;
      std::vector<NackRequest> nacks;
      for (const TakenJob& taken : answer->jobs) {
        const LeaseRef lease{kTopic, taken.lease};
        if (random_.chance(1, 4)) {
          nacks.push_back(
              {lease, host_.now + std::chrono::seconds(10 + random_.below(3600)), {}, "no answer"});
        } else {
          acks.push_back({lease, {host_.now + std::chrono::hours(1), 1000}, {}});
        }
      }
      open_ += 2;
      host_->ack(host_.now, acks, [this](const Result<std::vector<AckOutcome>>&) { --open_; });
      host_->nack(host_.now, nacks, [this](const Result<std::vector<NackOutcome>>&) { --open_; });
    });
  }

  EngineHost host_;
  Random random_{1};
  std::string body_storage_ = std::string(1024, 'b');
  std::string_view body_ = body_storage_;
  std::vector<std::string> ids_;
  uint64_t pushed_ = 0;
  int open_ = 0;
  double worst_ = 0;
  uint64_t live_ = 0;
  uint64_t most_disk_ = 0;
  uint64_t written_ = 0;
};

void run(bool smoke) {
  const TempDirectory directory;
  Churn churn(directory.path());
  const int steps = smoke ? 10 : 4'000;
  for (int i = 0; i < steps; ++i) churn.step(smoke ? 100 : 2'000);
  report("pushed, in bytes of jobs", fmt::format("{} MiB", churn.written() >> 20));
  report("still live at the end", fmt::format("{} MiB", churn.live() >> 20));
  report("most disk at any time", fmt::format("{} MiB", churn.most_disk() >> 20));
  report("disk at its worst, of (2 x live + 256 MiB)", fmt::format("{:.0f} %", churn.worst() * 100),
         "<= 100 %", churn.worst() <= 1);
}

}  // namespace
}  // namespace delayq::bench

int main(int argc, char** argv) { delayq::bench::run(delayq::bench::is_smoke(argc, argv)); }
