#include "bench/micro/harness.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sys/resource.h>
#include <unistd.h>

#include <fmt/format.h>

#include "core/random.h"

namespace delayq::bench {

namespace {

constexpr size_t kIdSize = 20;
constexpr size_t kBatch = 2048;
bool smoke_size = false;

[[noreturn]] void die(const std::string& why) {
  fmt::print(stderr, "{}\n", why);
  std::exit(1);
}

template <class T>
T must(Result<T> result) {
  if (!result.ok()) die(to_string(result.error()));
  return std::move(result).value();
}

void write_id(uint64_t number, char* out) { fmt::format_to_n(out, kIdSize, "job:{:016x}", mix64(number)); }

}  // namespace

journal::JournalOptions EngineHost::default_options() {
  journal::JournalOptions options;
  options.seed = 42;
  return options;
}

EngineHost::EngineHost(const std::string& directory, journal::JournalOptions options)
    : directory_(directory), options_(options) {
  open();
}

void EngineHost::open() {
  disk_ = must(journal::PosixDisk::open(directory_));
  io_ = std::make_unique<journal::ThreadedIo>();
  engine_ = must(journal::JournalEngine::open(*disk_, *io_, options_, now));
  engine_->set_wakeup([this] {
    const std::lock_guard lock(mutex_);
    is_woken_ = true;
    woken_.notify_one();
  });
}

void EngineHost::close() {
  flush();
  engine_.reset();
  io_.reset();
  disk_.reset();
}

void EngineHost::poll() {
  while (engine_->poll(*this)) {
  }
}

void EngineHost::until(const std::function<bool()>& done) {
  for (;;) {
    poll();
    if (done()) return;
    std::unique_lock lock(mutex_);
    woken_.wait(lock, [&] { return is_woken_; });
    is_woken_ = false;
  }
}

void EngineHost::flush() {
  bool done = false;
  engine_->flush([&](const Result<bool>&) { done = true; });
  until([&] { return done; });
}

JobMaker::JobMaker(std::string topic, size_t body_size, Millis first_delay, Millis last_delay, uint64_t seed)
    : topic_(std::move(topic)),
      body_(body_size, 'b'),
      first_delay_(static_cast<uint64_t>(first_delay.count())),
      last_delay_(static_cast<uint64_t>(last_delay.count())),
      seed_(seed) {}

std::string JobMaker::id(uint64_t number) {
  std::string text(kIdSize, '\0');
  write_id(number, text.data());
  return text;
}

const std::vector<NewJob>& JobMaker::make(uint64_t first, size_t count, Moment now) {
  ids_.resize(count * kIdSize);
  jobs_.resize(count);
  for (size_t i = 0; i < count; ++i) {
    write_id(first + i, ids_.data() + i * kIdSize);
    NewJob& job = jobs_[i];
    job.topic = topic_;
    job.id = {ids_.data() + i * kIdSize, kIdSize};
    job.body = body_;
    const uint64_t delay = first_delay_ + mix64((first + i) ^ seed_) % (last_delay_ - first_delay_ + 1);
    job.due = now + Millis{static_cast<int64_t>(delay)};
  }
  return jobs_;
}

void fill(EngineHost& host, JobMaker& maker, uint64_t first, uint64_t count) {
  uint64_t answered = 0;
  uint64_t asked = 0;
  for (uint64_t at = first; at < first + count; at += kBatch) {
    const size_t size = std::min<uint64_t>(kBatch, first + count - at);
    host->push(host.now, maker.make(at, size, host.now), [&answered](Result<std::vector<PushAnswer>> answer) {
      for (const PushAnswer& one : must(std::move(answer))) answered += one.outcome == PushOutcome::kCreated;
    });
    asked += size;
    // While one batch is on its way to the disk, the next one is made; not more.
    host.until([&] { return answered + kBatch >= asked; });
  }
  host.until([&] { return answered == count; });
}

uint64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  uint64_t total = 0;
  uint64_t resident = 0;
  statm >> total >> resident;
  return resident * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void report(std::string_view what, const std::string& measured, std::string_view bar, bool met) {
  fmt::print("{:<58} {:>22}", what, measured);
  if (!bar.empty()) fmt::print("   bar {:<18} {}", bar, smoke_size ? "(smoke size)" : met ? "met" : "MISSED");
  fmt::print("\n");
  std::fflush(stdout);
}

bool is_smoke(int argc, char** argv) {
  smoke_size =
      std::any_of(argv + 1, argv + argc, [](const char* arg) { return std::string_view(arg) == "--smoke"; });
  return smoke_size;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace delayq::bench
