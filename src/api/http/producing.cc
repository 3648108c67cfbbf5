// What producers ask for.
#include <fmt/format.h>

#include "api/http/conversation.h"
#include "api/http/job_fields.h"
#include "api/only_result.h"
#include "core/text.h"

namespace delayq::http {

namespace {

/// "text/plain" of "Text/Plain; charset=utf-8".
std::string media_type(std::string_view content_type) {
  const std::string_view type = content_type.substr(0, content_type.find(';'));
  return lowered(type.substr(0, type.find_last_not_of(" \t") + 1));
}

/// What curl calls a body when it is not told better counts as JSON too: nobody means a form here.
bool is_json(std::string_view content_type) {
  const std::string type = media_type(content_type);
  return type.empty() || type == "application/json" || type == "application/x-www-form-urlencoded";
}

}  // namespace

Status Conversation::push_one(const PushRequest& job) {
  if (job.unique_across_topics) {
    if (Status status = front_.access.check_unique(caller_); !status.ok()) return status;
  }
  queue_.push(
      now_, {&job, 1},
      [self = self(), place = reserve(), topic = std::string(job.topic)](const Result<PushReport>& report) {
        const Result<PushReceipt> receipt = api::only_result(report);
        if (!receipt.ok()) return self->problem(place, receipt.error());
        self->answer(place, [&](json::Writer& json) {
          json.begin_object();
          write_receipt(json, topic, *receipt);
          json.end_object();
          return receipt->outcome == PushOutcome::kKept ? 200 : 201;
        });
      });
  return {};
}

Status Conversation::push(const Call& call) {
  PushRequest job;
  job.topic = call.names[0];
  return push_job(call, job);
}

Status Conversation::push_as(const Call& call) {
  PushRequest job;
  job.topic = call.names[0];
  job.id = call.names[1];
  job.on_conflict = OnConflict::kReplace;
  return push_job(call, job);
}

Status Conversation::push_job(const Call& call, PushRequest& job) {
  if (is_json(call.request.content_type)) {
    if (!call.target.query.empty()) {
      const std::string& name = call.target.query.front().first;
      return invalid(
          name,
          fmt::format(
              "{}: what is said about a job with a JSON body belongs into that body, not into the query",
              name));
    }
    Result<Fields> fields = Fields::of_json(call.request.body);
    if (!fields.ok()) return fields.error();
    read_body(*fields, job);
    read_job(*fields, job);
    if (Status status = fields->finish(); !status.ok()) return status;
    return push_one(job);
  }
  // Any bytes; what is said about the job is in the query.
  Fields fields(call.target.query);
  read_job(fields, job);
  job.body = call.request.body;
  job.options.content_type = call.request.content_type;
  if (Status status = fields.finish(); !status.ok()) return status;
  return push_one(job);
}

Status Conversation::push_many(const Call& call) {
  if (Status status = Fields::expect_none(call.target.query); !status.ok()) return status;
  Batch::Options options;
  options.form = media_type(call.request.content_type).find("ndjson") == std::string::npos
                     ? json::Splitter::Form::kArray
                     : json::Splitter::Form::kSequence;
  options.job_bytes = host_.job_bytes;
  batch_place_ = reserve();
  batch_ = std::make_shared<Batch>(
      queue_, front_.access, caller_, options,
      [self = self(), place = batch_place_](Result<Batch::Outcome> outcome) {
        if (!outcome.ok()) return self->problem(place, outcome.error());
        self->answer(place, [&](json::Writer& json) {
          json.begin_object().key("pushed").number(outcome->pushed).key("failed").number(outcome->failed);
          json.key("results").raw(outcome->results).end_object();
          return 200;
        });
      });
  batch_->on_progress([self = weak_from_this()] {
    const auto here = std::static_pointer_cast<Conversation>(self.lock());
    if (here != nullptr && here->connection_ != nullptr) here->connection_->on_resume();
  });
  return {};
}

Status Conversation::cancel(const Call& call) {
  if (Status status = Fields::expect_none(call.target.query); !status.ok()) return status;
  const JobRef job{call.names[0], call.names[1]};
  queue_.cancel(
      now_, {&job, 1},
      [self = self(), place = reserve()](const Result<std::vector<Result<CancelOutcome>>>& results) {
        const Result<CancelOutcome> outcome = api::only_result(results);
        if (!outcome.ok()) return self->problem(place, outcome.error());
        self->answer(place, [&](json::Writer& json) {
          json.begin_object().key("result").text(name_of(*outcome)).end_object();
          return 200;
        });
      });
  return {};
}

Status Conversation::cancel_group(const Call& call) {
  if (Status status = Fields::expect_none(call.target.query); !status.ok()) return status;
  queue_.cancel_group(now_, call.names[0], front_.access.topics_of(caller_),
                      respond<GroupCancelAnswer>([](json::Writer& json, const GroupCancelAnswer& answer) {
                        json.begin_object().key("cancelled").number(answer.cancelled);
                        json.key("reserved").number(answer.reserved).end_object();
                        return 200;
                      }));
  return {};
}

Status Conversation::reschedule(const Call& call) {
  Result<Fields> fields = Fields::of_json(call.request.body, call.target.query);
  if (!fields.ok()) return fields.error();
  const RescheduleItem item{{call.names[0], call.names[1]}, fields->duration("delay"), fields->moment("at")};
  if (Status status = fields->finish(); !status.ok()) return status;
  queue_.reschedule(
      now_, {&item, 1},
      [self = self(), place = reserve()](const Result<std::vector<Result<RescheduleOutcome>>>& results) {
        const Result<RescheduleOutcome> outcome = api::only_result(results);
        if (!outcome.ok()) return self->problem(place, outcome.error());
        if (*outcome != RescheduleOutcome::kMoved) return self->problem(place, api::refusal_of(*outcome));
        self->answer(place, [](json::Writer& json) {
          json.begin_object().key("result").text("moved").end_object();
          return 200;
        });
      });
  return {};
}

}  // namespace delayq::http
