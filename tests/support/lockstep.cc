#include "tests/support/lockstep.h"

#include <algorithm>

#include <fmt/format.h>

#include "tests/support/answer_text.h"

namespace delayq::support {

namespace {

constexpr size_t kLinesRemembered = 40;

}  // namespace

Lockstep::Lockstep(Engine& model, Engine& subject, std::function<bool()> pump)
    : model_{EngineDriver(model), {}}, subject_{EngineDriver(subject, std::move(pump)), {}} {}

std::optional<std::string> Lockstep::play(const Step& step) {
  latest_ = std::max(latest_, step.now);
  std::string texts[2];
  Side* sides[2] = {&model_, &subject_};
  for (size_t i = 0; i < 2; ++i) {
    EngineDriver& driver = sides[i]->driver;
    driver.go_to(step.now);
    if (step.tick_first) driver.tick();
    Player player{driver, sides[i]->leases};
    texts[i] = step.run(player);
  }
  remember(fmt::format("{} {}{} -> {}", to_unix_ms(step.now), step.tick_first ? "" : "(no tick) ", step.text,
                       texts[0]));
  if (auto difference = compare_texts(step.text, texts[0], texts[1])) return difference;
  return compare_news();
}

std::set<size_t> Lockstep::expired_numbers(Side& side) {
  std::set<size_t> numbers;
  for (const LeaseInfo& info : side.driver.expired_news()) {
    const std::optional<size_t> number = side.leases.number_of(info.topic, info.lease);
    // A lease that was never given out is a defect; no number is higher than this one.
    numbers.insert(number.value_or(SIZE_MAX));
  }
  return numbers;
}

std::optional<std::string> Lockstep::compare_news() {
  for (const std::string& topic : model_.driver.ready_news()) ready_owed_.insert(topic);
  for (const std::string& topic : subject_.driver.ready_news()) ready_owed_.erase(topic);

  expired_now_ = expired_numbers(model_);
  const std::set<size_t> subject = expired_numbers(subject_);
  for (const size_t number : expired_now_) {
    if (!model_.leases.is_expired(number) || !subject_.leases.is_expired(number))
      expired_owed_.insert(number);
    model_.leases.mark_expired(number);
    subject_.leases.mark_expired(number);
  }
  for (const size_t number : subject) {
    if (number == SIZE_MAX) return "a lease was told as expired that was never given out";
    if (!model_.leases.is_expired(number))
      return fmt::format("lease {} was told as expired before its time", number);
    expired_owed_.erase(number);
  }
  return compare_schedule_news();
}

std::optional<std::string> Lockstep::compare_schedule_news() {
  for (const StoredSchedule& due : model_.driver.schedule_news()) {
    if (!due_told_.contains(due.revision)) due_owed_[due.name] = due.revision;
  }
  for (const StoredSchedule& due : subject_.driver.schedule_news()) {
    if (due.next > latest_) return "a schedule was told before its time: " + to_text(due);
    const std::optional<StoredSchedule> is = model_.driver.get_schedule(due.name);
    if (is && is->revision == due.revision && *is != due)
      return compare_texts("a due schedule", to_text(*is), to_text(due));
    due_told_.insert(due.revision);
    const auto owed = due_owed_.find(due.name);
    if (owed != due_owed_.end() && owed->second == due.revision) due_owed_.erase(owed);
  }
  return std::nullopt;
}

std::optional<std::string> Lockstep::compare_schedules() {
  const std::vector<StoredSchedule> schedules = model_.driver.all_schedules();
  if (auto difference =
          compare_texts("schedules", to_text(schedules), to_text(subject_.driver.all_schedules(2)))) {
    return difference;
  }
  for (const StoredSchedule& schedule : schedules) {
    const auto owed = due_owed_.find(schedule.name);
    if (owed != due_owed_.end() && owed->second == schedule.revision)
      return "a schedule is due and that was not told: " + to_text(schedule);
  }
  due_owed_.clear();
  if (model_.driver.usage().schedules != subject_.driver.usage().schedules)
    return "usage().schedules differs";
  return std::nullopt;
}

std::optional<std::string> Lockstep::compare_everything() {
  model_.driver.tick();
  subject_.driver.tick();
  subject_.driver.flush();
  if (auto difference = compare_news()) return difference;
  for (const size_t number : expired_owed_) {
    if (!expired_now_.contains(number)) continue;
    const LeaseRef ref = model_.leases.ref(number);
    return fmt::format("lease {} of {} ran out and that was not told", number, brief(ref.topic));
  }
  for (const std::string& topic : ready_owed_) {
    if (model_.driver.count(topic, JobState::kReady) > 0) return "no news of ready jobs in " + brief(topic);
  }
  ready_owed_.clear();
  expired_owed_.clear();

  const std::vector<std::string> topics = model_.driver.topic_names();
  if (auto difference = compare_texts("topics", to_text(topics), to_text(subject_.driver.topic_names()))) {
    return difference;
  }
  for (const std::string& topic : topics) {
    if (auto difference = compare_topic(topic)) return difference;
  }
  if (auto difference = compare_texts("settings", to_text(model_.driver.load_settings()),
                                      to_text(subject_.driver.load_settings()))) {
    return difference;
  }
  if (auto difference = compare_schedules()) return difference;
  if (model_.driver.usage().jobs != subject_.driver.usage().jobs) return "usage().jobs differs";
  return compare_forecast();
}

std::optional<std::string> Lockstep::compare_topic(const std::string& topic) {
  if (auto difference = compare_texts("counts of " + topic, to_text(model_.driver.counts(topic)),
                                      to_text(subject_.driver.counts(topic)))) {
    return difference;
  }
  for (size_t state = 0; state < kJobStateCount; ++state) {
    ListRequest request;
    request.topic = topic;
    request.state = static_cast<JobState>(state);
    request.with_bodies = true;
    const auto jobs = [&](Side& side) {
      return to_text(in_comparable_order(side.driver.list_all(request), has_restarted_));
    };
    if (auto difference = compare_texts(fmt::format("{} jobs of {}", name_of(request.state), brief(topic)),
                                        jobs(model_), jobs(subject_))) {
      return difference;
    }
  }
  return std::nullopt;
}

/// At every edge between two bins, the subject must have counted as many jobs as the model has up to some
/// time that is at most the resolution away from the edge.
std::optional<std::string> Lockstep::compare_forecast() {
  ForecastRequest request;
  request.from = subject_.driver.now();
  request.bins = 16;
  for (const Millis span : {Millis{1'600}, Millis{160'000}, Millis{16'000'000'000}}) {
    request.to = request.from + span;
    const Forecast forecast = subject_.driver.forecast(request);
    const auto model_up_to = [&](Moment moment) -> uint64_t {
      ForecastRequest part = request;
      part.to = moment;
      part.bins = 1;
      return moment <= part.from ? 0 : model_.driver.forecast(part).bins[0];
    };
    uint64_t counted = 0;
    for (uint32_t bin = 0; bin < request.bins; ++bin) {
      counted += forecast.bins[bin];
      const Moment edge = request.from + span / request.bins * (bin + 1);
      const Millis slack = forecast.resolution - Millis{1};
      if (counted < model_up_to(edge - slack) || counted > model_up_to(edge + slack)) {
        return fmt::format("forecast of {} ms: {} jobs up to bin {}, the model has {} to {}", span.count(),
                           counted, bin, model_up_to(edge - slack), model_up_to(edge + slack));
      }
    }
  }
  return std::nullopt;
}

std::optional<std::string> Lockstep::compare_texts(std::string_view what, const std::string& model,
                                                   const std::string& subject) {
  if (model == subject) return std::nullopt;
  return fmt::format("{}\n    model:   {}\n    subject: {}", what, model, subject);
}

void Lockstep::remember(std::string line) {
  lines_.push_back(std::move(line));
  if (lines_.size() > kLinesRemembered) lines_.pop_front();
}

std::string Lockstep::trace() const {
  std::string text;
  for (const std::string& line : lines_) text += "  " + line + "\n";
  return text;
}

}  // namespace delayq::support
