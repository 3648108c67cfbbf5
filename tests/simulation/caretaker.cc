#include "tests/simulation/caretaker.h"

#include <fmt/format.h>

namespace delayq::simulation {

template <class T>
Reply<T> Caretaker::note(std::string verb, std::optional<ErrorCode> expected) {
  const Scene::Ticket ticket = scene_.ask(verb);
  return [this, ticket, expected, verb = std::move(verb)](Result<T> answer) {
    if (!scene_.answered(ticket) || answer.ok()) return;
    if (answer.error().code != expected) scene_.check_error(verb, answer.error());
  };
}

void Caretaker::redrive() {
  const std::string topic = scene_.topic();
  scene_.say([&] { return "redrive " + topic; });
  switch (scene_.random().below(3)) {
    case 0:
      return scene_.queue().redrive_all(scene_.now(), topic, note<uint64_t>("redrive_all"));
    case 1:
      return scene_.queue().redrive_by_error(scene_.now(), topic, "500", note<uint64_t>("redrive_by_error"));
    default: {
      const std::string first = scene_.id();
      const std::string second = scene_.id();
      const std::vector<std::string_view> ids{first, second};
      return scene_.queue().redrive(scene_.now(), topic, ids, note<uint64_t>("redrive"));
    }
  }
}

void Caretaker::purge() {
  const std::string topic = scene_.topic();
  std::optional<JobState> state;
  if (scene_.chance(80)) state = static_cast<JobState>(scene_.random().below(kJobStateCount));
  scene_.say([&] { return fmt::format("purge {} {}", topic, state ? name_of(*state) : "all"); });
  scene_.queue().purge(scene_.now(), topic, state, note<uint64_t>("purge"));
}

void Caretaker::look_up() {
  const std::string topic = scene_.topic();
  const std::string id = scene_.id();
  scene_.say([&] { return fmt::format("look up {}/{}", topic, id); });
  if (scene_.chance(70)) {
    scene_.queue().get(scene_.now(), {topic, id}, note<std::optional<FoundJob>>("get"));
  } else {
    scene_.queue().find(scene_.now(), id, kAllTopics,
                        note<std::optional<FoundJob>>("find", ErrorCode::kConflict));
  }
}

void Caretaker::list() {
  const bool goes_on = !cursor_.empty() && scene_.chance(50);
  if (!goes_on) {
    cursor_.clear();
    cursor_topic_ = scene_.topic();
    cursor_state_ = static_cast<JobState>(scene_.random().below(kJobStateCount));
  }
  ListRequest request;
  request.topic = cursor_topic_;
  request.state = cursor_state_;
  request.limit = static_cast<uint32_t>(scene_.random().between(1, 20));
  request.with_bodies = scene_.chance(50);
  request.cursor = cursor_;
  if (scene_.chance(20)) request.id_prefix = "job 1";
  if (scene_.chance(20)) request.outcome_contains = "refused";
  scene_.say([&] { return fmt::format("list {} {} {}", request.topic, name_of(request.state), cursor_); });
  const Scene::Ticket ticket = scene_.ask("list");
  scene_.queue().list(scene_.now(), request, [this, ticket](Result<JobPage> page) {
    if (!scene_.answered(ticket)) return;
    // An old cursor may be refused: the server need not remember it for ever.
    if (!page.ok() && page.error().code != ErrorCode::kInvalid)
      return scene_.check_error("list", page.error());
    cursor_ = page.ok() ? page->cursor : "";
  });
}

void Caretaker::watch() {
  const std::string topic = scene_.topic();
  scene_.say([&] { return "watch " + topic; });
  switch (scene_.random().below(4)) {
    case 0:
      return scene_.queue().topics(scene_.now(), scene_.chance(50) ? "t1" : "", 3,
                                   note<TopicSummaries>("topics"));
    case 1:
      return scene_.queue().stats(scene_.now(), topic, note<TopicStats>("stats"));
    case 2:
      return scene_.queue().totals(scene_.now(), note<TotalStats>("totals"));
    default: {
      const Moment from = scene_.now() + scene_.delay();
      const ForecastRequest request{scene_.chance(50) ? topic : std::string_view{}, from,
                                    from + Millis{1} + scene_.delay(),
                                    static_cast<uint32_t>(scene_.random().between(1, 9))};
      return scene_.queue().forecast(scene_.now(), request, kAllTopics, note<ForecastReport>("forecast"));
    }
  }
}

void Caretaker::change_settings() {
  Random& random = scene_.random();
  Settings settings;
  if (scene_.chance(50)) settings.attempts = static_cast<uint32_t>(random.below(5));
  if (scene_.chance(50))
    settings.backoff = StepBackoff{{Millis{random.below(100)}, Millis{random.below(30'000)}}};
  if (scene_.chance(40)) settings.lease = Millis{100 + random.below(5'000)};
  if (scene_.chance(50))
    settings.keep_done = Retention{scene_.delay() % Millis{60'000}, uint32_t(random.below(6))};
  if (scene_.chance(50))
    settings.keep_dead = Retention{scene_.delay() % Millis{600'000}, uint32_t(random.below(9))};
  if (scene_.chance(10))
    settings.rate = Rate{uint32_t(1 + random.below(5)), Millis{100 + random.below(2'000)}};
  if (scene_.chance(15)) settings.concurrency = static_cast<uint32_t>(random.below(4));
  if (scene_.chance(5)) settings.paused = true;
  const std::string name = scene_.chance(10) ? std::string(kDefaultsName) : scene_.topic();
  scene_.say([&] { return fmt::format("settings of {}", name); });
  scene_.queue().set_settings(scene_.now(), name, std::move(settings), note<void>("set_settings"));
}

void Caretaker::pause_or_resume() {
  const std::string topic = scene_.topic();
  const bool pause = scene_.chance(30);
  scene_.say([&] { return (pause ? "pause " : "resume ") + topic; });
  if (pause) {
    scene_.queue().pause(scene_.now(), topic, note<void>("pause"));
  } else {
    scene_.queue().resume(scene_.now(), topic, note<void>("resume"));
  }
}

void Caretaker::take_along() {
  ExportRequest request;
  request.limit = static_cast<uint32_t>(scene_.random().between(1, 20));
  request.cursor = export_cursor_;
  scene_.say([&] { return fmt::format("export {}", export_cursor_); });
  const Scene::Ticket ticket = scene_.ask("export");
  scene_.queue().export_page(scene_.now(), request, [this, ticket](const Result<ExportPage>& page) {
    if (!scene_.answered(ticket)) return;
    if (!page.ok() && page.error().code != ErrorCode::kInvalid)
      return scene_.check_error("export", page.error());
    export_cursor_ = page.ok() ? page->cursor : "";
  });
}

void Caretaker::back_up() {
  if (scene_.world().is_backing_up()) return;
  scene_.say([&] { return std::string("backup"); });
  const Scene::Ticket ticket = scene_.ask("backup");
  scene_.world().back_up([this, ticket](const Status& status) {
    if (!scene_.answered(ticket) || status.ok() || !scene_.world().is_sound()) return;
    scene_.check_error("backup", status.error());
  });
}

}  // namespace delayq::simulation
