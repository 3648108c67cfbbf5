#include "queue/schedules.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "core/moment.h"
#include "core/text.h"

namespace delayq {

namespace {

/// How often a change is computed again because others were faster.
constexpr uint32_t kMostTries = 16;
/// How many occurrences are decided before the rule is changed; the others are missed.
constexpr uint32_t kMostDecisions = 16;

Error not_found(std::string_view op, std::string_view name) {
  return about_field("name", Error{ErrorCode::kNotFound, std::string{op},
                                   fmt::format("there is no schedule {}", quote(name))});
}

/// Whether `found` is the same schedule, but has not come as far: what was decided elsewhere must not be done
/// again.
bool is_same_further_on(const ScheduleView& found, const ScheduleSpec& spec,
                        const ScheduleProgress& progress) {
  if (!found.is_readable() || progress.decided <= found.progress.decided) return false;
  ScheduleSpec same = found.spec;
  same.name = spec.name;
  same.from_configuration = spec.from_configuration;
  return same == spec;
}

std::vector<std::string> copy(TopicPatterns topics) { return {topics.begin(), topics.end()}; }

}  // namespace

/// Due schedules, and what is asked of the engine about them.
struct Schedules::DueBatch {
  struct Item {
    StoredSchedule stored;
    ScheduleStep step;
    TopicPtr topic;
    std::string job_id;
    std::string previous_id;
    std::string previous_topic;
    std::string options;
    std::string progress;
    std::string if_skipped;
    uint64_t revision = 0;
    uint64_t bytes = 0;
  };
  std::vector<std::unique_ptr<Item>> items;
  std::vector<TurnRequest> requests;
  absl::AnyInvocable<void()> then{};  ///< called at the end, if there is one
};

// ---- changes

/// A change of one schedule: read, computed, stored; again from the beginning if others were faster.
struct Schedules::Change {
  struct Plan {
    std::optional<std::string> definition{};  ///< nullopt: as it is
    ScheduleProgress progress{};
    Moment next = kNever;
    uint64_t missed = 0;  ///< occurrences that this change gives up
    bool removes = false;
    bool changes_nothing = false;
  };
  struct Done {
    std::shared_ptr<const StoredSchedule> stored;  ///< as it is now; null: there is none
    bool is_new = false;
    bool has_changed = false;
  };

  std::string_view op;
  std::string name;
  std::vector<std::string> topics;  ///< a schedule of another topic is as if it were not there
  bool creates = false;             ///< a schedule that is not there
  /// Occurrences that are due are decided by the rule as it was.
  bool decides_first = false;
  absl::AnyInvocable<Result<Plan>(const ScheduleView* found)> plan;
  absl::AnyInvocable<void(Result<Done>)> done;
  Steps steps{};  ///< the client's next verb must see this change
  uint32_t tries = 0;
  uint32_t decisions = 0;                  ///< made first
  std::shared_ptr<StoredSchedule> next{};  ///< what is being stored
  uint64_t missed = 0;                     ///< by what is being stored
  uint64_t bytes = 0;                      ///< of the definition that is being stored, if it is another one
  bool was_there = false;
};

void Schedules::run_change(std::unique_ptr<Change> change) {
  ++changing_[change->name];
  change->done = [this, name = change->name,
                  done = std::move(change->done)](Result<Change::Done> result) mutable {
    if (const auto found = changing_.find(name); --found->second == 0) changing_.erase(found);
    done(std::move(result));
  };
  begin(std::move(change));
}

void Schedules::begin(std::unique_ptr<Change> change) {
  if (const Status status = context_.check_running(change->op); !status) return change->done(status.error());
  const std::string& name = change->name;
  context_.engine.get_schedule(
      context_.now, name,
      [this, change = std::move(change)](Result<std::optional<StoredSchedule>> found) mutable {
        if (!found.ok()) return change->done(in_verb(change->op, found.error()));
        store(std::move(change), found->has_value() ? &**found : nullptr);
      });
}

void Schedules::store(std::unique_ptr<Change> change, const StoredSchedule* found) {
  ScheduleView seen;
  if (found != nullptr) {
    seen = view(std::make_shared<StoredSchedule>(*found));
    if (!covers(change->topics, seen.spec.topic)) {
      if (!change->creates) return change->done(not_found(change->op, change->name));
      return change->done(about_field(
          "name",
          Error{ErrorCode::kConflict, std::string{change->op},
                fmt::format("the name {} is taken by a schedule of another topic", quote(change->name))}));
    }
    if (change->decides_first && seen.next <= context_.now && ++change->decisions < kMostDecisions) {
      auto batch = std::make_unique<DueBatch>();
      admission_.begin();
      if (add_due(*found, *batch)) {
        batch->then = [this, change = std::move(change)]() mutable { begin(std::move(change)); };
        return turn_due(std::move(batch));
      }
    }
  }
  Result<Change::Plan> plan = change->plan(found == nullptr ? nullptr : &seen);
  if (!plan.ok()) return change->done(in_verb(change->op, plan.error()));
  change->was_there = found != nullptr;
  change->missed = plan->missed;
  if (plan->changes_nothing) return change->done(Change::Done{std::move(seen.storage), false, false});

  if (plan->definition) {
    // It takes memory and disk as a job does, and more than one job: it stays.
    admission_.begin();
    if (Status status = admission_.admit_in_place(plan->definition->size()); !status)
      return change->done(in_verb(change->op, status.error()));
    change->bytes = plan->definition->size();
  }
  auto next = std::make_shared<StoredSchedule>();
  next->name = change->name;
  next->revision = plan->removes ? 0 : new_revision();
  next->next = plan->next;
  next->progress = encode_progress(plan->progress);
  TurnRequest request{.name = next->name,
                      .expected = found == nullptr ? 0 : found->revision,
                      .revision = next->revision,
                      .next = next->next,
                      .progress = next->progress};
  if (plan->definition) {
    next->definition = std::move(*plan->definition);
    request.definition = next->definition;
  } else if (found != nullptr) {
    next->definition = found->definition;
  }
  change->next = std::move(next);
  context_.engine.turn(
      context_.now, {&request, 1},
      [this, change = std::move(change)](const Result<std::vector<TurnAnswer>>& answers) mutable {
        settle(std::move(change), answers);
      });
}

void Schedules::settle(std::unique_ptr<Change> change, const Result<std::vector<TurnAnswer>>& answers) {
  admission_.settle(std::exchange(change->bytes, 0));
  if (!answers.ok()) return change->done(in_verb(change->op, answers.error()));
  if (answers->front().outcome == TurnOutcome::kChanged) {
    if (++change->tries < kMostTries) return begin(std::move(change));
    return change->done(Error{ErrorCode::kOverloaded, std::string{change->op},
                              "others keep changing this schedule: try again", std::chrono::seconds{1}});
  }
  figures_.missed += change->missed;
  if (change->next->revision == 0) change->next.reset();
  change->done(Change::Done{std::move(change->next), !change->was_there, true});
}

void Schedules::set(const ScheduleSpec& spec, TopicPatterns topics, Reply<ScheduleReceipt> reply) {
  if (const Status status = check_schedule(spec, context_.now, context_.config.limits); !status)
    return context_.refuse(reply, in_verb("schedule", status.error()));
  auto change = std::make_unique<Change>();
  change->steps = context_.begin_steps();
  change->op = "schedule";
  change->name = spec.name;
  change->topics = copy(topics);
  change->creates = true;
  change->decides_first = true;
  change->plan = [this,
                  definition = encode_definition(spec)](const ScheduleView* found) -> Result<Change::Plan> {
    if (found != nullptr && found->storage->definition == definition)
      return Change::Plan{.changes_nothing = true};
    if (found == nullptr && context_.engine.usage().schedules >= context_.config.schedules) {
      return Error{
          ErrorCode::kOverloaded,
          {},
          fmt::format("there are {} schedules: limits.schedules allows no more", context_.config.schedules),
          std::chrono::minutes{1}};
    }
    const StoredSchedule stored{.definition = definition};
    const std::optional<ScheduleSpec> wanted = decode_definition(stored);
    if (!wanted) return Error{ErrorCode::kInternal, {}, "the schedule cannot be stored"};
    Change::Plan plan;
    if (found == nullptr || !found->is_readable()) {
      plan.progress.created = plan.progress.decided = context_.now;
    } else {
      plan.progress = found->progress;
      if (!wanted->has_same_rule(found->spec)) {
        // The occurrences of a new rule begin now. Those of the old one that are left are missed: it is
        // paused, or has many to make up for.
        const Result<Recurrence> old = recurrence_of(found->spec, found->progress.created);
        if (old.ok()) plan.missed = count_undecided(found->spec, *old, found->progress, context_.now);
        plan.progress.missed += plan.missed;
        plan.progress.decided = std::max(plan.progress.decided, context_.now);
        plan.progress.catch_up_until = Moment{};
      } else if (found->state == ScheduleState::kEnded) {
        // It goes on from now: what would have been due after its end was not missed.
        plan.progress.decided = std::max(plan.progress.decided, context_.now);
      }
    }
    const Result<Recurrence> rule = recurrence_of(*wanted, plan.progress.created);
    if (!rule.ok()) return rule.error();
    plan.next = next_occurrence(*wanted, *rule, plan.progress);
    plan.definition = definition;
    return plan;
  };
  change->done = [this, reply = std::move(reply)](Result<Change::Done> done) mutable {
    if (!done.ok()) return context_.refuse(reply, done.error());
    context_.answer(reply, Result{ScheduleReceipt{done->is_new, done->has_changed, view(done->stored)}});
  };
  run_change(std::move(change));
}

void Schedules::restore(const ScheduleSpec& spec, const ScheduleProgress& progress, OnConflict on_conflict,
                        Reply<RestoreOutcome> reply) {
  if (const Status status = check_schedule(spec, context_.now, context_.config.limits); !status)
    return context_.refuse(reply, in_verb("restore", status.error()));
  if (const Status status = check_progress(progress); !status)
    return context_.refuse(reply, in_verb("restore", status.error()));
  auto change = std::make_unique<Change>();
  change->steps = context_.begin_steps();
  change->op = "restore";
  change->name = spec.name;
  change->topics = copy(kAllTopics);
  change->creates = true;
  change->plan = [this, definition = encode_definition(spec), progress,
                  on_conflict](const ScheduleView* found) -> Result<Change::Plan> {
    const StoredSchedule stored{.definition = definition};
    const std::optional<ScheduleSpec> wanted = decode_definition(stored);
    if (!wanted) return Error{ErrorCode::kInternal, {}, "the schedule cannot be stored"};
    Change::Plan plan{.definition = definition, .progress = progress};
    // The bound of Missed::kAll is applied anew.
    plan.progress.catch_up_until = Moment{};
    plan.progress.moving = false;  // it has arrived
    if (found != nullptr && on_conflict == OnConflict::kKeep) {
      if (!is_same_further_on(*found, *wanted, progress)) return Change::Plan{.changes_nothing = true};
      plan.definition.reset();
      plan.progress.paused = found->progress.paused;
      plan.progress.moving = found->progress.moving;
    }
    if (found != nullptr && on_conflict == OnConflict::kReject) {
      return about_field("name",
                         Error{ErrorCode::kConflict,
                               {},
                               fmt::format("there is a schedule {} already", quote(found->spec.name))});
    }
    if (found == nullptr && context_.engine.usage().schedules >= context_.config.schedules) {
      return Error{
          ErrorCode::kOverloaded,
          {},
          fmt::format("there are {} schedules: limits.schedules allows no more", context_.config.schedules),
          std::chrono::minutes{1}};
    }
    const Result<Recurrence> rule = recurrence_of(*wanted, plan.progress.created);
    if (!rule.ok()) return rule.error();
    plan.next = next_occurrence(*wanted, *rule, plan.progress);
    return plan;
  };
  change->done = [this, reply = std::move(reply)](const Result<Change::Done>& done) mutable {
    if (!done.ok()) return context_.refuse(reply, done.error());
    context_.answer(reply, Result{!done->has_changed ? RestoreOutcome::kKept
                                  : done->is_new     ? RestoreOutcome::kCreated
                                                     : RestoreOutcome::kReplaced});
  };
  run_change(std::move(change));
}

void Schedules::mark_moving(std::string_view name, bool moving, Reply<RestoreOutcome> reply) {
  auto change = std::make_unique<Change>();
  change->steps = context_.begin_steps();
  change->op = "restore";
  change->name = name;
  change->topics = copy(kAllTopics);
  change->plan = [moving, wanted = std::string{name}](const ScheduleView* found) -> Result<Change::Plan> {
    if (found == nullptr) return not_found({}, wanted);
    if (!found->is_readable()) return Error{ErrorCode::kCorrupt, {}, found->problem};
    if (found->progress.moving == moving) return Change::Plan{.changes_nothing = true};
    Change::Plan plan{.progress = found->progress};
    plan.progress.moving = moving;
    if (!moving) {
      const Result<Recurrence> rule = recurrence_of(found->spec, plan.progress.created);
      if (!rule.ok()) return rule.error();
      plan.next = next_occurrence(found->spec, *rule, plan.progress);
    }
    return plan;
  };
  change->done = [this, reply = std::move(reply)](const Result<Change::Done>& done) mutable {
    if (!done.ok()) return context_.refuse(reply, done.error());
    context_.answer(reply, Result{done->has_changed ? RestoreOutcome::kReplaced : RestoreOutcome::kKept});
  };
  run_change(std::move(change));
}

void Schedules::remove(std::string_view name, TopicPatterns topics, Reply<void> reply) {
  if (const Status status = check_schedule_name(name); !status)
    return context_.refuse(reply, in_verb("schedule", status.error()));
  auto change = std::make_unique<Change>();
  change->steps = context_.begin_steps();
  change->op = "schedule";
  change->name = name;
  change->topics = copy(topics);
  change->plan = [wanted = std::string{name}](const ScheduleView* found) -> Result<Change::Plan> {
    if (found == nullptr) return not_found({}, wanted);
    return Change::Plan{.removes = true};
  };
  change->done = [this, reply = std::move(reply)](const Result<Change::Done>& done) mutable {
    context_.answer(reply, done.ok() ? Status{} : Status{done.error()});
  };
  run_change(std::move(change));
}

void Schedules::pause(std::string_view name, bool pauses, TopicPatterns topics, Reply<ScheduleView> reply) {
  if (const Status status = check_schedule_name(name); !status)
    return context_.refuse(reply, in_verb("schedule", status.error()));
  auto change = std::make_unique<Change>();
  change->steps = context_.begin_steps();
  change->op = "schedule";
  change->name = name;
  change->topics = copy(topics);
  change->plan = [pauses, wanted = std::string{name}](const ScheduleView* found) -> Result<Change::Plan> {
    if (found == nullptr) return not_found({}, wanted);
    if (!found->is_readable()) return Error{ErrorCode::kCorrupt, {}, found->problem};
    // A resume also ends a move that was given up.
    const bool ends_move = !pauses && found->progress.moving;
    if (found->progress.paused == pauses && !ends_move) return Change::Plan{.changes_nothing = true};
    Change::Plan plan{.progress = found->progress};
    plan.progress.paused = pauses;
    plan.progress.moving = plan.progress.moving && pauses;
    if (!pauses) {
      const Result<Recurrence> rule = recurrence_of(found->spec, plan.progress.created);
      if (!rule.ok()) return rule.error();
      plan.next = next_occurrence(found->spec, *rule, plan.progress);
    }
    return plan;
  };
  change->done = [this, reply = std::move(reply)](Result<Change::Done> done) mutable {
    if (!done.ok()) return context_.refuse(reply, done.error());
    context_.answer(reply, Result{view(done->stored)});
  };
  run_change(std::move(change));
}

// ---- looking

ScheduleView Schedules::view(std::shared_ptr<const StoredSchedule> stored) {
  ScheduleView seen;
  seen.storage = std::move(stored);
  const std::optional<ScheduleSpec> spec = decode_definition(*seen.storage);
  const std::optional<ScheduleProgress> progress = decode_progress(seen.storage->progress);
  if (!spec || !progress) {
    seen.spec.name = seen.storage->name;
    seen.problem = "what is stored of this schedule cannot be read: set it again or remove it";
    return seen;
  }
  seen.spec = *spec;
  seen.progress = *progress;
  const Result<Recurrence> rule = recurrence_of(*spec, progress->created);
  if (!rule.ok()) {
    seen.problem = rule.error().detail;
    return seen;
  }
  seen.state = state_of(*spec, *rule, *progress);
  seen.next = next_occurrence(*spec, *rule, *progress);
  return seen;
}

void Schedules::get(std::string_view name, TopicPatterns topics, Reply<std::optional<ScheduleView>> reply) {
  if (const Status status = check_schedule_name(name); !status)
    return context_.refuse(reply, in_verb("schedule", status.error()));
  context_.engine.get_schedule(context_.now, name,
                               [this, topics = copy(topics), reply = std::move(reply)](
                                   Result<std::optional<StoredSchedule>> found) mutable {
                                 if (!found.ok()) return context_.refuse(reply, found.error());
                                 std::optional<ScheduleView> seen;
                                 if (found->has_value()) {
                                   seen = view(std::make_shared<StoredSchedule>(std::move(**found)));
                                   if (!covers(topics, seen->spec.topic)) seen.reset();
                                 }
                                 context_.answer(reply, Result{std::move(seen)});
                               });
}

void Schedules::read_page(const ScheduleListRequest& request, Reply<ScheduleViews> reply) {
  context_.engine.list_schedules(
      context_.now, request, [this, reply = std::move(reply)](Result<SchedulePage> page) mutable {
        if (!page.ok()) return reply(page.error());
        ScheduleViews views;
        if (page->has_more && !page->schedules.empty()) views.cursor = page->schedules.back().name;
        for (StoredSchedule& stored : page->schedules)
          views.schedules.push_back(view(std::make_shared<StoredSchedule>(std::move(stored))));
        reply(std::move(views));
      });
}

void Schedules::list(const ScheduleListing& request, TopicPatterns topics, Reply<ScheduleViews> reply) {
  if (const Status status = check_count("limit", request.limit, Limits::kPageJobs); !status)
    return context_.refuse(reply, in_verb("schedules", status.error()));
  list_visible(request, copy(topics), context_.begin_steps(), std::move(reply));
}

/// The cursor is the name of a schedule on the page, never that of a schedule of other topics: a page without
/// any of these topics is left out.
void Schedules::list_visible(const ScheduleListing& request, std::vector<std::string> topics, Steps steps,
                             Reply<ScheduleViews> reply) {
  const bool sees_all = covers_all(topics);
  // Schedules of other topics are passed over in pages of full size, however small the client's are.
  context_.engine.list_schedules(
      context_.now, {.after = request.after, .limit = sees_all ? request.limit : Limits::kPageJobs},
      [this, limit = request.limit, topics = std::move(topics), steps = std::move(steps),
       reply = std::move(reply)](Result<SchedulePage> page) mutable {
        if (!page.ok()) return context_.refuse(reply, page.error());
        ScheduleViews views;
        std::string last;
        if (!page->schedules.empty()) last = page->schedules.back().name;
        for (StoredSchedule& stored : page->schedules) {
          ScheduleView seen = view(std::make_shared<StoredSchedule>(std::move(stored)));
          if (covers(topics, seen.spec.topic)) views.schedules.push_back(std::move(seen));
        }
        const bool is_cut = views.schedules.size() > limit;
        if (is_cut) views.schedules.resize(limit);
        const bool has_more = is_cut || (page->has_more && !last.empty());
        if (has_more && views.schedules.empty())
          return list_visible({.after = last, .limit = limit}, std::move(topics), std::move(steps),
                              std::move(reply));
        if (has_more) views.cursor = views.schedules.back().spec.name;
        context_.answer(reply, Result{std::move(views)});
      });
}

void Schedules::run(std::string_view name, TopicPatterns topics, Reply<ScheduleRun> reply) {
  get(name, topics,
      [this, name = std::string{name}, steps = context_.begin_steps(),
       reply = std::move(reply)](Result<std::optional<ScheduleView>> found) mutable {
        if (!found.ok()) return context_.refuse(reply, in_verb("schedule", found.error()));
        if (!found->has_value()) return context_.refuse(reply, not_found("schedule", name));
        const ScheduleSpec& spec = (*found)->spec;
        if (!(*found)->is_readable())
          return context_.refuse(reply, Error{ErrorCode::kCorrupt, "schedule", (*found)->problem});
        // Not the id of an occurrence: that may come in the same millisecond.
        std::array<char, kUuidTextSize> unique{};
        format_uuid(run_ids_.next(context_.now), unique);
        const std::string id = fmt::format("{}#{}", name, std::string_view{unique.data(), unique.size()});
        PushRequest request{.topic = spec.topic,
                            .id = id,
                            .body = spec.body,
                            .priority = spec.priority,
                            .options = spec.options};
        if (!spec.group.empty()) request.group = spec.group;
        intake_.push({&request, 1}, [this, topic = std::string{spec.topic},
                                     reply = std::move(reply)](Result<PushReport> report) mutable {
          if (!report.ok()) return context_.refuse(reply, report.error());
          const Result<PushReceipt>& job = report->jobs.front();
          if (!job.ok()) return context_.refuse(reply, job.error());
          context_.answer(reply, Result{ScheduleRun{topic, std::string{job->id}, job->state, job->due}});
        });
      });
}

// ---- due schedules

void Schedules::on_due(std::vector<StoredSchedule> due) {
  if (context_.stopping || !context_.config.makes_occurrences) return;
  admission_.begin();
  auto batch = std::make_unique<DueBatch>();
  batch->requests.reserve(due.size());
  for (const StoredSchedule& stored : due) {
    // A change that is under way would always come too late while the schedule catches up.
    if (!changing_.contains(stored.name)) add_due(stored, *batch);
  }
  if (!batch->items.empty()) turn_due(std::move(batch));
}

bool Schedules::add_due(const StoredSchedule& stored, DueBatch& batch) {
  auto item = std::make_unique<DueBatch::Item>();
  item->stored = stored;
  const std::optional<ScheduleSpec> spec = decode_definition(item->stored);
  const std::optional<ScheduleProgress> progress = decode_progress(stored.progress);
  if (!spec || !progress) return false;
  const Result<Recurrence> rule = recurrence_of(*spec, progress->created);
  if (!rule.ok()) return false;
  item->step = step_schedule(*spec, *rule, *progress, context_.now);
  TurnRequest request{.name = item->stored.name, .expected = stored.revision, .next = item->step.next};
  if (item->step.occurrence) {
    item->topic = context_.topics.find(spec->topic);
    Status status = item->topic != nullptr ? Status{} : admission_.admit_topic("schedule");
    item->bytes = spec->topic.size() + spec->body.size();
    if (status.ok()) status = admission_.admit(item->bytes);
    if (!status) {
      ++figures_.refused;
      return false;
    }
    if (item->topic == nullptr) item->topic = context_.topics.open(spec->topic, context_.now);
    item->topic->last_used = context_.now;
    item->job_id = occurrence_id(spec->name, *item->step.occurrence);
    encode_job_options(spec->options, item->options);
    NewJob& job = request.job.emplace();
    job.topic = item->topic->name;
    job.id = item->job_id;
    job.group = spec->group;
    job.body = spec->body;
    job.options = item->options;
    job.due = due_of(*spec, *item->step.occurrence);
    job.priority = spec->priority.value_or(item->topic->settings->priority);
    job.on_conflict = OnConflict::kKeep;
    job.outlet = outlet_of(spec->options);
    job.lease = spec->options.lease.value_or(Millis::zero());
    if (spec->overlap != Overlap::kAllow && progress->previous != Moment{}) {
      item->previous_id = occurrence_id(spec->name, progress->previous);
      item->previous_topic = progress->previous_topic;
      request.previous = JobRef{item->previous_topic, item->previous_id};
      request.overlap = spec->overlap;
    }
  }
  item->progress = encode_progress(item->step.progress);
  item->if_skipped = encode_progress(item->step.if_skipped);
  request.revision = new_revision();
  request.progress = item->progress;
  request.progress_if_skipped = item->if_skipped;
  batch.requests.push_back(request);
  batch.items.push_back(std::move(item));
  return true;
}

void Schedules::turn_due(std::unique_ptr<DueBatch> batch) {
  const std::span<const TurnRequest> requests = batch->requests;
  context_.engine.turn(context_.now, requests,
                       [this, batch = std::move(batch)](const Result<std::vector<TurnAnswer>>& answers) {
                         settle(*batch, answers);
                       });
}

void Schedules::settle(DueBatch& batch, const Result<std::vector<TurnAnswer>>& answers) {
  for (size_t i = 0; i < batch.items.size(); ++i) {
    const DueBatch::Item& item = *batch.items[i];
    if (item.step.occurrence) admission_.settle(item.bytes);
    // After an error the engine reports the schedule again; when it has changed, another server was first.
    if (!answers.ok() || (*answers)[i].outcome == TurnOutcome::kChanged) continue;
    const TurnAnswer& answer = (*answers)[i];
    figures_.missed += item.step.missed;
    if (!item.step.occurrence) continue;
    if (answer.outcome == TurnOutcome::kSkipped) {
      ++figures_.skipped;
      continue;
    }
    ++figures_.made;
    figures_.lateness.record(context_.now - *item.step.occurrence);
    if (answer.pushed != PushOutcome::kKept) context_.topics.count(item.topic.get(), Tally::kPushed, 1);
    if (answer.has_replaced) {
      const TopicPtr topic = context_.topics.find(batch.requests[i].previous->topic);
      context_.topics.count(topic.get(), Tally::kCancelled, 1);
    }
  }
  if (batch.then) batch.then();
}

}  // namespace delayq
