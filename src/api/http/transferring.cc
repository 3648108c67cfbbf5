// Everything at once: export, import, backups.
#include <fmt/format.h>

#include "api/http/conversation.h"
#include "api/http/job_fields.h"
#include "api/http/problem.h"
#include "api/transfer/import_batch.h"
#include "api/transfer/line.h"

namespace delayq::http {

namespace {

/// The lines that say something, with their numbers.
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

Status Conversation::export_page(const Call& call) {
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
  queue_.export_page(now_, request, [self = self(), place = reserve()](const Result<ExportPage>& page) {
    if (!page.ok()) return self->problem(place, page.error());
    Response response;
    response.content_type = "application/x-ndjson";
    // Without one that was the last page.
    if (!page->cursor.empty()) response.headers = fmt::format("Delayq-Cursor: {}\r\n", page->cursor);
    for (const ExportItem& item : page->items) transfer::write_line(response.body, item);
    self->send(place, std::move(response));
  });
  return {};
}

Status Conversation::import_lines(const Call& call) {
  Fields fields(call.target.query);
  const OnConflict on_conflict = read_on_conflict(fields).value_or(OnConflict::kReject);
  if (Status status = fields.finish(); !status.ok()) return status;
  Lines lines = split_lines(call.request.body);
  if (lines.texts.empty())
    return invalid("body", "body: expected a JSON object a line, as an export has them");
  transfer::import_lines(
      queue_, now_, lines.texts, on_conflict,
      respond<transfer::ImportResults>(
          [numbers = std::move(lines.numbers)](json::Writer& json, const transfer::ImportResults& results) {
            return write_results(json, numbers, results);
          }));
  return {};
}

Status Conversation::backup(const Call& call) {
  Result<Fields> fields = Fields::of_json(call.request.body, call.target.query);
  if (!fields.ok()) return fields.error();
  const auto name = fields->text("name");
  if (!name) fields->note("name", "is missing");
  if (Status status = fields->finish(); !status.ok()) return status;
  queue_.backup(now_, *name, respond<BackupReport>([](json::Writer& json, const BackupReport& report) {
                  json.begin_object().key("path").text(report.path).key("bytes").number(report.bytes);
                  json.key("files").number(report.files).key("jobs").number(report.jobs).end_object();
                  return 201;
                }));
  return {};
}

}  // namespace delayq::http
