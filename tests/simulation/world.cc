#include "tests/simulation/world.h"

#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "engine/journal/check.h"

namespace delayq::simulation {
namespace {

constexpr Moment kBeginning = from_unix_ms(1'700'000'000'000);
constexpr int kMostRounds = 100'000;
constexpr Millis kGrace{50};

}  // namespace

std::string_view name_of(End end) {
  constexpr std::array<std::string_view, 4> kNames{"stop", "close", "kill", "power cut"};
  return kNames[static_cast<size_t>(end)];
}

World::World(uint64_t seed, journal::JournalOptions options, Witness& witness)
    : witness_(witness),
      options_(options),
      seed_(seed),
      now_(kBeginning),
      disk_(mix64(seed)),
      shelf_(mix64(seed + 1)) {
  options_.backups = &shelf_;
  if (witness_.tracing()) disk_.set_trace([this](const std::string& line) { witness_.say("    " + line); });
}

World::~World() {
  disk_.stop();  // whatever is under way is of no interest any more
}

Status World::open() {
  ++life_;
  io_ = std::make_unique<support::SteppedIo>();
  faults_at_opening_ = disk_.faults_fired();
  options_.seed = mix64(seed_ + life_);
  Result<std::unique_ptr<journal::JournalEngine>> opened =
      journal::JournalEngine::open(disk_, *io_, options_, now_);
  if (!opened.ok()) {
    io_.reset();
    return opened.error();
  }
  engine_ = std::move(*opened);
  checked_ = std::make_unique<CheckedEngine>(CheckedEngine::World{
      *engine_, model_, witness_, [this] { return pump(); }, [this] { return is_sound(); },
      [this](const TakeRequest& request) { return may_take(request); },
      [this] { disk_.set_capacity(UINT64_MAX); }});
  model_.begin_life();
  checked_->recover(now_, certain_);

  QueueConfig config;
  config.disk_free_bytes = options_.disk_reserve;
  queue_ = std::make_unique<Queue>(*checked_, config, options_.seed);
  bool started = false;
  queue_->start(now_, [&](const Result<void>& answer) {
    started = true;
    if (!answer.ok()) witness_.fail("start: " + to_string(answer.error()));
  });
  settle();
  if (!started && !is_off()) witness_.fail("start: was never answered");
  return {};
}

void World::set_careful(bool careful) {
  if (careful) settle();
  careful_ = careful && !is_off();
  checked_->set_careful(careful_);
}

void World::end(End how, bool then_power_cut) {
  if (witness_.tracing()) witness_.say(fmt::format("---- end of life {}: {}", life_, name_of(how)));
  if (is_open() && how == End::kStop && !is_off()) stop_queue();
  ended_well_ = how == End::kStop && is_open() && !is_off() && !checked_->has_failed();
  const bool dies = how == End::kKill || how == End::kPowerCut || is_off();
  if (dies) disk_.stop();
  // Closing lets what is under way come to its end; on a stopped disk that is nothing.
  queue_.reset();
  engine_.reset();
  checked_.reset();
  io_.reset();
  backup_.clear();
  if (how == End::kPowerCut || then_power_cut) shelf_.power_cut();
  careful_ = false;
  disk_.forget_faults();
  disk_.set_capacity(UINT64_MAX);
  certain_ = how == End::kPowerCut || then_power_cut;
  if (certain_) {
    disk_.power_cut();
  } else {
    disk_.kill();
  }
}

void World::back_up(std::function<void(const Status&)> done) {
  backup_ = fmt::format("copy-{}", ++backups_);
  queue_->backup(now_, backup_,
                 [this, life = life_, done = std::move(done)](const Result<BackupReport>& report) {
                   if (life != life_) return;
                   const std::string name = std::exchange(backup_, {});
                   support::VirtualDisk* const copy = shelf_.find(name);
                   if (report.ok() != (copy != nullptr))
                     witness_.fail("backup: answered one thing, did another");
                   if (copy != nullptr) check_copy(*copy);
                   done(report.ok() ? Status{} : Status(report.error()));
                 });
}

/// A server that is started on it must find nothing wrong.
void World::check_copy(support::VirtualDisk& copy) {
  copy.power_cut();
  const Result<journal::CheckReport> report = journal::check(copy);
  if (!report.ok()) return witness_.fail("backup: " + to_string(report.error()));
  if (!report->is_clean() || report->torn_bytes != 0 || report->unfinished_segments != 0)
    witness_.fail("backup: the copy is not whole: " + to_string(*report));
}

void World::stop_queue() {
  bool stopped = false;
  queue_->stop(now_, kGrace, [&](const Result<StopReport>& answer) {
    stopped = true;
    if (!answer.ok() && !checked_->has_failed()) witness_.fail("stop: " + to_string(answer.error()));
  });
  settle();
  if (stopped || is_off()) return;
  now_ += kGrace;
  tick();
  settle();
  if (!stopped && !is_off() && !checked_->has_failed()) witness_.fail("stop: was never answered");
}

Moment World::tick() { return queue_->tick(now_); }

void World::look_up_all(const Judge& judge) {
  for (const support::SeenJob& should : model_.expected()) {
    bool answered = false;
    engine_->get(now_, {should.topic, should.id}, [&](const Result<std::optional<FoundJob>>& found) {
      answered = true;
      if (!is_off()) judge(should, found);
    });
    for (int rounds = 0; rounds < kMostRounds && !answered && !is_off(); ++rounds) {
      pump();
      queue_->poll(now_);
    }
  }
}

bool World::pump() {
  io_->step(journal::Lane::kWrite);
  io_->step(journal::Lane::kRead);
  io_->step(journal::Lane::kCopy);
  return !is_off();
}

void World::settle() {
  for (int rounds = 0; rounds < kMostRounds; ++rounds) {
    if (is_off()) return;
    const bool wrote = io_->step(journal::Lane::kWrite);
    const bool read = io_->step(journal::Lane::kRead);
    const bool copied = io_->step(journal::Lane::kCopy);
    const bool answered = queue_->poll(now_);
    if (!wrote && !read && !copied && !answered && io_->idle()) return;
  }
  witness_.fail("the server never comes to rest");
}

std::string World::may_take(const TakeRequest& request) const {
  if (queue_ == nullptr) return {};
  const EffectiveSettings& settings = queue_->effective_settings(request.topic);
  if (settings.paused) return fmt::format("from {}, which is paused", request.topic);
  if (settings.concurrency != request.max_reserved) return "without regard to the topic's concurrency limit";
  return {};
}

}  // namespace delayq::simulation
