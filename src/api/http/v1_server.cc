// The calls about the server itself, and about everything that it holds.
#include <algorithm>

#include <fmt/format.h>

#include "api/http/conversation.h"
#include "api/http/metrics.h"
#include "api/http/v1.h"
#include "api/transfer/line.h"

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
