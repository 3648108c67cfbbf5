// The calls of producers and consumers.
#include <memory>

#include <fmt/format.h>

#include "api/http/conversation.h"
#include "api/http/streams.h"
#include "api/http/v1.h"
#include "api/verbs.h"
#include "core/limits.h"
#include "core/moment.h"

namespace delayq::http::v1_calls {

namespace {

/// Stores one job and answers with its receipt.
Status push_one(const Call& call, const PushRequest& job) {
  if (job.unique_across_topics) {
    if (Status status = call.check_unique(); !status.ok()) return status;
  }
  call.queue().push(
      call.now(), {&job, 1},
      [responder = call.accept(), topic = std::string(job.topic)](const Result<PushReport>& report) {
        const Result<PushReceipt> receipt = api::only_result(report);
        if (!receipt.ok()) return responder.refuse(receipt.error());
        responder.send_json([&](json::Writer& json) {
          json.begin_object();
          write_push_receipt(json, topic, *receipt);
          json.end_object();
          return receipt->outcome == PushOutcome::kKept ? 200 : 201;
        });
      });
  return {};
}

/// `job` already has what is in the path.
Status push_job(const Call& call, PushRequest& job) {
  Result<Fields> fields = fields_with_body(call, job.body, job.options);
  if (!fields.ok()) return fields.error();
  read_job(*fields, job);
  if (Status status = fields->finish(); !status.ok()) return status;
  return push_one(call, job);
}

void write_taken(json::Writer& json, const TakenJob& taken) {
  json.begin_object().key("topic").text(taken.job.topic).key("id").text(taken.job.id);
  write_job_body(json, taken.job);
  json.key("attempt").number(uint64_t{taken.job.attempts}).key("due_at").text(format_moment(taken.job.due));
  if (!taken.lease.empty()) {
    json.key("lease").text(taken.lease).key("lease_until").text(format_moment(taken.job.until));
  }
  json.end_object();
}

/// One result for each lease: "acked" and the like, or the problem with it.
template <class T, class Good>
void write_results(json::Writer& json, const std::vector<T>& results, Good good) {
  json.begin_object().key("results").begin_array();
  for (const T& result : results) {
    json.begin_object();
    if (result.ok()) {
      good(json, result);
    } else {
      write_problem(json, renamed(result.error(), "lease", "leases"));
    }
    json.end_object();
  }
  json.end_array().end_object();
}

/// Reads the leases, the last field. All of them must be of topics that the caller may use.
Result<std::vector<std::string_view>> leases_of(const Call& call, Fields& fields) {
  auto leases = fields.texts("leases");
  if (!leases) fields.note("leases", "is missing; an array of lease texts");
  if (Status status = fields.finish(); !status.ok()) return status.error();
  for (const std::string_view lease : *leases) {
    if (Status status = call.access().check_lease(call.caller(), only(Scope::kConsume), lease); !status.ok())
      return status.error();
  }
  return std::move(*leases);
}

/// `is_list`: the request named the topics under "topics".
Status pop_from(const Call& call, Fields& fields, std::vector<std::string_view> topics, bool is_list) {
  PopRequest request;
  request.topics = topics;
  request.count = fields.small_number("count").value_or(1);
  request.wait = fields.duration("wait").value_or(Millis{});
  request.lease = fields.duration("lease");
  if (const auto ack = fields.text("ack")) {
    if (*ack != "auto" && *ack != "manual") fields.note("ack", "expected auto or manual");
    request.auto_ack = *ack == "auto";
  }
  if (Status status = fields.finish(); !status.ok()) return status;
  for (const std::string_view topic : topics) {
    if (Status status = call.check(only(Scope::kConsume), topic); !status.ok()) return status;
  }
  const Responder responder = call.accept();
  responder.pop(request, [responder, is_list](const Result<PopAnswer>& popped) {
    if (!popped.ok())
      return responder.refuse(is_list ? renamed(popped.error(), "topic", "topics") : popped.error());
    responder.send_json([&](json::Writer& json) {
      json.begin_object().key("jobs").begin_array();
      for (const TakenJob& taken : popped->jobs) write_taken(json, taken);
      json.end_array().end_object();
      return 200;
    });
  });
  return {};
}

Reply<std::optional<FoundJob>> send_found(const Responder& responder) {
  return [responder](const Result<std::optional<FoundJob>>& found) {
    if (!found.ok()) return responder.refuse(found.error());
    if (!*found) return responder.refuse({ErrorCode::kNotFound, {}, "there is no such job", {}});
    const std::string problem = responder.queue().delivery_problem(responder.now(), (*found)->job);
    responder.send_json([&](json::Writer& json) {
      write_job(json, (*found)->job, true, problem);
      return 200;
    });
  };
}

}  // namespace

// ---- producers

Status push(const Call& call) {
  PushRequest job;
  job.topic = call.names[0];
  return push_job(call, job);
}

Status push_as(const Call& call) {
  PushRequest job;
  job.topic = call.names[0];
  job.id = call.names[1];
  job.on_conflict = OnConflict::kReplace;
  return push_job(call, job);
}

Status push_many(const Call& call) {
  if (Status status = call.expect_no_query(); !status.ok()) return status;
  PushStream::Options options;
  options.form = media_type(call.request.content_type).find("ndjson") == std::string::npos
                     ? json::Splitter::Form::kArray
                     : json::Splitter::Form::kSequence;
  options.job_bytes = call.host().job_bytes;
  const Responder responder = call.accept();
  call.receive(
      std::make_shared<PushStream>(
          call.queue(), call.access(), call.caller(), options,
          [responder](const Result<PushStream::Outcome>& outcome) {
            if (!outcome.ok()) return responder.refuse(outcome.error());
            responder.send_json([&](json::Writer& json) {
              json.begin_object().key("pushed").number(outcome->pushed).key("failed").number(outcome->failed);
              json.key("results").raw(outcome->results).end_object();
              return 200;
            });
          }),
      responder);
  return {};
}

Status cancel(const Call& call) {
  if (Status status = call.expect_no_query(); !status.ok()) return status;
  const JobRef job{call.names[0], call.names[1]};
  call.queue().cancel(call.now(), {&job, 1},
                      [responder = call.accept()](const Result<std::vector<Result<CancelOutcome>>>& results) {
                        const Result<CancelOutcome> outcome = api::only_result(results);
                        if (!outcome.ok()) return responder.refuse(outcome.error());
                        responder.send_json([&](json::Writer& json) {
                          json.begin_object().key("result").text(name_of(*outcome)).end_object();
                          return 200;
                        });
                      });
  return {};
}

Status cancel_group(const Call& call) {
  if (Status status = call.expect_no_query(); !status.ok()) return status;
  call.queue().cancel_group(
      call.now(), call.names[0], call.access().topics_of(call.caller()),
      call.accept().respond<GroupCancelAnswer>([](json::Writer& json, const GroupCancelAnswer& answer) {
        json.begin_object().key("cancelled").number(answer.cancelled);
        json.key("reserved").number(answer.reserved).end_object();
        return 200;
      }));
  return {};
}

Status reschedule(const Call& call) {
  Result<Fields> fields = call.json_fields();
  if (!fields.ok()) return fields.error();
  const RescheduleItem item{{call.names[0], call.names[1]}, fields->duration("delay"), fields->moment("at")};
  if (Status status = fields->finish(); !status.ok()) return status;
  call.queue().reschedule(
      call.now(), {&item, 1},
      [responder = call.accept()](const Result<std::vector<Result<RescheduleOutcome>>>& results) {
        const Result<RescheduleOutcome> outcome = api::only_result(results);
        if (!outcome.ok()) return responder.refuse(outcome.error());
        if (*outcome != RescheduleOutcome::kMoved) return responder.refuse(api::refusal_of(*outcome));
        responder.send_json([](json::Writer& json) {
          json.begin_object().key("result").text("moved").end_object();
          return 200;
        });
      });
  return {};
}

// ---- consumers

Status pop_topic(const Call& call) {
  Result<Fields> fields = call.json_fields();
  if (!fields.ok()) return fields.error();
  return pop_from(call, *fields, {call.names[0]}, false);
}

Status pop(const Call& call) {
  Result<Fields> fields = call.json_fields();
  if (!fields.ok()) return fields.error();
  auto topics = fields->texts("topics");
  if (!topics) fields->note("topics", "is missing; an array of topic names");
  return pop_from(call, *fields, topics ? std::move(*topics) : std::vector<std::string_view>{}, true);
}

Status ack(const Call& call) {
  Result<Fields> fields = call.json_fields();
  if (!fields.ok()) return fields.error();
  const auto leases = leases_of(call, *fields);
  if (!leases.ok()) return leases.error();
  std::vector<AckItem> items;
  for (const std::string_view lease : *leases) items.push_back({.lease = lease});
  call.queue().ack(
      call.now(), items,
      call.accept().respond<std::vector<Status>>([](json::Writer& json, const std::vector<Status>& results) {
        write_results(json, results,
                      [](json::Writer& item, const Status&) { item.key("result").text("acked"); });
        return 200;
      }));
  return {};
}

Status nack(const Call& call) {
  Result<Fields> fields = call.json_fields();
  if (!fields.ok()) return fields.error();
  NackItem item;
  item.delay = fields->duration("delay");
  item.reason = fields->text("reason").value_or(std::string_view());
  item.dead = fields->boolean("dead").value_or(false);
  const auto leases = leases_of(call, *fields);
  if (!leases.ok()) return leases.error();
  std::vector<NackItem> items;
  for (const std::string_view lease : *leases) {
    item.lease = lease;
    items.push_back(item);
  }
  // A field that is for all leases is an error of the request, not of each lease.
  if (Status status = check_reason(item.reason); !status.ok()) return status;
  if (Status status = item.delay ? check_delay(*item.delay) : Status(); !status.ok()) return status;
  using Results = std::vector<Result<NackReceipt>>;
  call.queue().nack(call.now(), items,
                    call.accept().respond<Results>([](json::Writer& json, const Results& results) {
                      write_results(json, results, [](json::Writer& out, const Result<NackReceipt>& receipt) {
                        out.key("result").text(name_of(receipt->outcome));
                        if (receipt->retry_at) out.key("retry_at").text(format_moment(*receipt->retry_at));
                      });
                      return 200;
                    }));
  return {};
}

Status extend(const Call& call) {
  Result<Fields> fields = call.json_fields();
  if (!fields.ok()) return fields.error();
  const std::optional<Millis> lease = fields->duration("lease");
  const auto leases = leases_of(call, *fields);
  if (!leases.ok()) return leases.error();
  std::vector<ExtendItem> items;
  for (const std::string_view text : *leases) items.push_back({text, lease});
  if (Status status = lease ? check_lease(*lease) : Status(); !status.ok()) return status;
  using Results = std::vector<Result<Moment>>;
  call.queue().extend(call.now(), items,
                      call.accept().respond<Results>([](json::Writer& json, const Results& results) {
                        write_results(json, results, [](json::Writer& out, const Result<Moment>& until) {
                          out.key("result").text("extended").key("lease_until").text(format_moment(*until));
                        });
                        return 200;
                      }));
  return {};
}

// ---- looking at jobs

Status get(const Call& call) {
  if (Status status = call.expect_no_query(); !status.ok()) return status;
  call.queue().get(call.now(), {call.names[0], call.names[1]}, send_found(call.accept()));
  return {};
}

Status find(const Call& call) {
  if (Status status = call.expect_no_query(); !status.ok()) return status;
  const Responder responder = call.accept_steps();
  responder.find_kept_too(call.names[0], send_found(responder));
  return {};
}

Status list(const Call& call) {
  Fields fields(call.target.query);
  ListRequest request;
  request.topic = call.names[0];
  if (const auto name = fields.text("state")) {
    const std::optional<JobState> state = parse_job_state(*name);
    if (!state) fields.note("state", "expected delayed, ready, reserved, done or dead");
    request.state = state.value_or(JobState::kReady);
  } else {
    fields.note("state", "is missing: delayed, ready, reserved, done or dead");
  }
  request.id_prefix = fields.text("prefix").value_or(std::string_view());
  request.outcome_contains = fields.text("error").value_or(std::string_view());
  request.due.from = fields.moment("due_after").value_or(request.due.from);
  request.due.before = fields.moment("due_before").value_or(request.due.before);
  request.cursor = fields.text("cursor").value_or(std::string_view());
  request.limit = fields.small_number("limit").value_or(100);
  request.with_bodies = fields.boolean("bodies").value_or(false);
  if (Status status = fields.finish(); !status.ok()) return status;
  call.queue().list(call.now(), request,
                    call.accept().respond<JobPage>(
                        [with_bodies = request.with_bodies](json::Writer& json, const JobPage& page) {
                          json.begin_object().key("jobs").begin_array();
                          for (const Job& job : page.jobs) write_job(json, job, with_bodies);
                          json.end_array().key("cursor").text(page.cursor).end_object();
                          return 200;
                        }));
  return {};
}

}  // namespace delayq::http::v1_calls
