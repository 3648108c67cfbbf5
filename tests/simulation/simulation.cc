#include "tests/simulation/simulation.h"

#include <array>
#include <optional>

#include <fmt/format.h>

#include "engine/journal/check.h"
#include "tests/simulation/faults.h"
#include "tests/simulation/rot.h"
#include "tests/simulation/workload.h"

namespace delayq::simulation {
namespace {

constexpr int kOpeningTries = 20;
constexpr int kMostTurns = 20'000;
constexpr uint64_t kSlackSegments = 8;  // as 256 MiB are to segments of 32 MiB

journal::JournalOptions options_for(Random& random) {
  constexpr std::array<uint64_t, 4> kSegments{4'096, 8'192, 16'384, 65'536};
  journal::JournalOptions options;
  options.segment_bytes = kSegments[random.below(kSegments.size())];
  options.disk_reserve = options.segment_bytes * 2;
  return options;
}

/// Every second seed has schedules. The others are as they were when there were none, so that what was found
/// by them stays found.
std::optional<uint64_t> planner_seed(uint64_t seed) {
  return seed % 2 == 0 ? std::nullopt : std::optional(mix64(seed + 2));
}

/// One seed: lives of the server, one after the other.
class Simulation {
 public:
  Simulation(uint64_t seed, const Planted& planted, bool tracing)
      : random_(seed),
        witness_(tracing),
        shape_(Shape::random(random_)),
        world_(random_.next(), options_for(random_), witness_),
        workload_(world_, random_, shape_, planner_seed(seed)),
        faults_(world_, random_),
        rot_(world_, random_) {
    world_.disk().set_syncs_lie(planted.syncs_lie);
    if (tracing) {
      witness_.say(fmt::format("{} topics, {} ids, {} lives of {} actions, segments of {} bytes",
                               shape_.topics, shape_.ids, shape_.lives, shape_.actions,
                               world_.options().segment_bytes));
    }
  }

  Outcome run() {
    for (uint32_t life = 0; life < shape_.lives && !witness_.failed(); ++life) live();
    if (!witness_.failed()) finish();
    outcome_.failure = witness_.failure();
    outcome_.operations = workload_.operations();
    outcome_.handed_over = workload_.handed_over();
    outcome_.occurrences = world_.model().occurrences().made();
    outcome_.faults = world_.disk().faults_fired();
    return outcome_;
  }

 private:
  void live() {
    if (!world_.is_open()) {
      faults_.before_opening();
      if (!open()) return;
    }
    faults_.begin_life();
    for (uint32_t action = 0; action < shape_.actions; ++action) {
      faults_.pass();
      step();
      if (witness_.failed()) return;
      if (world_.is_off()) return crash(faults_.end_of_stopped());
    }
    const End end = faults_.choose_end();
    if (end == End::kStop || end == End::kClose) {
      rest();
      if (witness_.failed()) return;
      if (world_.is_off()) return crash(faults_.end_of_stopped());
      close(end);
    } else {
      crash(end);
    }
  }

  bool open() {
    for (int tries = 0; tries < kOpeningTries; ++tries) {
      const uint64_t faults = world_.disk().faults_fired();
      witness_.say(fmt::format("---- open at {}", to_unix_ms(world_.now())));
      const Status opened = world_.open();
      if (witness_.failed()) return false;
      if (world_.is_off()) {
        crash(faults_.end_of_stopped());
      } else if (opened.ok()) {
        ++outcome_.lives;
        return true;
      } else if (world_.disk().faults_fired() > faults) {
        world_.end(End::kKill);
      } else {
        witness_.fail("open: " + to_string(opened.error()));
        return false;
      }
      if (tries > 3) world_.disk().forget_faults();
    }
    witness_.fail("open: never");
    return false;
  }

  void crash(End how) {
    ++outcome_.crashes;
    world_.end(how);
    workload_.disconnect();
  }

  void close(End how) {
    world_.end(how, random_.chance(1, 2));
    workload_.disconnect();
    if (!world_.ended_well() || witness_.failed()) return;
    check_directory();
    if (!witness_.failed() && random_.chance(1, 3)) rot_.misplace_closed();
    if (!witness_.failed() && random_.chance(1, 3) && rot_.strike_closed()) ++outcome_.lives;
  }

  /// What a good end leaves behind is clean, and has all jobs.
  void check_directory() {
    const Result<journal::CheckReport> report = journal::check(world_.disk());
    if (!report.ok()) return witness_.fail("check: " + to_string(report.error()));
    if (!report->is_clean()) return witness_.fail("check: " + to_string(*report));
    uint64_t found = 0;
    for (const uint64_t jobs : report->jobs) found += jobs;
    if (found != world_.model().jobs().size()) {
      witness_.fail(fmt::format("check: finds {} jobs, should be {}", found, world_.model().jobs().size()));
    }
    if (report->schedules != world_.model().schedules().size()) {
      witness_.fail(fmt::format("check: finds {} schedules, should be {}", report->schedules,
                                world_.model().schedules().size()));
    }
  }

  /// Twice what is needed, and a few segments.
  void check_disk_bound() {
    if (!world_.is_sound()) return;  // what could not be removed is still there
    uint64_t needed = 0;
    for (const auto& [topic, settings] : world_.model().settings())
      needed += topic.size() + settings.size() + 64;
    for (const support::SeenJob& job : world_.model().expected()) {
      needed += 160 + job.topic.size() + job.id.size() + job.group.size() + job.options.size() +
                job.body.size() + job.outcome.size();
    }
    for (const auto& entry : world_.model().schedules()) {
      const StoredSchedule& schedule = entry->schedule;
      needed += 240 + schedule.name.size() + schedule.definition.size() + 2 * schedule.progress.size();
    }
    const uint64_t bound = 2 * needed + kSlackSegments * world_.options().segment_bytes;
    if (world_.disk().used_bytes() > bound) {
      witness_.fail(fmt::format("disk: {} bytes are used where {} are needed and {} allowed",
                                world_.disk().used_bytes(), needed, bound));
    }
  }

  void step() {
    const uint64_t dice = random_.below(100);
    if (dice < 84) {
      workload_.act();
    } else if (dice < 96) {
      move_clock();
    } else if (dice < 99) {
      rest();
    } else if (!world_.is_off() && !world_.is_careful()) {
      world_.checked().audit(world_.now());
    }
    for (uint64_t work = random_.below(shape_.disk_eagerness + 1); work > 0 && !world_.is_off(); --work) {
      switch (random_.below(4)) {
        case 0:
          world_.io().step(journal::Lane::kWrite);
          break;
        case 1:
          world_.io().step(journal::Lane::kRead);
          break;
        case 2:
          world_.io().step(journal::Lane::kCopy);
          break;
        default:
          world_.queue().poll(world_.now());
      }
    }
  }

  void move_clock() {
    const uint64_t dice = random_.below(100);
    Moment to = world_.now();
    if (dice < 50) {
      to += Millis{random_.below(200)};
    } else if (dice < 80) {
      const Moment next = world_.tick();
      to = next == kNever || next > to + std::chrono::days{30} ? to + Millis{1} : std::max(next, to);
    } else if (dice < 95) {
      to += Millis{random_.below(20'000)};
    } else if (dice < 98) {
      to += Millis{random_.below(20'000'000)};
    } else {
      to -= Millis{random_.below(30'000)};
      workload_.clock_went_back();
    }
    if (witness_.tracing()) witness_.say(fmt::format("clock {}", to_unix_ms(to)));
    world_.set_now(to);
    if (!shape_.ticks_late || random_.chance(1, 2)) world_.tick();
  }

  /// Everything comes to rest; then nothing may be left undone.
  void rest() {
    if (world_.is_off()) return;
    for (int rounds = 0; rounds < 3; ++rounds) {
      world_.tick();
      world_.settle();
    }
    if (world_.is_off() || witness_.failed()) return;
    workload_.check_at_rest();
    if (world_.is_careful() || world_.checked().has_failed()) return;
    world_.checked().audit(world_.now());
    if (witness_.failed() || world_.is_off()) return;
    check_disk_bound();
    if (random_.chance(1, 5)) rot_.strike_running();
  }

  /// A last life without faults: all that is left must be there.
  void finish() {
    world_.disk().forget_faults();
    if (!world_.is_open() && !open()) return;
    rest();
    if (!witness_.failed() && !world_.is_off()) decide_all();
    if (!witness_.failed()) world_.end(End::kStop);
  }

  /// Lets the schedules decide about all that is due. Every tick makes one job of each.
  void decide_all() {
    for (int rounds = 0; rounds < kMostTurns; ++rounds) {
      uint64_t revisions = 0;
      bool is_due = false;
      for (const auto& entry : world_.model().schedules()) {
        revisions += entry->schedule.revision;
        is_due |= entry->schedule.next <= world_.now();
      }
      if (!is_due) return check_schedules();
      world_.tick();
      world_.settle();
      if (witness_.failed()) return;
      for (const auto& entry : world_.model().schedules()) revisions -= entry->schedule.revision;
      // Nothing has moved: what was told and not done is told again after a while.
      if (revisions == 0) world_.set_now(world_.now() + kDueScheduleReminder);
    }
    witness_.fail("schedules: one is due and is never turned");
  }

  void check_schedules() {
    for (const auto& entry : world_.model().schedules()) {
      const std::string wrong = world_.model().occurrences().check_counts(entry->schedule);
      if (!wrong.empty()) witness_.fail(fmt::format("schedule {}: {}", entry->schedule.name, wrong));
    }
  }

  Random random_;
  Witness witness_;
  Shape shape_;
  World world_;
  Workload workload_;
  Faults faults_;
  Rot rot_;
  Outcome outcome_;
};

}  // namespace

void Outcome::add(const Outcome& other) {
  operations += other.operations;
  handed_over += other.handed_over;
  occurrences += other.occurrences;
  lives += other.lives;
  crashes += other.crashes;
  faults += other.faults;
}

Outcome simulate(uint64_t seed, const Planted& planted, bool tracing) {
  journal::planted_bug = planted.inside;
  return Simulation(seed, planted, tracing).run();
}

}  // namespace delayq::simulation
