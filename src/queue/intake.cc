#include "queue/intake.h"

#include <algorithm>

#include <fmt/format.h>

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
  return request.options.says_nothing() ? Status{} : check_job_options(request.options);
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

/// What is known of a push between its two halves. `jobs` is for the engine's call; of it only ids (which are
/// views into the report) and flags are looked at afterwards.
struct Intake::Batch {
  PushReport report;
  Reply<PushReport> reply;
  std::vector<NewJob> jobs;
  Places places;
  TopicRuns runs;
  Arena options;
  std::string encoded;
  uint64_t bytes = 0;
};

void Intake::push(std::span<const PushRequest> requests, Reply<PushReport> reply) {
  if (const Status status = context_.check_running("push"); !status)
    return context_.refuse(reply, status.error());
  if (const Status size = check_batch("push", requests.size()); !size)
    return context_.refuse(reply, size.error());
  admission_.begin();
  auto batch = std::make_unique<Batch>();
  batch->report.jobs.reserve(requests.size());
  batch->jobs.reserve(requests.size());
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
    // A push of nothing: the flush has brought up to date what the engine knows.
    context_.engine.push(
        context_.now, {},
        [this, reply = std::move(reply)](const Result<std::vector<PushAnswer>>& pushed) mutable {
          context_.answer(reply, pushed.ok() ? Status{} : Status{in_verb("ready", pushed.error())});
        });
  });
}

Status Intake::accept(const PushRequest& request, Batch& batch) {
  if (Status status = check_job(request, context_.now, context_.config.limits); !status) return status;
  if (Status status = open_topic(context_, admission_, request.topic, batch.runs); !status) return status;
  TopicRun& run = batch.runs.back();
  const uint64_t bytes = request.topic.size() + request.body.size();
  // With as many jobs as there may be, only the engine knows whether this one would be one more.
  const bool adds_none = request.id && admission_.is_full();
  if (Status status = adds_none ? admission_.admit_in_place(bytes) : admission_.admit(bytes); !status)
    return status;
  batch.bytes += bytes;
  ++run.count;

  NewJob& job = batch.jobs.emplace_back();
  job.topic = run.topic->name;
  job.id = choose_id(request, batch.report.storage);
  job.group = request.group.value_or(std::string_view{});
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
  }
  return {};
}

Status open_topic(Context& context, const Admission& admission, std::string_view name, TopicRuns& runs) {
  if (!runs.empty() && runs.back().topic->name == name) return {};
  TopicPtr topic = context.topics.find(name);
  if (topic == nullptr) {
    if (Status status = check_topic(name); !status) return status;
    if (Status status = admission.admit_topic("push"); !status) return status;
    topic = context.topics.open(name, context.now);
  }
  topic->last_used = context.now;
  runs.push_back({std::move(topic), 0});
  return {};
}

std::string_view Intake::choose_id(const PushRequest& request, Arena& storage) {
  if (request.id) return storage.copy(*request.id);
  const std::span<char> room = storage.allocate(kUuidTextSize);
  format_uuid(ids_.next(context_.now), room.first<kUuidTextSize>());
  return {room.data(), room.size()};
}

void Intake::settle(Batch& batch, Result<std::vector<PushAnswer>> answers) {
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
      replaced |= answer.outcome == PushOutcome::kReplaced;
    }
    context_.topics.count(run.topic.get(), Tally::kPushed, pushed);
    if (replaced) hand_over_.lease_ended(run.topic);  // The job that it replaced may have been running.
  }
  context_.answer(batch.reply, Result<PushReport>{std::move(batch.report)});
}

}  // namespace delayq
