// What producers ask for.
#include <fmt/format.h>

#include "api/http/conversation.h"
#include "api/http/problem.h"
#include "core/moment.h"

namespace delayq::http {

namespace {

/// "text/plain" of "Text/Plain; charset=utf-8".
std::string media_type(std::string_view content_type) {
  const std::string_view type = content_type.substr(0, content_type.find(';'));
  std::string name(type.substr(0, type.find_last_not_of(" \t") + 1));
  for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return name;
}

/// What curl calls a body when it is not told better counts as JSON too: nobody means a form here.
bool is_json(std::string_view content_type) {
  const std::string type = media_type(content_type);
  return type.empty() || type == "application/json" || type == "application/x-www-form-urlencoded";
}

/// Everything about a job but its body and topic. An id that it has already is that of the path.
void read_job(Fields& fields, PushRequest& job) {
  if (const auto id = fields.text("id")) {
    if (job.id && *job.id != *id) fields.note("id", "is another one than that of the path");
    job.id = *id;
  }
  if (const auto group = fields.text("group")) job.group = *group;
  job.delay = fields.duration("delay");
  job.at = fields.moment("at");
  job.priority = fields.small_number("priority");
  job.options.attempts = fields.small_number("attempts");
  job.options.backoff = fields.backoff("backoff");
  job.options.lease = fields.duration("lease");
  if (const auto callback = fields.text("callback")) job.options.callback = *callback;
  if (const auto unique = fields.boolean("unique")) job.unique_across_topics = *unique;
  if (const auto conflict = fields.text("on_conflict")) {
    if (*conflict == "replace") {
      job.on_conflict = OnConflict::kReplace;
    } else if (*conflict == "keep") {
      job.on_conflict = OnConflict::kKeep;
    } else if (*conflict != "reject") {
      fields.note("on_conflict", "expected reject, replace or keep");
    } else {
      job.on_conflict = OnConflict::kReject;
    }
  }
}

/// The body of a job in a JSON request: any value, kept as it was written.
void read_body(Fields& fields, PushRequest& job) {
  const auto body = fields.value("body");
  if (body) {
    job.body = body->text;
  } else {
    fields.note("body", "is missing; any JSON value will do");
  }
}

void write_receipt(json::Writer& json, std::string_view topic, const PushReceipt& receipt) {
  json.key("topic").text(topic).key("id").text(receipt.id).key("state").text(name_of(receipt.state));
  json.key("due_at").text(format_moment(receipt.due));
}

/// The jobs of a batch: an array, or one object a line.
Result<std::vector<json::Slice>> read_batch(const net::HttpRequest& request) {
  const auto invalid = [](std::string detail) {
    return Error{ErrorCode::kInvalid, {}, std::move(detail), {}};
  };
  std::vector<json::Slice> jobs;
  if (request.content_type.find("ndjson") == std::string_view::npos) {
    const Result<json::Slice> value = json::parse(request.body);
    if (!value.ok()) return invalid(fmt::format("the request's body is not JSON: {}", value.error().detail));
    if (value->type == json::Type::kArray) return json::items_of(*value);
    return invalid("expected an array of jobs, or application/x-ndjson with one a line");
  }
  std::string_view rest = request.body;
  while (rest.find_first_not_of(" \t\r\n") != std::string_view::npos) {
    const Result<json::Slice> job = json::take_value(rest);
    if (!job.ok()) return invalid(fmt::format("job {}: not JSON: {}", jobs.size(), job.error().detail));
    jobs.push_back(*job);
  }
  return jobs;
}

/// A result of a batch: the receipt, or the problem.
void write_result(json::Writer& json, std::string_view topic, const Result<PushReceipt>& result) {
  json.begin_object();
  if (result.ok()) {
    write_receipt(json, topic, *result);
  } else {
    write_problem(json, result.error());
  }
  json.end_object();
}

}  // namespace

Status Conversation::push_one(const PushRequest& job) {
  host_.queue.push(now_, {&job, 1},
                   [self = shared_from_this(), place = replies_.reserve(),
                    topic = std::string(job.topic)](Result<PushReport> report) {
                     if (!report.ok()) return self->problem(place, report.error());
                     const Result<PushReceipt>& receipt = report->jobs.front();
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
      return Error{
          ErrorCode::kInvalid,
          {},
          fmt::format(
              "{}: what is said about a job with a JSON body belongs into that body, not into the query",
              call.target.query.front().first)};
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
  const Result<std::vector<json::Slice>> batch = read_batch(call.request);
  if (!batch.ok()) return batch.error();
  // What is wrong with one is its own result; the good ones go to the queue together.
  std::vector<Fields> fields;
  fields.reserve(batch->size());
  std::vector<PushRequest> jobs;
  std::vector<Status> problems;
  std::vector<std::string> topics;
  for (const json::Slice& slice : *batch) {
    Result<Fields> job_fields = Fields::of_object(slice);
    if (!job_fields.ok()) {
      problems.emplace_back(job_fields.error());
      topics.emplace_back();
      continue;
    }
    fields.push_back(std::move(*job_fields));
    PushRequest job;
    if (const auto topic = fields.back().text("topic")) job.topic = *topic;
    read_body(fields.back(), job);
    read_job(fields.back(), job);
    problems.push_back(fields.back().finish());
    topics.emplace_back(job.topic);
    if (problems.back().ok()) jobs.push_back(std::move(job));
  }
  host_.queue.push(
      now_, jobs,
      [self = shared_from_this(), place = replies_.reserve(), problems = std::move(problems),
       topics = std::move(topics)](Result<PushReport> report) {
        if (!report.ok()) return self->problem(place, report.error());
        self->answer(place, [&](json::Writer& json) {
          size_t next = 0;
          json.begin_object().key("results").begin_array();
          for (size_t i = 0; i < problems.size(); ++i) {
            write_result(json, topics[i],
                         problems[i].ok() ? report->jobs[next++] : Result<PushReceipt>(problems[i].error()));
          }
          json.end_array().end_object();
          return 200;
        });
      });
  return {};
}

Status Conversation::cancel(const Call& call) {
  if (Status status = Fields::expect_none(call.target.query); !status.ok()) return status;
  const JobRef job{call.names[0], call.names[1]};
  host_.queue.cancel(now_, {&job, 1},
                     [self = shared_from_this(),
                      place = replies_.reserve()](const Result<std::vector<Result<CancelOutcome>>>& results) {
                       if (!results.ok()) return self->problem(place, results.error());
                       const Result<CancelOutcome>& outcome = results->front();
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
  host_.queue.cancel_group(
      now_, call.names[0],
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
  host_.queue.reschedule(now_, {&item, 1},
                         [self = shared_from_this(), place = replies_.reserve()](
                             const Result<std::vector<Result<RescheduleOutcome>>>& results) {
                           if (!results.ok()) return self->problem(place, results.error());
                           const Result<RescheduleOutcome>& outcome = results->front();
                           if (!outcome.ok()) return self->problem(place, outcome.error());
                           const auto refuse = [&](ErrorCode code, std::string_view detail) {
                             self->problem(place, {code, {}, std::string(detail), {}});
                           };
                           switch (*outcome) {
                             case RescheduleOutcome::kMoved:
                               return self->answer(place, [](json::Writer& json) {
                                 json.begin_object().key("result").text("moved").end_object();
                                 return 200;
                               });
                             case RescheduleOutcome::kReserved:
                               return refuse(ErrorCode::kConflict, "the job is being worked on");
                             case RescheduleOutcome::kDone:
                               return refuse(ErrorCode::kConflict, "the job is done");
                             case RescheduleOutcome::kUnknown:
                               return refuse(ErrorCode::kNotFound, "there is no such job");
                           }
                         });
  return {};
}

}  // namespace delayq::http
