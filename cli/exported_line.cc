#include "cli/exported_line.h"

#include "cli/seeds/json_job.h"
#include "core/base64.h"
#include "core/moment.h"

namespace delayq::cli {

namespace {

Error corrupt(std::string detail) { return {ErrorCode::kCorrupt, {}, std::move(detail)}; }

/// The three ways in which a line has a body.
Result<std::string> body_of(const seeds::JsonJob& found) {
  if (found.find("body_text") != nullptr) return found.text("body_text");
  if (found.find("body_base64") != nullptr) {
    std::optional<std::string> bytes = from_base64(found.text("body_base64"));
    if (!bytes) return corrupt("a line's body_base64 is not base64");
    return *std::move(bytes);
  }
  const json::Slice* const body = found.find("body");
  return body == nullptr ? std::string("null") : std::string(body->text);
}

}  // namespace

Result<ExportedLine> read_exported(std::string_view text) {
  const Result<seeds::JsonJob> found = seeds::JsonJob::parse(text);
  if (!found) return corrupt("a line is not a JSON object");
  ExportedLine line;
  line.topic = found->text("topic");
  if (line.topic.empty()) return corrupt("a line has no topic");
  if (found->find("settings") != nullptr) return line;
  line.id = found->text("id");
  if (line.id.empty()) return corrupt("a line has no id");
  const std::string state = found->text("state");
  if (state == "done" || state == "dead") {
    line.kind = state == "done" ? Kind::kDone : Kind::kDead;
    const Result<Moment> until = parse_moment(found->text("kept_until"));
    if (until) line.kept_until = *until;
  } else if (state == "delayed" || state == "ready" || state == "reserved") {
    line.is_running = state == "reserved";
  } else {
    return corrupt("a line has a state that is none");
  }
  Result<std::string> body = body_of(*found);
  if (!body) return body.error();
  line.body = std::move(*body);
  return line;
}

}  // namespace delayq::cli
