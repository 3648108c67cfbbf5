#include "queue/intake.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/moment.h"
#include "core/text.h"

namespace delayq {

namespace {

Status check_when(const PushRequest& request, Moment now) {
  if (request.delay && request.at) return invalid("delay", "delay and at: give at most one of them");
  if (request.delay) return check_delay(*request.delay);
  if (request.at) return check_due(now, *request.at);
  return {};
}

/// Everything but the topic, which is checked once for a run of jobs.
Status check_job(const PushRequest& request, Moment now, const Limits& limits) {
  if (request.id) {
    if (Status status = check_id(*request.id); !status) return status;
  }
  if (request.group) {
    if (Status status = check_group(*request.group); !status) return status;
  }
  if (Status status = check_body(request.body.size(), limits.body_bytes); !status) return status;
  if (Status status = check_when(request, now); !status) return status;
  return request.options.says_nothing() ? Status{} : check_new_options(request.options);
}

Moment due_of(const PushRequest& request, Moment now) {
  if (request.at) return std::max(*request.at, Moment{});
  return saturating_add(now, request.delay.value_or(Millis::zero()));
}

Error conflict(const NewJob& job, const PushAnswer& answer) {
  return about_field("id", {ErrorCode::kConflict, "push",
                            fmt::format("id {} is already {}{}", quote(job.id), name_of(answer.state),
                                        job.unique_across_topics ? ", in this topic or another" : "")});
}

}  // namespace

/// A push between the call of the engine and its answer. After the call only the ids and flags of `jobs` may
/// be used: the ids are views into the report, but other views belong to the caller.
struct Intake::PushBatch {
  PushReport report;
  Reply<PushReport> reply;
  std::vector<NewJob> jobs;
  Places places;
  TopicRuns runs;
  Arena options;
  std::string encoded;
  uint64_t bytes = 0;
  bool is_told = false;  ///< somebody listens, so the groups are kept
};

void Intake::push(std::span<const PushRequest> requests, Reply<PushReport> reply) {
  if (const Status status = context_.check_running("push"); !status)
    return context_.refuse(reply, status.error());
  if (const Status size = check_batch("push", requests.size()); !size)
    return context_.refuse(reply, size.error());
  admission_.begin();
  auto batch = std::make_unique<PushBatch>();
  batch->report.jobs.reserve(requests.size());
  batch->jobs.reserve(requests.size());
  batch->is_told = context_.news.is_on();
  for (const PushRequest& request : requests) {
    if (const Status status = accept(request, *batch); status.ok()) {
      batch->places.keep();
      batch->report.jobs.emplace_back(PushReceipt{.id = batch->jobs.back().id});
    } else {
      batch->places.leave_out();
      batch->report.jobs.emplace_back(in_verb("push", status.error()));
    }
  }
  if (batch->jobs.empty()) return context_.answer(reply, Result<PushReport>{std::move(batch->report)});
  batch->reply = std::move(reply);
  const std::span<const NewJob> jobs = batch->jobs;
  context_.engine.push(context_.now, jobs,
                       [this, batch = std::move(batch)](Result<std::vector<PushAnswer>> answers) {
                         settle(*batch, std::move(answers));
                       });
}

void Intake::ready(Reply<void> reply) {
  if (const Status status = context_.check_running("ready"); !status)
    return context_.refuse(reply, status.error());
  admission_.begin();
  if (const Status room = admission_.has_room_for(0); !room) {
    return context_.refuse(reply, in_verb("ready", room.error()));
  }
  context_.engine.flush([this, reply = std::move(reply)](const Result<bool>& flushed) mutable {
    if (!flushed.ok()) return context_.answer(reply, Status{flushed.error()});
    // An empty push reports whether the engine works. The flush has updated what the engine knows.
    context_.engine.push(
        context_.now, {},
        [this, reply = std::move(reply)](const Result<std::vector<PushAnswer>>& pushed) mutable {
          context_.answer(reply, pushed.ok() ? Status{} : Status{in_verb("ready", pushed.error())});
        });
  });
}

void Intake::tell(std::string_view topic, std::string_view id, std::string_view group,
                  const PushAnswer& answer) {
  if (!context_.news.is_on()) return;
  context_.news.note({.kind = NewsKind::kPushed,
                      .at = context_.now,
                      .topic = topic,
                      .id = id,
                      .group = group,
                      .state = answer.state,
                      .due = answer.due});
}

Status Intake::accept(const PushRequest& request, PushBatch& batch) {
  if (Status status = check_job(request, context_.now, context_.config.limits); !status) return status;
  if (Status status = open_topic(request.topic, batch.runs); !status) return status;
  TopicRun& run = batch.runs.back();
  const uint64_t bytes = request.topic.size() + request.body.size();
  // At the maximum number of jobs, a job may still replace one with the same id. Only the engine knows
  // whether there is one.
  const bool adds_none = request.id && admission_.is_full();
  if (Status status = adds_none ? admission_.admit_in_place(bytes) : admission_.admit(bytes); !status)
    return status;
  batch.bytes += bytes;
  ++run.count;

  NewJob& job = batch.jobs.emplace_back();
  job.topic = run.topic->name;
  job.id = choose_id(request, batch.report.storage);
  job.group = request.group.value_or(std::string_view{});
  if (batch.is_told) job.group = batch.options.copy(job.group);
  job.body = request.body;
  job.due = due_of(request, context_.now);
  job.priority = request.priority.value_or(run.topic->settings->priority);
  job.on_conflict = request.on_conflict;
  job.unique_across_topics = request.unique_across_topics;
  job.adds_none = adds_none;
  job.outlet = outlet_of(request.options);
  if (!request.options.says_nothing()) {
    batch.encoded.clear();
    encode_job_options(request.options, batch.encoded);
    job.options = batch.options.copy(batch.encoded);
    job.lease = request.options.lease.value_or(Millis::zero());
  }
  return {};
}

Status Intake::open_topic(std::string_view name, TopicRuns& runs) {
  if (!runs.empty() && runs.back().topic->name == name) return {};
  TopicPtr topic = context_.topics.find(name);
  if (topic == nullptr) {
    if (Status status = check_topic(name); !status) return status;
    if (Status status = admission_.admit_topic("push"); !status) return status;
    topic = context_.topics.open(name, context_.now);
  }
  topic->last_used = context_.now;
  runs.push_back({std::move(topic), 0});
  return {};
}

std::string_view Intake::choose_id(const PushRequest& request, Arena& storage) {
  if (request.id) return storage.copy(*request.id);
  const std::span<char> room = storage.allocate(kUuidTextSize);
  format_uuid(ids_.next(context_.now), room.first<kUuidTextSize>());
  return {room.data(), room.size()};
}

void Intake::settle(PushBatch& batch, Result<std::vector<PushAnswer>> answers) {
  admission_.settle(batch.bytes);
  size_t next = 0;
  for (const TopicRun& run : batch.runs) {
    uint64_t pushed = 0;
    bool replaced = false;
    for (uint32_t i = 0; i < run.count; ++i, ++next) {
      Result<PushReceipt>& result = batch.report.jobs[batch.places[next]];
      if (!answers.ok()) {
        result = answers.error();
        continue;
      }
      const PushAnswer& answer = (*answers)[next];
      if (answer.outcome == PushOutcome::kConflict) {
        result = conflict(batch.jobs[next], answer);
        continue;
      }
      if (answer.outcome == PushOutcome::kAbsent) {
        result = admission_.full();
        continue;
      }
      *result = {result->id, answer.outcome, answer.state, answer.due};
      pushed += answer.outcome == PushOutcome::kKept ? 0 : 1;
      if (batch.is_told && answer.outcome != PushOutcome::kKept)
        tell(run.topic->name, batch.jobs[next].id, batch.jobs[next].group, answer);
      replaced |= answer.outcome == PushOutcome::kReplaced;
    }
    context_.topics.count(run.topic.get(), Tally::kPushed, pushed);
    if (replaced) hand_over_.lease_ended(run.topic);  // The replaced job may have been running.
  }
  context_.answer(batch.reply, Result<PushReport>{std::move(batch.report)});
}

namespace {

/// The maximum number of attempts of a restored job. Later attempts are added to it, in 32 bits.
constexpr uint32_t kMostAttemptsMade = 1'000'000'000;

/// The same error, with `field` as the name of the field.
Status rename(std::string_view field, const Status& status) {
  if (status.ok()) return status;
  Error error = status.error();
  error.detail = fmt::format("{}: {}", field, error.detail);
  error.field = field;
  return error;
}

Status check_kept_until(Moment now, Moment until) {
  const Moment last = saturating_add(now, Limits::kMaxRetention);
  if (until <= last) return {};
  return invalid("kept_until", fmt::format("kept_until: {} is too far away: at most until {} is allowed",
                                           format_moment(until), format_moment(last)));
}

/// Everything but the topic.
Status check_item(const RestoreItem& item, Moment now, const Limits& limits) {
  const Job& job = item.job;
  if (Status status = check_id(job.id); !status) return status;
  if (!job.group.empty()) {
    if (Status status = check_group(job.group); !status) return status;
  }
  if (Status status = check_body(job.body.size(), limits.body_bytes); !status) return status;
  if (Status status = rename("due_at", check_due(now, job.due)); !status) return status;
  if (Status status = rename("pushed_at", check_due(now, job.pushed)); !status) return status;
  if (job.due < Moment{} || job.pushed < Moment{})
    return invalid(job.due < Moment{} ? "due_at" : "pushed_at",
                   "due_at and pushed_at: before 1970 there was no queue");
  // Any bytes are allowed: an outcome may be the answer of an HTTP server.
  if (job.outcome.size() > Limits::kReasonBytes) {
    return invalid("outcome", fmt::format("outcome has {} bytes: at most {} are allowed", job.outcome.size(),
                                          Limits::kReasonBytes));
  }
  if (job.attempts > kMostAttemptsMade) {
    return invalid("attempts", fmt::format("attempts {} is out of range: 0 to {} is allowed", job.attempts,
                                           kMostAttemptsMade));
  }
  if (!is_live(job.state)) {
    if (Status status = check_kept_until(now, job.until); !status) return status;
  }
  return item.options.says_nothing() ? Status{} : check_job_options(item.options);
}

RestoreOutcome outcome_of(PushOutcome outcome) {
  switch (outcome) {
    case PushOutcome::kCreated:
      return RestoreOutcome::kCreated;
    case PushOutcome::kReplaced:
      return RestoreOutcome::kReplaced;
    case PushOutcome::kKept:
    case PushOutcome::kConflict:
    case PushOutcome::kAbsent:
      break;
  }
  return RestoreOutcome::kKept;
}

Error conflict(std::string_view id, JobState state) {
  return about_field(
      "id", {ErrorCode::kConflict, "restore", fmt::format("id {} is already {}", quote(id), name_of(state))});
}

}  // namespace

/// A batch between the call of the engine and its answer. After the call only the ids in `requests` may be
/// used: other views belong to the caller.
struct Intake::RestoreBatch {
  std::vector<Result<RestoreReceipt>> results;
  Reply<std::vector<Result<RestoreReceipt>>> reply;
  std::vector<RestoreRequest> requests;
  Places places;
  TopicRuns runs;
  Arena texts;
  std::string encoded;
  uint64_t bytes = 0;
};

void Intake::restore(std::span<const RestoreItem> items, Reply<std::vector<Result<RestoreReceipt>>> reply) {
  if (const Status status = context_.check_running("restore"); !status)
    return context_.refuse(reply, status.error());
  if (const Status size = check_batch("restore", items.size()); !size)
    return context_.refuse(reply, size.error());
  admission_.begin();
  auto batch = std::make_unique<RestoreBatch>();
  batch->results.reserve(items.size());
  for (const RestoreItem& item : items) {
    const Result<bool> accepted = accept(item, *batch);
    if (accepted.ok() && *accepted) {
      batch->places.keep();
    } else {
      batch->places.leave_out();
    }
    if (accepted.ok()) {
      batch->results.emplace_back(RestoreReceipt{RestoreOutcome::kDropped, item.job.state, item.job.due});
    } else {
      batch->results.emplace_back(in_verb("restore", accepted.error()));
    }
  }
  if (batch->requests.empty()) return context_.answer(reply, Result{std::move(batch->results)});
  batch->reply = std::move(reply);
  const std::span<const RestoreRequest> requests = batch->requests;
  context_.engine.restore(context_.now, requests,
                          [this, batch = std::move(batch)](const Result<std::vector<PushAnswer>>& answers) {
                            settle(*batch, answers);
                          });
}

Result<bool> Intake::accept(const RestoreItem& item, RestoreBatch& batch) {
  const Job& job = item.job;
  if (Status status = check_item(item, context_.now, context_.config.limits); !status) return status.error();
  if (Status status = open_topic(job.topic, batch.runs); !status) return status.error();
  TopicRun& run = batch.runs.back();
  uint32_t keep_count = 1;
  if (is_live(job.state)) {
    // The job was cancelled while it was running, so it must not run again.
    if (job.cancel_requested) return false;
  } else {
    const EffectiveSettings& settings = *run.topic->settings;
    const Retention& keep = job.state == JobState::kDone ? settings.keep_done : settings.keep_dead;
    if (job.until <= context_.now || keep.count == 0 || keep.time == Millis::zero()) return false;
    keep_count = keep.count;
  }
  const uint64_t bytes = job.topic.size() + job.body.size();
  if (Status status = admission_.admit(bytes); !status) return status.error();
  batch.bytes += bytes;
  ++run.count;
  RestoreRequest& request = batch.requests.emplace_back();
  request.job = job;
  request.job.topic = run.topic->name;
  request.job.id = batch.texts.copy(job.id);
  request.job.options = {};
  request.job.group = batch.texts.copy(job.group);
  request.job.outlet = outlet_of(item.options);
  request.on_conflict = item.on_conflict;
  request.keep_count = keep_count;
  if (!item.options.says_nothing()) {
    batch.encoded.clear();
    encode_job_options(item.options, batch.encoded);
    request.job.options = batch.texts.copy(batch.encoded);
    request.lease = item.options.lease.value_or(Millis::zero());
  }
  return true;
}

void Intake::settle(RestoreBatch& batch, const Result<std::vector<PushAnswer>>& answers) {
  admission_.settle(batch.bytes);
  size_t next = 0;
  for (const TopicRun& run : batch.runs) {
    uint64_t pushed = 0;
    bool replaced = false;
    for (uint32_t i = 0; i < run.count; ++i, ++next) {
      Result<RestoreReceipt>& result = batch.results[batch.places[next]];
      if (!answers.ok()) {
        result = answers.error();
        continue;
      }
      const PushAnswer& answer = (*answers)[next];
      if (answer.outcome == PushOutcome::kConflict) {
        result = conflict(batch.requests[next].job.id, answer.state);
        continue;
      }
      *result = {outcome_of(answer.outcome), answer.state, answer.due};
      const bool is_pushed = answer.outcome != PushOutcome::kKept && is_live(answer.state);
      pushed += is_pushed ? 1 : 0;
      if (is_pushed) {
        const Job& job = batch.requests[next].job;
        tell(run.topic->name, job.id, job.group, answer);
      }
      replaced |= answer.outcome == PushOutcome::kReplaced;
    }
    context_.topics.count(run.topic.get(), Tally::kPushed, pushed);
    if (replaced) hand_over_.lease_ended(run.topic);  // The replaced job may have been running.
  }
  context_.answer(batch.reply, Result{std::move(batch.results)});
}

void Intake::restore_settings(std::string_view name, Settings settings, OnConflict on_conflict,
                              Reply<RestoreOutcome> reply) {
  const Settings& known = settings_.own(name);
  const bool has_some = known != Settings{};
  if (has_some && on_conflict != OnConflict::kReplace) {
    if (on_conflict == OnConflict::kKeep || known == settings)
      return context_.answer(reply, Result{RestoreOutcome::kKept});
    return context_.refuse(
        reply, about_field("topic", Error{ErrorCode::kConflict, "restore",
                                          fmt::format("topic {} has settings already", quote(name))}));
  }
  const RestoreOutcome outcome = has_some ? RestoreOutcome::kReplaced : RestoreOutcome::kCreated;
  settings_.set(context_, name, std::move(settings),
                [this, outcome, reply = std::move(reply)](const Result<void>& stored) mutable {
                  if (!stored.ok()) return context_.refuse(reply, in_verb("restore", stored.error()));
                  context_.answer(reply, Result{outcome});
                });
}

}  // namespace delayq
