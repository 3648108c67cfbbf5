// What consumers ask for.
#include <fmt/format.h>

#include "api/http/conversation.h"
#include "api/http/problem.h"
#include "core/limits.h"
#include "core/moment.h"

namespace delayq::http {

namespace {

void write_taken(json::Writer& json, const TakenJob& taken) {
  json.begin_object().key("topic").text(taken.job.topic).key("id").text(taken.job.id);
  write_body(json, taken.job);
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

std::string_view name_of_outcome(NackOutcome outcome) {
  switch (outcome) {
    case NackOutcome::kRetried:
      return "retried";
    case NackOutcome::kDead:
      return "dead";
    case NackOutcome::kCancelled:
      return "cancelled";
    case NackOutcome::kStale:
      break;
  }
  return "stale_lease";
}

}  // namespace

Result<std::vector<std::string_view>> Conversation::leases_of(Fields& fields) const {
  auto leases = fields.texts("leases");
  if (!leases) fields.note("leases", "is missing; an array of lease texts");
  if (Status status = fields.finish(); !status.ok()) return status.error();
  for (const std::string_view lease : *leases) {
    if (Status status = front_.access.check_lease(caller_, only(Scope::kConsume), lease); !status.ok())
      return status.error();
  }
  return std::move(*leases);
}

Status Conversation::pop_topic(const Call& call) {
  Result<Fields> fields = Fields::of_json(call.request.body, call.target.query);
  if (!fields.ok()) return fields.error();
  return pop_from(*fields, {call.names[0]}, false);
}

Status Conversation::pop(const Call& call) {
  Result<Fields> fields = Fields::of_json(call.request.body, call.target.query);
  if (!fields.ok()) return fields.error();
  auto topics = fields->texts("topics");
  if (!topics) fields->note("topics", "is missing; an array of topic names");
  return pop_from(*fields, topics ? std::move(*topics) : std::vector<std::string_view>{}, true);
}

Status Conversation::pop_from(Fields& fields, std::vector<std::string_view> topics, bool is_list) {
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
    if (Status status = front_.access.check(caller_, only(Scope::kConsume), topic); !status.ok())
      return status;
  }
  const Place place = reserve();
  const Status status =
      ask_for_jobs(now_, request, place, [this, place, is_list](const Result<PopAnswer>& popped) {
        if (!popped.ok())
          return problem(place, is_list ? renamed(popped.error(), "topic", "topics") : popped.error());
        answer(place, [&](json::Writer& json) {
          json.begin_object().key("jobs").begin_array();
          for (const TakenJob& taken : popped->jobs) write_taken(json, taken);
          json.end_array().end_object();
          return 200;
        });
      });
  if (!status.ok()) problem(place, status.error());
  return {};
}

Status Conversation::ack(const Call& call) {
  Result<Fields> fields = Fields::of_json(call.request.body, call.target.query);
  if (!fields.ok()) return fields.error();
  const auto leases = leases_of(*fields);
  if (!leases.ok()) return leases.error();
  std::vector<AckItem> items;
  for (const std::string_view lease : *leases) items.push_back({.lease = lease});
  queue_.ack(now_, items,
             respond<std::vector<Status>>([](json::Writer& json, const std::vector<Status>& results) {
               write_results(json, results,
                             [](json::Writer& item, const Status&) { item.key("result").text("acked"); });
               return 200;
             }));
  return {};
}

Status Conversation::nack(const Call& call) {
  Result<Fields> fields = Fields::of_json(call.request.body, call.target.query);
  if (!fields.ok()) return fields.error();
  NackItem item;
  item.delay = fields->duration("delay");
  item.reason = fields->text("reason").value_or(std::string_view());
  item.dead = fields->boolean("dead").value_or(false);
  const auto leases = leases_of(*fields);
  if (!leases.ok()) return leases.error();
  std::vector<NackItem> items;
  for (const std::string_view lease : *leases) {
    item.lease = lease;
    items.push_back(item);
  }
  // What holds for all of them is wrong with the request, not with each.
  if (Status status = check_reason(item.reason); !status.ok()) return status;
  if (Status status = item.delay ? check_delay(*item.delay) : Status(); !status.ok()) return status;
  using Results = std::vector<Result<NackReceipt>>;
  queue_.nack(now_, items, respond<Results>([](json::Writer& json, const Results& results) {
                write_results(json, results, [](json::Writer& out, const Result<NackReceipt>& receipt) {
                  out.key("result").text(name_of_outcome(receipt->outcome));
                  if (receipt->retry_at) out.key("retry_at").text(format_moment(*receipt->retry_at));
                });
                return 200;
              }));
  return {};
}

Status Conversation::extend(const Call& call) {
  Result<Fields> fields = Fields::of_json(call.request.body, call.target.query);
  if (!fields.ok()) return fields.error();
  const std::optional<Millis> lease = fields->duration("lease");
  const auto leases = leases_of(*fields);
  if (!leases.ok()) return leases.error();
  std::vector<ExtendItem> items;
  for (const std::string_view text : *leases) items.push_back({text, lease});
  if (Status status = lease ? check_lease(*lease) : Status(); !status.ok()) return status;
  using Results = std::vector<Result<Moment>>;
  queue_.extend(now_, items, respond<Results>([](json::Writer& json, const Results& results) {
                  write_results(json, results, [](json::Writer& out, const Result<Moment>& until) {
                    out.key("result").text("extended").key("lease_until").text(format_moment(*until));
                  });
                  return 200;
                }));
  return {};
}

}  // namespace delayq::http
