#include "queue/queue.h"

#include <algorithm>
#include <utility>

#include "queue/admission.h"
#include "queue/exporting.h"
#include "queue/hand_over.h"
#include "queue/intake.h"
#include "queue/janitor.h"
#include "queue/job_headers.h"
#include "queue/leases.h"
#include "queue/lookup.h"
#include "queue/schedules.h"
#include "queue/stopper.h"
#include "queue/topics.h"

namespace delayq {

namespace {

/// A clock that goes back by less than this is ignored; waiters then wait longer by the difference.
constexpr Millis kClockSlack = std::chrono::seconds{1};
constexpr uint32_t kTopicsPerPage = 1'000;

}  // namespace

/// The parts of a queue. Each uses only parts above it.
struct Queue::Parts final : EngineListener {
  Parts(Engine& engine, QueueConfig configuration, uint64_t seed)
      : config(std::move(configuration)),
        random(seed),
        news{engine, seed},
        context{engine, config, topics, news} {}

  void on_ready(std::string_view topic, Outlet outlet) override {
    TopicPtr found = topics.find(topic);
    // Jobs that are delivered may have been pushed at another server, which may have stopped since.
    const bool leaves = outlet == Outlet::kCallback || settings.defaults().delivery != Delivery::kPull;
    if (found == nullptr && leaves) found = topics.open(topic, context.now);
    if (found != nullptr) hand_over.wake(found, outlet);
  }
  void on_settings_changed() override {
    // One reload at a time: a client that changes many topics one by one would cause a reload of all
    // settings for each of them.
    if (!std::exchange(is_reload_wanted, true) && !is_reloading) reload_settings();
  }
  void on_due(std::vector<DueJob> jobs, uint64_t left_out) override {
    news.on_due(context.now, jobs, left_out);
  }
  void on_told(std::string_view message) override { news.on_told(context.now, message); }
  void on_expired(std::vector<LeaseInfo> expired) override { leases.expire(std::move(expired)); }
  void on_schedules_due(std::vector<StoredSchedule> due) override { schedules.on_due(std::move(due)); }

  void load_topics(std::string_view cursor, Status settings, Reply<void> reply);
  void reload_settings();
  /// A limit of the topic, or of all topics ("*"), may have been lifted: waiting consumers try again.
  void wake(std::string_view name) {
    if (name == kDefaultsName) return hand_over.all_settings_changed();
    if (const TopicPtr topic = topics.find(name)) hand_over.settings_changed(topic);
  }

  /// Runs a change of the settings of `name`, and applies a shorter retention to the jobs already kept.
  template <class Change>
  void change_settings(std::string_view name, Change change) {
    const EffectiveSettings before = settings.effective(name);
    change();
    after_change(name, keeps_less(settings.effective(name), before));
  }
  void after_change(std::string_view name, bool is_less_kept) {
    if (is_less_kept) name == kDefaultsName ? retention.look_at_all() : retention.look_at(name);
    wake(name);
  }

  bool is_reloading = false;
  bool is_reload_wanted = false;  ///< settings changed after the last reload began

  QueueConfig config;
  Random random;
  SettingsBook settings{config.defaults};
  KnownTopics topics{settings.defaults()};
  News news;
  Context context;
  Admission admission{context};
  HandOver hand_over{context, admission, Random{random.next()}};
  Intake intake{context, admission, hand_over, settings, Random{random.next()}};
  Schedules schedules{context, admission, intake, Random{random.next()}};
  Leases leases{context, hand_over, settings.defaults(), Random{random.next()}, Random{random.next()}};
  Lookup lookup{context, admission, hand_over, settings};
  Exporting exporting{context, settings, schedules};
  RetentionSweep retention{context};
  Janitor janitor{context, settings};
  Stopper stopper{context, hand_over};
};

/// Held while a method of the queue runs. Sets the time, and defers answers to poll(), even when a Reply has
/// called the method.
class [[nodiscard]] Queue::Entry {
 public:
  /// A clock that was never set may be before 1970, and engines cannot store such moments. The queue uses
  /// 1970 instead, so that jobs may be late but never early.
  Entry(Parts& parts, Moment clock)
      : context_(parts.context), may_answer_(std::exchange(context_.may_answer, false)) {
    const Moment now = std::max(clock, Moment{});
    const Moment before = std::exchange(context_.now, now);
    if (before - now < kClockSlack) return;
    parts.hand_over.clock_went_back(before - now);
    parts.stopper.clock_went_back(before - now);
  }
  ~Entry() { context_.may_answer = may_answer_; }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

 private:
  Context& context_;
  const bool may_answer_;
};

Queue::Queue(Engine& engine, QueueConfig config, uint64_t seed)
    : parts_(std::make_unique<Parts>(engine, std::move(config), seed)) {}

Queue::~Queue() = default;

Queue::InOrder Queue::in_order(std::shared_ptr<Sequence> sequence) {
  return InOrder{parts_->context.sequence, std::move(sequence)};
}

Steps Queue::begin_steps() const { return parts_->context.begin_steps(); }

Queue::Entry Queue::enter(Moment now) { return Entry{*parts_, now}; }

void Queue::start(Moment now, Reply<void> reply) {
  const Entry entry = enter(now);
  Parts& parts = *parts_;
  parts.context.engine.load_settings(
      [&parts, reply = std::move(reply)](const Result<std::vector<TopicSettings>>& stored) mutable {
        if (!stored.ok()) return parts.context.refuse(reply, stored.error());
        parts.load_topics({}, parts.settings.load(parts.context, *stored), std::move(reply));
      });
}

void Queue::Parts::reload_settings() {
  is_reloading = true;
  is_reload_wanted = false;
  context.engine.load_settings(
      [this, sets = settings.sets()](const Result<std::vector<TopicSettings>>& stored) {
        is_reloading = false;
        if (is_reload_wanted || (stored.ok() && sets != settings.sets())) return reload_settings();
        if (!stored.ok()) return;  // the engine reports the change again when it is available
        for (const auto& [name, is_less_kept] : settings.reload(context, *stored))
          after_change(name, is_less_kept);
      });
}

void Queue::Parts::load_topics(std::string_view cursor, Status outcome, Reply<void> reply) {
  context.engine.topics(
      context.now, cursor, kTopicsPerPage,
      [this, outcome = std::move(outcome), reply = std::move(reply)](const Result<TopicPage>& page) mutable {
        if (!page.ok()) return context.refuse(reply, page.error());
        for (const TopicRow& row : page->topics) {
          const TopicPtr topic = topics.open(row.topic, context.now);
          if (row.counts.of(JobState::kReady) > 0) hand_over.settings_changed(topic);
          // The retention may have changed at another server, or just before this one stopped.
          if (row.counts.of(JobState::kDone) + row.counts.of(JobState::kDead) > 0)
            retention.look_at(row.topic);
        }
        if (page->cursor.empty()) return context.answer(reply, std::move(outcome));
        load_topics(page->cursor, std::move(outcome), std::move(reply));
      });
}

// ---- producers

void Queue::push(Moment now, std::span<const PushRequest> jobs, Reply<PushReport> reply) {
  const Entry entry = enter(now);
  parts_->intake.push(jobs, std::move(reply));
}

void Queue::cancel(Moment now, std::span<const JobRef> jobs,
                   Reply<std::vector<Result<CancelOutcome>>> reply) {
  const Entry entry = enter(now);
  parts_->lookup.cancel(jobs, std::move(reply));
}

void Queue::cancel_by_id(Moment now, std::string_view id, Reply<CancelOutcome> reply) {
  const Entry entry = enter(now);
  parts_->lookup.cancel_by_id(id, std::move(reply));
}

void Queue::cancel_group(Moment now, std::string_view group, TopicPatterns topics,
                         Reply<GroupCancelAnswer> reply) {
  const Entry entry = enter(now);
  parts_->lookup.cancel_group(group, topics, std::move(reply));
}

void Queue::reschedule(Moment now, std::span<const RescheduleItem> items,
                       Reply<std::vector<Result<RescheduleOutcome>>> reply) {
  const Entry entry = enter(now);
  parts_->lookup.reschedule(items, std::move(reply));
}

// ---- consumers

WaiterId Queue::pop(Moment now, const PopRequest& request, Reply<PopAnswer> reply) {
  const Entry entry = enter(now);
  return parts_->hand_over.pop(request, std::move(reply));
}

uint64_t Queue::most_bytes(const PopRequest& request) const {
  // An answer ends after the job that reaches the bound, so it may exceed it by one job.
  const uint64_t job = parts_->context.config.limits.body_bytes + HeaderLimits::kAllBytes;
  return std::min(request.count * job, Limits::kPopBytes + job);
}

bool Queue::drop_waiter(Moment now, WaiterId waiter) {
  const Entry entry = enter(now);
  return parts_->hand_over.drop(waiter);
}

void Queue::take_for_delivery(Moment now, const DeliveryRequest& request, Reply<PopAnswer> reply) {
  const Entry entry = enter(now);
  parts_->hand_over.take_for_delivery(request, std::move(reply));
}

void Queue::set_delivery_listener(DeliveryListener* listener) { parts_->hand_over.set_listener(listener); }

void Queue::give_back(Moment now, std::span<const GiveBackItem> items, Reply<uint64_t> reply) {
  const Entry entry = enter(now);
  parts_->leases.give_back(items, std::move(reply));
}

void Queue::ack(Moment now, std::span<const AckItem> items, Reply<std::vector<Status>> reply) {
  const Entry entry = enter(now);
  parts_->leases.ack(items, std::move(reply));
}

void Queue::ack_job(Moment now, const JobRef& job, Reply<void> reply) {
  const Entry entry = enter(now);
  parts_->leases.ack_job(job, std::move(reply));
}

void Queue::nack(Moment now, std::span<const NackItem> items, Reply<std::vector<Result<NackReceipt>>> reply) {
  const Entry entry = enter(now);
  parts_->leases.nack(items, std::move(reply));
}

void Queue::extend(Moment now, std::span<const ExtendItem> items, Reply<std::vector<Result<Moment>>> reply) {
  const Entry entry = enter(now);
  parts_->leases.extend(items, std::move(reply));
}

// ---- dead letters and cleaning up

void Queue::redrive_all(Moment now, std::string_view topic, Reply<uint64_t> reply) {
  const Entry entry = enter(now);
  parts_->lookup.redrive_all(topic, std::move(reply));
}

void Queue::redrive(Moment now, std::string_view topic, std::span<const std::string_view> ids,
                    Reply<uint64_t> reply) {
  const Entry entry = enter(now);
  parts_->lookup.redrive(topic, ids, std::move(reply));
}

void Queue::redrive_by_error(Moment now, std::string_view topic, std::string_view error,
                             Reply<uint64_t> reply) {
  const Entry entry = enter(now);
  parts_->lookup.redrive_by_error(topic, error, std::move(reply));
}

void Queue::purge(Moment now, std::string_view topic, std::optional<JobState> state, Reply<uint64_t> reply) {
  const Entry entry = enter(now);
  parts_->lookup.purge(topic, state, std::move(reply));
}

// ---- looking around

void Queue::get(Moment now, const JobRef& job, Reply<std::optional<FoundJob>> reply) {
  const Entry entry = enter(now);
  parts_->lookup.get(job, std::move(reply));
}

bool Queue::has_parts() const { return parts_->context.engine.has_parts(); }

void Queue::find(Moment now, std::string_view id, TopicPatterns topics,
                 Reply<std::optional<FoundJob>> reply) {
  const Entry entry = enter(now);
  parts_->lookup.find(id, topics, std::move(reply));
}

void Queue::find_kept_too(Moment now, std::string_view id, TopicPatterns topics,
                          Reply<std::optional<FoundJob>> reply) {
  const Entry entry = enter(now);
  parts_->lookup.find_kept_too(id, topics, std::move(reply));
}

void Queue::list(Moment now, const ListRequest& request, Reply<JobPage> reply) {
  const Entry entry = enter(now);
  parts_->lookup.list(request, parts_->context.in_steps(std::move(reply)));
}

void Queue::topics(Moment now, std::string_view cursor, uint32_t limit, Reply<TopicSummaries> reply) {
  const Entry entry = enter(now);
  parts_->lookup.topics(cursor, limit, parts_->context.in_steps(std::move(reply)));
}

void Queue::stats(Moment now, std::string_view topic, Reply<TopicStats> reply) {
  const Entry entry = enter(now);
  parts_->lookup.stats(topic, parts_->context.in_steps(std::move(reply)));
}

void Queue::totals(Moment now, Reply<TotalStats> reply) {
  const Entry entry = enter(now);
  parts_->lookup.totals(parts_->context.in_steps<TotalStats>(
      [parts = parts_.get(), reply = std::move(reply)](Result<TotalStats> totals) mutable {
        if (totals.ok()) totals->schedules = parts->schedules.figures();
        reply(std::move(totals));
      }));
}

void Queue::forecast(Moment now, const ForecastRequest& request, TopicPatterns topics,
                     Reply<ForecastReport> reply) {
  const Entry entry = enter(now);
  Parts& parts = *parts_;
  // The texts of the request live only as long as the call.
  auto rest = std::make_unique<std::pair<ForecastRequest, std::string>>(request, request.topic);
  parts.lookup.forecast(
      request,
      parts.context.in_steps<Forecast>([&parts, rest = std::move(rest),
                                        patterns = std::vector<std::string>(topics.begin(), topics.end()),
                                        reply = std::move(reply)](Result<Forecast> jobs) mutable {
        if (!jobs.ok()) return parts.context.refuse(reply, jobs.error());
        rest->first.topic = rest->second;
        parts.schedules.forecast(rest->first, patterns, std::move(*jobs), std::move(reply));
      }));
}

// ---- export, restore and backup

void Queue::restore(Moment now, std::span<const RestoreItem> items,
                    Reply<std::vector<Result<RestoreReceipt>>> reply) {
  const Entry entry = enter(now);
  parts_->intake.restore(items, std::move(reply));
}

void Queue::restore_settings(Moment now, std::string_view name, Settings settings, OnConflict on_conflict,
                             Reply<RestoreOutcome> reply) {
  const Entry entry = enter(now);
  parts_->change_settings(name, [&] {
    parts_->intake.restore_settings(name, std::move(settings), on_conflict, std::move(reply));
  });
}

void Queue::export_page(Moment now, const ExportRequest& request, Reply<ExportPage> reply) {
  const Entry entry = enter(now);
  parts_->exporting.page(request, std::move(reply));
}

void Queue::backup(Moment now, std::string_view name, Reply<BackupReport> reply) {
  const Entry entry = enter(now);
  Context& context = parts_->context;
  if (const Status status = context.check_running("backup"); !status)
    return context.refuse(reply, status.error());
  if (const Status status = check_backup_name(name); !status)
    return context.refuse(reply, in_verb("backup", status.error()));
  context.engine.backup(name, std::move(reply));
}

// ---- schedules

void Queue::set_schedule(Moment now, const ScheduleSpec& spec, TopicPatterns topics,
                         Reply<ScheduleReceipt> reply) {
  const Entry entry = enter(now);
  parts_->schedules.set(spec, topics, std::move(reply));
}

void Queue::get_schedule(Moment now, std::string_view name, TopicPatterns topics,
                         Reply<std::optional<ScheduleView>> reply) {
  const Entry entry = enter(now);
  parts_->schedules.get(name, topics, std::move(reply));
}

void Queue::list_schedules(Moment now, const ScheduleListing& request, TopicPatterns topics,
                           Reply<ScheduleViews> reply) {
  const Entry entry = enter(now);
  parts_->schedules.list(request, topics, std::move(reply));
}

void Queue::remove_schedule(Moment now, std::string_view name, TopicPatterns topics, Reply<void> reply) {
  const Entry entry = enter(now);
  parts_->schedules.remove(name, topics, std::move(reply));
}

void Queue::pause_schedule(Moment now, std::string_view name, TopicPatterns topics,
                           Reply<ScheduleView> reply) {
  const Entry entry = enter(now);
  parts_->schedules.pause(name, true, topics, std::move(reply));
}

void Queue::resume_schedule(Moment now, std::string_view name, TopicPatterns topics,
                            Reply<ScheduleView> reply) {
  const Entry entry = enter(now);
  parts_->schedules.pause(name, false, topics, std::move(reply));
}

void Queue::run_schedule(Moment now, std::string_view name, TopicPatterns topics, Reply<ScheduleRun> reply) {
  const Entry entry = enter(now);
  parts_->schedules.run(name, topics, std::move(reply));
}

void Queue::restore_schedule(Moment now, const ScheduleSpec& spec, const ScheduleProgress& progress,
                             OnConflict on_conflict, Reply<RestoreOutcome> reply) {
  const Entry entry = enter(now);
  parts_->schedules.restore(spec, progress, on_conflict, std::move(reply));
}

void Queue::mark_moving(Moment now, std::string_view name, bool moving, Reply<RestoreOutcome> reply) {
  const Entry entry = enter(now);
  parts_->schedules.mark_moving(name, moving, std::move(reply));
}

// ---- settings

void Queue::set_settings(Moment now, std::string_view name, Settings settings, Reply<void> reply) {
  const Entry entry = enter(now);
  parts_->change_settings(
      name, [&] { parts_->settings.set(parts_->context, name, std::move(settings), std::move(reply)); });
}

void Queue::set_configured_defaults(Moment now, Settings defaults) {
  const Entry entry = enter(now);
  parts_->change_settings(kDefaultsName, [&] { parts_->settings.configure(std::move(defaults)); });
}

void Queue::set_redis_outlet(Moment now, RedisOutlet redis) {
  const Entry entry = enter(now);
  parts_->config.redis = std::move(redis);
  parts_->wake(kDefaultsName);
}

Status Queue::check_delivery(std::string_view topic) const {
  return parts_->settings.check_delivery(parts_->context, topic);
}

void Queue::set_callback_problem(std::function<std::string(Moment now, std::string_view url)> problem) {
  parts_->context.callback_problem = std::move(problem);
}

std::string Queue::delivery_problem(Moment now, const Job& job) {
  const Entry entry = enter(now);
  if (job.state == JobState::kDone || job.state == JobState::kDead) return {};
  return parts_->lookup.delivery_problem(job.topic, decode_job_options(job.options).callback);
}

std::vector<std::pair<std::string, Error>> Queue::undeliverable() const {
  return parts_->settings.undeliverable(parts_->context);
}

void Queue::pause(Moment now, std::string_view topic, Reply<void> reply) {
  Settings changed = settings(topic);
  changed.paused = true;
  set_settings(now, topic, std::move(changed), std::move(reply));
}

void Queue::resume(Moment now, std::string_view topic, Reply<void> reply) {
  Settings changed = settings(topic);
  changed.paused.reset();
  // If all topics are paused by default, this one needs a setting of its own.
  if (parts_->settings.defaults().paused) changed.paused = false;
  set_settings(now, topic, std::move(changed), std::move(reply));
}

void Queue::forget(Moment now, std::string_view topic, Reply<bool> reply) {
  const Entry entry = enter(now);
  parts_->janitor.forget(topic, std::move(reply));
}

const Settings& Queue::settings(std::string_view name) const { return parts_->settings.own(name); }

const EffectiveSettings& Queue::effective_settings(std::string_view topic) const {
  return parts_->settings.effective(topic);
}

Result<std::shared_ptr<NewsListener>> Queue::listen(Moment now, NewsFilter filter, std::string_view cursor) {
  const Entry entry = enter(now);
  if (!filter.topic.empty()) {
    if (const Status status = check_topic(filter.topic); !status) return in_verb("news", status.error());
  }
  if (!filter.group.empty()) {
    if (const Status status = check_group(filter.group); !status) return in_verb("news", status.error());
  }
  return parts_->news.listen(parts_->context.now, std::move(filter), cursor, parts_->context.alive);
}

// ---- running

void Queue::ready(Moment now, Reply<void> reply) {
  const Entry entry = enter(now);
  parts_->intake.ready(std::move(reply));
}

void Queue::stop(Moment now, Millis grace, Reply<StopReport> reply) {
  const Entry entry = enter(now);
  parts_->stopper.stop(grace, std::move(reply));
}

Moment Queue::tick(Moment now) {
  const Entry entry = enter(now);
  return std::min({parts_->context.engine.tick(parts_->context.now), parts_->hand_over.tick(),
                   parts_->leases.tick(), parts_->janitor.tick(), parts_->stopper.tick(),
                   parts_->news.tick(parts_->context.now)});
}

bool Queue::poll(Moment now) {
  const Entry entry = enter(now);
  Context& context = parts_->context;
  context.may_answer = true;
  bool any = context.engine.poll(*parts_);
  any |= parts_->hand_over.poll();
  any |= parts_->schedules.poll();
  for (auto& give : std::exchange(context.later, {})) {
    any = true;
    give();
  }
  parts_->stopper.look_if_leases_ended();
  return any;
}

}  // namespace delayq
