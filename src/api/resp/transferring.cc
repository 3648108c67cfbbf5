// Everything at once: EXPORT, IMPORT, BACKUP.
#include "api/resp/conversation.h"
#include "api/transfer/import_batch.h"
#include "api/transfer/line.h"

namespace delayq::resp {

namespace {

void write_page(Writer& writer, const ExportPage& page) {
  writer.array(2);
  writer.bulk(page.cursor);
  writer.array(page.items.size());
  std::string line;
  for (const ExportItem& item : page.items) {
    line.clear();
    transfer::write_line(line, item);
    line.pop_back();  // a bulk string needs no end of line
    writer.bulk(line);
  }
}

}  // namespace

Status Conversation::export_page(Arguments& arguments) {
  ExportRequest request;
  while (!arguments.empty()) {
    Status status;
    if (arguments.take_word("CURSOR")) {
      status = keep(arguments.text("CURSOR"), request.cursor);
    } else if (arguments.take_word("TOPIC")) {
      status = keep(arguments.text("TOPIC"), request.topic);
    } else if (arguments.take_word("STATE")) {
      status = keep(arguments.state("STATE"), request.state);
    } else if (arguments.take_word("COUNT")) {
      status = keep(arguments.small_number("COUNT"), request.limit);
    } else {
      return {};
    }
    if (!status.ok()) return status;
  }
  host_.queue.export_page(now_, request, respond<ExportPage>(write_page));
  return {};
}

Status Conversation::import_lines(Arguments& arguments) {
  OnConflict on_conflict = OnConflict::kReject;
  if (arguments.take_word("REPLACE")) {
    on_conflict = OnConflict::kReplace;
  } else if (arguments.take_word("KEEP")) {
    on_conflict = OnConflict::kKeep;
  }
  std::vector<std::string_view> lines;
  while (!arguments.empty()) lines.push_back(arguments.take());
  if (lines.empty()) return invalid("line", "line: is missing");
  transfer::import_lines(
      host_.queue, now_, lines, on_conflict,
      respond<transfer::ImportResults>([](Writer& writer, const transfer::ImportResults& results) {
        writer.array(results.size());
        for (const Result<RestoreOutcome>& result : results) {
          if (result.ok()) {
            writer.simple(name_of(*result));
          } else {
            write_error(writer, result.error());
          }
        }
      }));
  return {};
}

Status Conversation::backup(Arguments& arguments) {
  host_.queue.backup(now_, arguments.take(),
                     respond<BackupReport>([](Writer& writer, const BackupReport& report) {
                       writer.map(4);
                       writer.bulk("path");
                       writer.bulk(report.path);
                       writer.bulk("bytes");
                       writer.integer(static_cast<int64_t>(report.bytes));
                       writer.bulk("files");
                       writer.integer(static_cast<int64_t>(report.files));
                       writer.bulk("jobs");
                       writer.integer(static_cast<int64_t>(report.jobs));
                     }));
  return {};
}

}  // namespace delayq::resp
