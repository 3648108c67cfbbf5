// The calls about the server itself, and about everything that it holds.
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/http/conversation.h"
#include "api/http/metrics.h"
#include "api/http/v1.h"
#include "api/transfer/line.h"
#include "core/limits.h"
#include "core/moment.h"

namespace delayq::http::v1_calls {

namespace {

/// Makes all topics part of the others: none has labels of its own.
void merge_all(TopicSummaries& page) {
  if (!page.topics.empty()) page.cursor = page.topics.front().topic;
  page.topics.clear();
}

void send_metrics(const Responder& responder, const Endpoint& host, const TotalStats* totals,
                  const TopicSummaries* topics) {
  Metrics metrics{host.version, responder.now(), totals, topics, host.front->traffic, host.process()};
  if (host.webhooks) metrics.webhooks = host.webhooks();
  metrics.redis = host.redis();
  metrics.ladder = host.ladder();
  metrics.redis_delivery = host.redis_delivery();
  metrics.kafka_delivery = host.kafka_delivery();
  metrics.kafka_intakes = host.kafka_intakes();
  responder.send({200, "text/plain; version=0.0.4; charset=utf-8", {}, metrics_text(metrics)});
}

int write_well(json::Writer& json, const Endpoint& host) {
  json.begin_object().key("status").text("ok").key("version").text(host.version).end_object();
  return 200;
}

/// The lines that are not blank, with their numbers.
struct Lines {
  std::vector<std::string_view> texts;
  std::vector<uint64_t> numbers;
};

Lines split_lines(std::string_view body) {
  Lines lines;
  for (uint64_t number = 1; !body.empty(); ++number) {
    const size_t end = std::min(body.find('\n'), body.size());
    const std::string_view line = body.substr(0, end);
    body.remove_prefix(std::min(end + 1, body.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    lines.texts.push_back(line);
    lines.numbers.push_back(number);
  }
  return lines;
}

int write_results(json::Writer& json, const std::vector<uint64_t>& numbers,
                  const transfer::ImportResults& results) {
  json.begin_object().key("results").begin_array();
  for (size_t i = 0; i < results.size(); ++i) {
    json.begin_object().key("line").number(numbers[i]);
    if (results[i].ok()) {
      json.key("result").text(name_of(*results[i]));
    } else {
      json.key("error").begin_object();
      write_problem(json, results[i].error());
      json.end_object();
    }
    json.end_object();
  }
  json.end_array().end_object();
  return 200;
}

constexpr uint32_t kUsualLimit = 100;

Result<uint32_t> read_limit(const Call& call) {
  Fields fields(call.target.query);
  const uint32_t limit = fields.small_number("limit").value_or(kUsualLimit);
  if (limit < 1 || limit > Limits::kPageJobs)
    fields.note("limit", fmt::format("expected 1 to {}", Limits::kPageJobs));
  if (Status status = fields.finish(); !status.ok()) return status.error();
  return limit;
}

/// Rounded up to milliseconds, like a lateness.
uint64_t millis_at(const Histogram<28>& micros, double part) {
  constexpr uint64_t kMicrosPerMilli = 1'000;
  constexpr uint64_t kLongest = Histogram<28>::upper_bound(27);
  return (std::min(micros.quantile(part), kLongest) + kMicrosPerMilli - 1) / kMicrosPerMilli;
}

void write_host(json::Writer& json, const webhook::HostReport& host) {
  static constexpr std::array<std::string_view, 3> kBreakers{"closed", "open", "half_open"};
  json.begin_object().key("host").text(host.host);
  json.key("breaker").text(kBreakers[static_cast<size_t>(host.gate.breaker)]);
  if (host.gate.open_until) json.key("open_until").text(format_moment(*host.gate.open_until));
  json.key("failures_in_a_row").number(uint64_t{host.gate.failures});
  json.key("in_flight").number(uint64_t{host.gate.calls}).key("waiting").number(host.waiting);
  json.key("calls").number(host.calls).key("failed").number(host.failed);
  json.key("latency_ms").begin_object().key("p50").number(millis_at(host.micros, 0.5));
  json.key("p99").number(millis_at(host.micros, 0.99)).end_object();
  json.key("last_call_at").text(format_moment(host.last_call)).end_object();
}

void write_failure(json::Writer& json, const webhook::PastFailure& failure) {
  json.begin_object().key("at").text(format_moment(failure.at)).key("topic").text(failure.topic);
  json.key("id").text(failure.id).key("host").text(failure.host);
  json.key("attempt").number(uint64_t{failure.attempt}).key("dead").boolean(failure.dead);
  if (failure.status != 0) json.key("status").number(static_cast<uint64_t>(failure.status));
  if (failure.error != webhook::CallError::kNone) json.key("error").text(webhook::name_of(failure.error));
  json.key("took_ms").number(
      static_cast<uint64_t>(std::max<int64_t>(0, std::chrono::duration_cast<Millis>(failure.took).count())));
  json.end_object();
}

void write_pop(json::Writer& json, const api::WaitingPop& pop) {
  json.begin_object().key("client").text(pop.client).key("protocol").text(name_of(pop.protocol));
  if (!pop.token.empty()) json.key("token").text(pop.token);
  json.key("topics").begin_array();
  for (const std::string& topic : pop.topics) json.text(topic);
  json.end_array().key("since").text(format_moment(pop.since));
  json.key("until").text(format_moment(pop.until)).end_object();
}

/// A bound that there is none of is left out.
void write_facts(json::Writer& json, const api::ServerFacts& facts) {
  if (!facts.durability.empty()) json.key("durability").text(facts.durability);
  if (facts.sync_interval > Millis::zero())
    json.key("sync_interval_ms").number(static_cast<uint64_t>(facts.sync_interval.count()));
  json.key("limits").begin_object().key("connections").number(facts.max_connections);
  if (facts.max_jobs != QueueConfig::kUnbounded) json.key("jobs").number(facts.max_jobs);
  if (facts.max_memory_bytes != QueueConfig::kUnbounded)
    json.key("memory_bytes").number(facts.max_memory_bytes);
  json.key("disk_reserve_bytes").number(facts.disk_reserve_bytes).end_object();
}

}  // namespace

/// Answered by the loop that the queue runs in, without a question to the engine: a server whose Redis is
/// away is alive, and a restart would not bring it back.
Status health(const Call& call) {
  if (Status status = call.expect_no_query(); !status.ok()) return status;
  call.accept().send_json([&](json::Writer& json) { return write_well(json, call.host()); });
  return {};
}

Status readiness(const Call& call) {
  if (Status status = call.expect_no_query(); !status.ok()) return status;
  call.queue().ready(call.now(), call.accept().respond<void>([&host = call.host()](json::Writer& json) {
    return write_well(json, host);
  }));
  return {};
}

Status openapi(const Call& call) {
  if (Status status = call.expect_no_query(); !status.ok()) return status;
  call.accept().send({200, "application/yaml", {}, std::string(embedded::openapi_yaml())});
  return {};
}

/// What a client needs to know before it asks for more: what it may do is part of it.
Status about_server(const Call& call) {
  if (Status status = call.expect_no_query(); !status.ok()) return status;
  const Endpoint& host = call.host();
  const api::ServerFacts& facts = host.front->facts;
  const Token* const token = call.access().token_of(call.caller());
  call.accept().send_json([&](json::Writer& json) {
    json.begin_object().key("version").text(host.version).key("engine").text(facts.engine);
    json.key("now").text(format_moment(call.now()));
    json.key("started_at").text(format_moment(host.process().started)).key("resp").text(facts.resp);
    write_facts(json, facts);
    json.key("tokens").boolean(!call.access().is_open());
    if (token != nullptr) json.key("name").text(token->name);
    json.key("scopes").begin_array();
    for (size_t i = 0; i < kScopeNames.size(); ++i) {
      const bool has = token == nullptr || (token->scopes & only(static_cast<Scope>(i))) != 0;
      if (has) json.text(kScopeNames[i]);
    }
    json.end_array().key("topics").begin_array();
    for (const std::string& pattern : call.access().topics_of(call.caller())) json.text(pattern);
    json.end_array().end_object();
    return 200;
  });
  return {};
}

/// The pops that have waited longest come first.
Status consumers(const Call& call) {
  const Result<uint32_t> limit = read_limit(call);
  if (!limit.ok()) return limit.error();
  const api::WaitingPops pops = api::waiting_pops(*call.host().front, *limit);
  call.accept().send_json([&](json::Writer& json) {
    json.begin_object().key("connections").number(call.host().process().connections);
    json.key("waiting_total").number(uint64_t{pops.total}).key("waiting").begin_array();
    for (const api::WaitingPop& pop : pops.first) write_pop(json, pop);
    json.end_array().end_object();
    return 200;
  });
  return {};
}

Status callbacks(const Call& call) {
  const Result<uint32_t> limit = read_limit(call);
  if (!limit.ok()) return limit.error();
  const webhook::CallbackReport report = call.host().callbacks(call.now(), *limit);
  webhook::WebhookFigures figures;
  if (call.host().webhooks) figures = call.host().webhooks();
  call.accept().send_json([&](json::Writer& json) {
    json.begin_object().key("in_flight").number(figures.in_flight).key("waiting").number(figures.waiting);
    json.key("delivered").number(figures.delivered).key("failed").number(figures.failed);
    json.key("hosts").begin_array();
    for (const webhook::HostReport& host : report.hosts) write_host(json, host);
    json.end_array().key("failures").begin_array();
    for (const webhook::PastFailure& failure : report.failures) write_failure(json, failure);
    json.end_array().end_object();
    return 200;
  });
  return {};
}

/// Asks the queue two questions, however many jobs it has: the totals, and one page of topics. When the queue
/// cannot answer, the other figures are sent all the same: that is when people look at them.
Status metrics(const Call& call) {
  if (Status status = call.expect_no_query(); !status.ok()) return status;
  call.queue().totals(
      call.now(), [responder = call.accept(), &host = call.host()](const Result<TotalStats>& totals) {
        if (!totals.ok()) return send_metrics(responder, host, nullptr, nullptr);
        responder.queue().topics(responder.now(), {}, std::max(1U, host.metrics_topics),
                                 [responder, &host, totals = *totals](Result<TopicSummaries> topics) {
                                   if (topics.ok() && host.metrics_topics == 0) merge_all(*topics);
                                   send_metrics(responder, host, topics.ok() ? &totals : nullptr,
                                                topics.ok() ? &*topics : nullptr);
                                 });
      });
  return {};
}

Status export_page(const Call& call) {
  Fields fields(call.target.query);
  ExportRequest request;
  request.cursor = fields.text("cursor").value_or(std::string_view());
  request.limit = fields.small_number("limit").value_or(request.limit);
  request.topic = fields.text("topic").value_or(std::string_view());
  if (const auto state = fields.text("state")) {
    request.state = parse_job_state(*state);
    if (!request.state) fields.note("state", "expected delayed, ready, reserved, done or dead");
  }
  if (Status status = fields.finish(); !status.ok()) return status;
  call.queue().export_page(call.now(), request, [responder = call.accept()](const Result<ExportPage>& page) {
    if (!page.ok()) return responder.refuse(page.error());
    Response response;
    response.content_type = "application/x-ndjson";
    // The last page has no cursor.
    if (!page->cursor.empty()) response.headers = fmt::format("Delayq-Cursor: {}\r\n", page->cursor);
    for (const ExportItem& item : page->items) transfer::write_line(response.body, item);
    responder.send(std::move(response));
  });
  return {};
}

Status import_lines(const Call& call) {
  Fields fields(call.target.query);
  const OnConflict on_conflict = read_on_conflict(fields).value_or(OnConflict::kReject);
  if (Status status = fields.finish(); !status.ok()) return status;
  Lines lines = split_lines(call.request.body);
  if (lines.texts.empty())
    return invalid("body", "body: expected a JSON object a line, as an export has them");
  transfer::import_lines(
      call.queue(), call.now(), lines.texts, on_conflict,
      call.accept().respond<transfer::ImportResults>(
          [numbers = std::move(lines.numbers)](json::Writer& json, const transfer::ImportResults& results) {
            return write_results(json, numbers, results);
          }));
  return {};
}

Status backup(const Call& call) {
  Result<Fields> fields = call.json_fields();
  if (!fields.ok()) return fields.error();
  const auto name = fields->text("name");
  if (!name) fields->note("name", "is missing");
  if (Status status = fields->finish(); !status.ok()) return status;
  call.queue().backup(call.now(), *name,
                      call.accept().respond<BackupReport>([](json::Writer& json, const BackupReport& report) {
                        json.begin_object().key("path").text(report.path).key("bytes").number(report.bytes);
                        json.key("files").number(report.files).key("jobs").number(report.jobs).end_object();
                        return 201;
                      }));
  return {};
}

}  // namespace delayq::http::v1_calls
