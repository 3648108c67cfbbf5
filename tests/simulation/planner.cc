#include "tests/simulation/planner.h"

#include <array>

#include <fmt/format.h>

#include "core/moment.h"

namespace delayq::simulation {
namespace {

constexpr uint64_t kNames = 4;

}  // namespace

/// A schedule with the texts that it points to.
struct Planner::Draft {
  std::string name;
  std::string topic;
  std::string group;
  std::string body;
  std::string_view cron;
  std::string_view zone;
  ScheduleSpec spec;

  ScheduleSpec view() const {
    ScheduleSpec viewed = spec;
    viewed.name = name;
    viewed.topic = topic;
    viewed.group = group;
    viewed.body = body;
    viewed.cron = cron;
    viewed.zone = zone;
    return viewed;
  }
};

template <class T>
Reply<T> Planner::note(std::string verb, std::optional<ErrorCode> expected) {
  const Scene::Ticket ticket = scene_.ask(verb);
  return [this, ticket, expected, verb = std::move(verb)](Result<T> answer) {
    if (!scene_.answered(ticket) || answer.ok()) return;
    if (answer.error().code != expected && answer.error().code != ErrorCode::kNotFound)
      scene_.check_error(verb, answer.error());
  };
}

void Planner::act() {
  const bool is_first = scene_.world().model().schedules().size() == 0;
  if (!chance(is_first ? 25 : 8)) return;
  if (is_first && chance(70)) return set();
  const uint64_t dice = random_.below(100);
  if (dice < 38) return set();
  if (dice < 40) return set_nonsense();
  if (dice < 62) return pause_or_resume();
  if (dice < 70) return run();
  if (dice < 75) return remove();
  if (dice < 85) return look();
  cancel();
}

std::string Planner::name() {
  const uint64_t number = random_.below(kNames);
  return number == 0 ? "отчёт" : fmt::format("s{}", number);
}

Planner::Draft Planner::draft() {
  constexpr std::array<std::string_view, 6> kCrons{"*/10 * * * * *", "5,25 * * * * *", "* * * * *",
                                                   "*/15 * * * *",   "0 */2 * * *",    "30 2 * * *"};
  constexpr std::array<int64_t, 6> kSeconds{10, 15, 47, 60, 300, 3'600};
  Draft draft;
  draft.name = name();
  draft.topic = scene_.topic(random_);
  if (chance(30)) draft.group = scene_.group(random_);
  draft.body = fmt::format("of a schedule {:<10}", random_.below(1'000'000));
  draft.body.resize(draft.body.size() + random_.below(scene_.shape().body_bytes / 4 + 1), '.');
  ScheduleSpec& spec = draft.spec;
  if (chance(50)) {
    spec.every = std::chrono::seconds{kSeconds[random_.below(kSeconds.size())]};
    if (chance(20)) *spec.every += millis(1'000);
  } else {
    draft.cron = kCrons[random_.below(kCrons.size())];
    if (chance(30)) draft.zone = chance(50) ? "Europe/Berlin" : "Asia/Shanghai";
  }
  if (chance(20)) spec.start = scene_.now() + millis(120'000) - Millis{60'000};
  if (chance(15)) spec.end = scene_.now() + Millis{60'000} + millis(1'200'000);
  if (chance(20)) spec.runs = random_.between(1, 5);
  if (chance(20)) spec.jitter = millis(30'000);
  spec.overlap = static_cast<Overlap>(random_.below(kOverlapNames.size()));
  spec.missed = static_cast<Missed>(random_.below(kMissedNames.size()));
  // What a long pause leaves is made up for one by one, which takes time.
  const bool is_fast = spec.every ? *spec.every < Millis{60'000} : draft.cron.ends_with("* * * * *");
  if (spec.missed == Missed::kAll && is_fast) spec.missed = Missed::kOne;
  if (chance(30)) spec.priority = static_cast<uint32_t>(random_.below(3) * 1'000);
  if (chance(15)) spec.options.attempts = static_cast<uint32_t>(random_.below(4));
  if (chance(15)) spec.options.callback = "http://receiver.example/";
  return draft;
}

void Planner::set() {
  const Draft draft = this->draft();
  const ScheduleSpec spec = draft.view();
  scene_.say([&] {
    return fmt::format("schedule {} for {} every={} cron={} {} overlap={} missed={} runs={}", spec.name,
                       spec.topic, spec.every ? spec.every->count() : -1, spec.cron, spec.zone,
                       name_of(spec.overlap), name_of(spec.missed), spec.runs.value_or(0));
  });
  scene_.queue().set_schedule(scene_.now(), spec, kAllTopics, note<ScheduleReceipt>("set_schedule"));
}

void Planner::set_nonsense() {
  Draft draft = this->draft();
  const bool is_fast = chance(50);
  if (is_fast) {
    draft.cron = draft.zone = {};
    draft.spec.every = Millis{9'999};
  } else {
    draft.spec.start = scene_.now() + Millis{2};
    draft.spec.end = scene_.now() + Millis{1};
  }
  scene_.say([&] { return fmt::format("schedule {} that cannot be", draft.name); });
  const Scene::Ticket ticket = scene_.ask("set_schedule");
  scene_.queue().set_schedule(scene_.now(), draft.view(), kAllTopics,
                              [this, ticket](const Result<ScheduleReceipt>& answer) {
                                if (!scene_.answered(ticket)) return;
                                if (answer.ok() || answer.error().code != ErrorCode::kInvalid)
                                  scene_.fail("set_schedule", "took a schedule that cannot be");
                              });
}

void Planner::pause_or_resume() {
  const std::string which = name();
  const bool pauses = chance(40);
  scene_.say([&] { return fmt::format("{} schedule {}", pauses ? "pause" : "resume", which); });
  if (pauses) {
    scene_.queue().pause_schedule(scene_.now(), which, kAllTopics, note<ScheduleView>("pause_schedule"));
  } else {
    scene_.queue().resume_schedule(scene_.now(), which, kAllTopics, note<ScheduleView>("resume_schedule"));
  }
}

void Planner::run() {
  const std::string which = name();
  scene_.say([&] { return fmt::format("run schedule {}", which); });
  scene_.queue().run_schedule(scene_.now(), which, kAllTopics, note<ScheduleRun>("run_schedule"));
}

void Planner::remove() {
  const std::string which = name();
  scene_.say([&] { return fmt::format("remove schedule {}", which); });
  scene_.queue().remove_schedule(scene_.now(), which, kAllTopics, note<void>("remove_schedule"));
}

void Planner::look() {
  if (chance(50)) {
    const std::string which = name();
    scene_.queue().get_schedule(scene_.now(), which, kAllTopics,
                                note<std::optional<ScheduleView>>("get_schedule"));
  } else {
    const ScheduleListing listing{.after = chance(50) ? "s1" : "",
                                  .limit = static_cast<uint32_t>(random_.between(1, 3))};
    scene_.queue().list_schedules(scene_.now(), listing, kAllTopics, note<ScheduleViews>("list_schedules"));
  }
}

void Planner::cancel() {
  std::vector<const memory::StoredJob*> made;
  for (const auto& [topic, in_topic] : scene_.world().model().jobs().topics()) {
    for (const auto& [id, job] : in_topic.jobs) {
      if (is_live(job.state) && occurrence_owner(id).size() != id.size()) made.push_back(&job);
    }
  }
  if (made.empty()) return;
  const memory::StoredJob& job = *made[random_.below(made.size())];
  const std::string topic = job.topic;
  const std::string id = job.id;
  scene_.say([&] { return fmt::format("cancel {}/{}", topic, id); });
  const JobRef ref{topic, id};
  scene_.queue().cancel(scene_.now(), {&ref, 1}, note<std::vector<Result<CancelOutcome>>>("cancel"));
}

}  // namespace delayq::simulation
