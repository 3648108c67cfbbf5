#include "tests/support/engine_driver.h"

#include <algorithm>

namespace delayq::support {

namespace {

// Far more than any engine needs for one reply: if the limit is reached, the reply never comes.
constexpr int kMostPolls = 100'000;
constexpr int kMostTicks = 10'000;
constexpr int kMostPages = 100'000;

}  // namespace

EngineDriver::EngineDriver(Engine& engine, std::function<bool()> pump)
    : engine_(&engine), pump_(std::move(pump)) {}

void EngineDriver::wait_for(std::string_view name, const std::function<bool()>& done) {
  for (int polls = 0; polls < kMostPolls; ++polls) {
    engine_->poll(*this);
    if (done()) return;
    if (pump_) pump_();
  }
  throw std::runtime_error(std::string{name} + " was never answered");
}

void EngineDriver::on_expired(std::vector<LeaseInfo> leases) {
  expired_news_.insert(expired_news_.end(), leases.begin(), leases.end());
}

void EngineDriver::on_schedules_due(std::vector<StoredSchedule> due) {
  schedule_news_.insert(schedule_news_.end(), due.begin(), due.end());
}

// ---- a job's life

PushAnswer EngineDriver::push(const JobSpec& job) { return push_all({job}).at(0); }

std::vector<PushAnswer> EngineDriver::push_all(const std::vector<JobSpec>& jobs) {
  return must<std::vector<PushAnswer>>(
      "push", [&](auto reply) { engine_->push(now_, views(jobs), std::move(reply)); });
}

std::vector<PushAnswer> EngineDriver::restore_all(const std::vector<RestoreRequest>& jobs) {
  return must<std::vector<PushAnswer>>("restore",
                                       [&](auto reply) { engine_->restore(now_, jobs, std::move(reply)); });
}

PushAnswer EngineDriver::restore(const SeenJob& job, OnConflict on_conflict, uint32_t keep_count) {
  return restore_all({{view_of(job), on_conflict, keep_count}}).at(0);
}

std::vector<Taken> EngineDriver::take(std::string_view topic, uint32_t count) {
  TakeRequest request;
  request.topic = topic;
  request.count = count;
  request.lease_until = now_ + std::chrono::minutes{1};
  return take(request);
}

std::vector<Taken> EngineDriver::take(const TakeRequest& request) {
  return seen(must<TakeAnswer>("take", [&](auto reply) { engine_->take(now_, request, std::move(reply)); }));
}

Taken EngineDriver::take_one(std::string_view topic, Millis lease) {
  TakeRequest request;
  request.topic = topic;
  request.lease_until = now_ + lease;
  std::vector<Taken> taken = take(request);
  if (taken.size() != 1) throw std::runtime_error("no job to take from " + std::string{topic});
  return std::move(taken.front());
}

AckOutcome EngineDriver::ack(const Taken& taken, Keep keep, std::string_view outcome) {
  return ack_all({{taken.ref(), keep, outcome}}).at(0);
}

std::vector<AckOutcome> EngineDriver::ack_all(const std::vector<AckRequest>& leases) {
  return must<std::vector<AckOutcome>>("ack",
                                       [&](auto reply) { engine_->ack(now_, leases, std::move(reply)); });
}

NackOutcome EngineDriver::retry(const Taken& taken, Moment retry_at, std::string_view reason) {
  NackRequest request;
  request.lease = taken.ref();
  request.retry_at = retry_at;
  request.reason = reason;
  return nack_all({request}).at(0);
}

NackOutcome EngineDriver::bury(const Taken& taken, std::string_view reason, Keep keep) {
  NackRequest request;
  request.lease = taken.ref();
  request.keep = keep;
  request.reason = reason;
  return nack_all({request}).at(0);
}

std::vector<NackOutcome> EngineDriver::nack_all(const std::vector<NackRequest>& leases) {
  return must<std::vector<NackOutcome>>("nack",
                                        [&](auto reply) { engine_->nack(now_, leases, std::move(reply)); });
}

bool EngineDriver::extend(const Taken& taken, Moment until) {
  return extend_all({{taken.ref(), until}}).at(0).has_value();
}

std::vector<ExtendAnswer> EngineDriver::extend_all(const std::vector<ExtendRequest>& leases) {
  return must<std::vector<ExtendAnswer>>(
      "extend", [&](auto reply) { engine_->extend(now_, leases, std::move(reply)); });
}

// ---- by id, by group, by topic

CancelOutcome EngineDriver::cancel(std::string_view topic, std::string_view id) {
  return cancel_all({{topic, id}}).at(0);
}

std::vector<CancelOutcome> EngineDriver::cancel_all(const std::vector<JobRef>& jobs) {
  return must<std::vector<CancelOutcome>>("cancel",
                                          [&](auto reply) { engine_->cancel(now_, jobs, std::move(reply)); });
}

GroupCancelAnswer EngineDriver::cancel_of_group(const GroupCancelRequest& request) {
  return must<GroupCancelAnswer>("cancel_group",
                                 [&](auto reply) { engine_->cancel_group(now_, request, std::move(reply)); });
}

GroupCancelAnswer EngineDriver::cancel_group(std::string_view group, uint32_t max, TopicPatterns topics) {
  GroupCancelAnswer sum;
  do {
    const std::string cursor = sum.cursor;
    GroupCancelAnswer step = cancel_of_group({group, topics, max, cursor});
    sum.cancelled += step.cancelled;
    sum.reserved += step.reserved;
    for (const auto& [topic, cancelled] : step.cancelled_by_topic) sum.cancelled_by_topic[topic] += cancelled;
    sum.cursor = std::move(step.cursor);
  } while (!sum.cursor.empty());
  return sum;
}

RescheduleOutcome EngineDriver::reschedule(std::string_view topic, std::string_view id, Moment due) {
  return reschedule_all({{{topic, id}, due}}).at(0);
}

std::vector<RescheduleOutcome> EngineDriver::reschedule_all(const std::vector<RescheduleRequest>& jobs) {
  return must<std::vector<RescheduleOutcome>>(
      "reschedule", [&](auto reply) { engine_->reschedule(now_, jobs, std::move(reply)); });
}

uint64_t EngineDriver::redrive(std::string_view topic, const std::vector<std::string_view>& ids) {
  return must<uint64_t>("redrive", [&](auto reply) { engine_->redrive(now_, topic, ids, std::move(reply)); });
}

uint64_t EngineDriver::redrive_oldest(std::string_view topic, uint32_t max) {
  return must<uint64_t>("redrive_oldest",
                        [&](auto reply) { engine_->redrive_oldest(now_, topic, max, std::move(reply)); });
}

uint64_t EngineDriver::trim(TrimRequest request) {
  uint64_t forgotten = 0;
  std::string cursor;
  do {
    request.cursor = cursor;
    TrimAnswer answer =
        must<TrimAnswer>("trim", [&](auto reply) { engine_->trim(now_, request, std::move(reply)); });
    forgotten += answer.forgotten;
    cursor = std::move(answer.cursor);
  } while (!cursor.empty());
  return forgotten;
}

uint64_t EngineDriver::purge(std::string_view topic, JobState state, uint32_t max) {
  return must<uint64_t>("purge",
                        [&](auto reply) { engine_->purge(now_, topic, state, max, std::move(reply)); });
}

// ---- reading

std::optional<SeenJob> EngineDriver::get(std::string_view topic, std::string_view id) {
  const auto found = must<std::optional<FoundJob>>("get", [&](auto reply) {
    engine_->get(now_, {topic, id}, std::move(reply));
  });
  if (!found) return std::nullopt;
  return seen(found->job);
}

JobState EngineDriver::state_of(std::string_view topic, std::string_view id) {
  const std::optional<SeenJob> job = get(topic, id);
  if (!job) throw std::runtime_error("there is no job " + brief(id) + " in " + brief(topic));
  return job->state;
}

std::vector<std::string> EngineDriver::locate(std::string_view id, Among among) {
  auto topics = must<std::vector<std::string>>(
      "locate", [&](auto reply) { engine_->locate(now_, id, among, std::move(reply)); });
  std::sort(topics.begin(), topics.end());
  return topics;
}

SeenPage EngineDriver::list(const ListRequest& request) {
  return seen(must<JobPage>("list", [&](auto reply) { engine_->list(now_, request, std::move(reply)); }));
}

std::vector<SeenJob> EngineDriver::list_all(ListRequest request) {
  std::vector<SeenJob> jobs;
  std::string cursor;
  for (int pages = 0; pages < kMostPages; ++pages) {
    request.cursor = cursor;
    SeenPage page = list(request);
    std::move(page.jobs.begin(), page.jobs.end(), std::back_inserter(jobs));
    if (page.cursor.empty()) return jobs;
    cursor = std::move(page.cursor);
  }
  throw std::runtime_error("the pages of a listing did not end");
}

std::vector<std::string> EngineDriver::ids_in(std::string_view topic, JobState state) {
  ListRequest request;
  request.topic = topic;
  request.state = state;
  return ids_of(list_all(request));
}

TopicCounts EngineDriver::counts(std::string_view topic) {
  return must<TopicCounts>("counts", [&](auto reply) { engine_->counts(now_, topic, std::move(reply)); });
}

TopicPage EngineDriver::topics(std::string_view cursor, uint32_t limit) {
  return must<TopicPage>("topics",
                         [&](auto reply) { engine_->topics(now_, cursor, limit, std::move(reply)); });
}

std::vector<std::string> EngineDriver::topic_names(uint32_t page_size) {
  std::vector<std::string> names;
  std::string cursor;
  for (int pages = 0; pages < kMostPages; ++pages) {
    const TopicPage page = topics(cursor, page_size);
    for (const TopicRow& row : page.topics) names.push_back(row.topic);
    if (page.cursor.empty()) return names;
    cursor = page.cursor;
  }
  throw std::runtime_error("the pages of topics did not end");
}

Forecast EngineDriver::forecast(const ForecastRequest& request) {
  return must<Forecast>("forecast", [&](auto reply) { engine_->forecast(now_, request, std::move(reply)); });
}

EngineUsage EngineDriver::usage() {
  flush();
  return engine_->usage();
}

// ---- settings

void EngineDriver::store_settings(std::string_view topic, std::string_view settings) {
  must<bool>("store_settings",
             [&](auto reply) { engine_->store_settings(topic, settings, std::move(reply)); });
}

std::vector<TopicSettings> EngineDriver::load_settings() {
  auto all = must<std::vector<TopicSettings>>("load_settings",
                                              [&](auto reply) { engine_->load_settings(std::move(reply)); });
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.topic < b.topic; });
  return all;
}

// ---- schedules

TurnAnswer EngineDriver::turn(const TurnRequest& request) { return turn_all({request}).at(0); }

std::vector<TurnAnswer> EngineDriver::turn_all(const std::vector<TurnRequest>& requests) {
  return must<std::vector<TurnAnswer>>("turn",
                                       [&](auto reply) { engine_->turn(now_, requests, std::move(reply)); });
}

std::optional<StoredSchedule> EngineDriver::get_schedule(std::string_view name) {
  return must<std::optional<StoredSchedule>>(
      "get_schedule", [&](auto reply) { engine_->get_schedule(now_, name, std::move(reply)); });
}

SchedulePage EngineDriver::list_schedules(const ScheduleListRequest& request) {
  return must<SchedulePage>("list_schedules",
                            [&](auto reply) { engine_->list_schedules(now_, request, std::move(reply)); });
}

std::vector<StoredSchedule> EngineDriver::all_schedules(uint32_t page_size) {
  std::vector<StoredSchedule> all;
  for (bool has_more = true; has_more;) {
    const std::string after = all.empty() ? "" : all.back().name;
    SchedulePage page = list_schedules({.after = after, .limit = page_size});
    has_more = page.has_more;
    if (has_more && page.schedules.empty())
      throw std::logic_error("an empty page of schedules, and more to come");
    for (StoredSchedule& schedule : page.schedules) all.push_back(std::move(schedule));
  }
  return all;
}

// ---- running

Moment EngineDriver::tick() {
  for (int ticks = 0; ticks < kMostTicks; ++ticks) {
    const Moment next = engine_->tick(now_);
    // The background work may have given the engine more to do, or something earlier.
    const bool has_pumped = settle();
    if (next > now_ && !has_pumped) return next;
  }
  throw std::runtime_error("ticks found no end of what is due");
}

bool EngineDriver::settle() {
  bool has_ever_pumped = false;
  for (int polls = 0; polls < kMostPolls; ++polls) {
    const bool has_polled = engine_->poll(*this);
    const bool has_pumped = pump_ && pump_();
    has_ever_pumped |= has_pumped;
    if (!has_polled && !has_pumped) return has_ever_pumped;
  }
  throw std::runtime_error("there is no end of news");
}

BackupReport EngineDriver::backup(std::string_view name) {
  return must<BackupReport>("backup", [&](auto reply) { engine_->backup(name, std::move(reply)); });
}

void EngineDriver::flush() {
  must<bool>("flush", [&](auto reply) { engine_->flush(std::move(reply)); });
}

}  // namespace delayq::support
