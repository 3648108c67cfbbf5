// How the cost of a push, a cancel and a hand-over grows with the number of pending jobs.
//   growth_bench                       times, from 10,000 to 10 million pending jobs
//   growth_bench --instructions VERB PENDING     one measurement, for valgrind --tool=callgrind
//   --toggle-collect
#include <array>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "bench/micro/harness.h"

namespace delayq::bench {
namespace {

constexpr uint64_t kOperations = 200'000;
constexpr size_t kBatch = 512;
constexpr std::string_view kTopic = "order";

/// A verb over `count` jobs of one batch. Kept out of line, so that callgrind can be told to count only this.
[[gnu::noinline]] void measured_push(EngineHost& host, const std::vector<NewJob>& jobs, uint64_t& answered) {
  host->push(host.now, jobs, [&](Result<std::vector<PushAnswer>> answers) { answered += answers->size(); });
}

[[gnu::noinline]] void measured_cancel(EngineHost& host, const std::vector<JobRef>& jobs,
                                       uint64_t& answered) {
  host->cancel(host.now, jobs, [&](Result<std::vector<CancelOutcome>> outcomes) {
    for (const CancelOutcome outcome : *outcomes) answered += outcome == CancelOutcome::kCancelled;
  });
}

[[gnu::noinline]] void measured_hand_over(EngineHost& host, uint64_t& answered,
                                          std::vector<std::string>& leases) {
  TakeRequest request;
  request.topic = kTopic;
  request.count = kBatch;
  request.lease_until = host.now + std::chrono::hours(1);
  host->take(host.now, request, [&](Result<TakeAnswer> answer) {
    answered += answer->jobs.size();
    for (const TakenJob& taken : answer->jobs) leases.emplace_back(taken.lease);
  });
}

/// Acks what was handed over, so that the number of pending jobs stays what it is.
void ack(EngineHost& host, std::vector<std::string>& leases) {
  std::vector<AckRequest> requests;
  for (const std::string& lease : leases) requests.push_back({{kTopic, lease}, {}, {}});
  bool done = false;
  host->ack(host.now, requests, [&](const Result<std::vector<AckOutcome>>&) { done = true; });
  host.until([&] { return done; });
  leases.clear();
}

class Growth {
 public:
  explicit Growth(uint64_t pending) : pending_(pending), host_(directory_.path()) {
    fill(host_, maker_, 0, pending);
  }

  /// Nanoseconds each.
  double push(uint64_t operations) {
    uint64_t answered = 0;
    const Stopwatch watch;
    for (uint64_t at = 0; at < operations; at += kBatch) {
      measured_push(host_, maker_.make(next_ += kBatch, kBatch, host_.now), answered);
      host_.until([&] { return answered + kBatch >= at + kBatch; });
    }
    host_.flush();
    return watch.seconds() * 1e9 / static_cast<double>(operations);
  }

  double cancel(uint64_t operations) {
    std::vector<std::string> ids;
    for (uint64_t i = 0; i < operations; ++i)
      ids.push_back(JobMaker::id((i * 2'654'435'761 + 11) % pending_));
    std::vector<JobRef> jobs;
    uint64_t answered = 0;
    const Stopwatch watch;
    for (uint64_t at = 0; at + kBatch <= operations; at += kBatch) {
      jobs.clear();
      for (uint64_t i = at; i < at + kBatch; ++i) jobs.push_back({kTopic, ids[i]});
      measured_cancel(host_, jobs, answered);
      host_.until([&] { return answered + kBatch >= at + kBatch; });
    }
    host_.flush();
    return watch.seconds() * 1e9 / static_cast<double>(operations);
  }

  double hand_over(uint64_t operations) {
    JobMaker due(std::string(kTopic), 128, Millis{0}, Millis{0});
    uint64_t taken = 0;
    double seconds = 0;
    std::vector<std::string> leases;
    for (uint64_t at = 0; at < operations; at += kBatch) {
      uint64_t pushed = 0;
      measured_push(host_, due.make((uint64_t{1} << 40) + at, kBatch, host_.now), pushed);
      host_.until([&] { return pushed == kBatch; });
      const Stopwatch watch;
      measured_hand_over(host_, taken, leases);
      host_.until([&] { return taken == at + kBatch; });
      seconds += watch.seconds();
      ack(host_, leases);
    }
    return seconds * 1e9 / static_cast<double>(operations);
  }

 private:
  uint64_t pending_;
  uint64_t next_ = uint64_t{1} << 32;
  TempDirectory directory_;
  JobMaker maker_{std::string(kTopic), 128, std::chrono::minutes(30), std::chrono::days(30)};
  EngineHost host_;
};

/// Few operations on few jobs, the same number on many, in turns: a noisy neighbour hits both.
void run(bool smoke) {
  const uint64_t few = smoke ? 2'000 : 10'000;
  const uint64_t many = smoke ? 20'000 : 10'000'000;
  // Cancelling uses jobs up, so the small size is measured on several fresh directories.
  const uint64_t operations = smoke ? 1'024 : kOperations;
  std::array<std::vector<double>, 3> small;
  Growth large(many);
  for (uint64_t done = 0; done < (smoke ? 1'024 : 20 * 5'120); done += 5'120) {
    Growth fresh(few);
    small[0].push_back(fresh.push(smoke ? 1'024 : 5'120));
    small[1].push_back(fresh.cancel(smoke ? 1'024 : 5'120));
    small[2].push_back(fresh.hand_over(smoke ? 1'024 : 5'120));
  }
  const std::array<double, 3> big{large.push(operations), large.cancel(operations),
                                  large.hand_over(operations)};
  const std::array<std::string_view, 3> names{"push", "cancel", "hand-over"};
  for (size_t verb = 0; verb < names.size(); ++verb) {
    const double before = median(small[verb]);
    report(fmt::format("{}: {} -> {} pending jobs", names[verb], few, many),
           fmt::format("{:.0f} -> {:.0f} ns, {:.2f}x", before, big[verb], big[verb] / before), "< 1.6x",
           big[verb] / before < 1.6);
  }
}

}  // namespace
}  // namespace delayq::bench

int main(int argc, char** argv) {
  using delayq::bench::Growth;
  if (argc == 4 && std::string_view(argv[1]) == "--instructions") {
    Growth growth(std::stoull(argv[3]));
    const std::string_view verb = argv[2];
    constexpr uint64_t kCounted = 4'096;
    const double ns = verb == "push"     ? growth.push(kCounted)
                      : verb == "cancel" ? growth.cancel(kCounted)
                                         : growth.hand_over(kCounted);
    return ns > 0 ? 0 : 1;
  }
  delayq::bench::run(delayq::bench::is_smoke(argc, argv));
}
