#include "cli/importing.h"

#include <algorithm>
#include <istream>
#include <iterator>

#include <fmt/format.h>

#include "cli/seeds/seed_job.h"
#include "cli/terminal.h"
#include "core/encoding.h"
#include "core/moment.h"

namespace delayq::cli {

Result<bool> LineReader::next(std::string& line) {
  line.clear();
  std::streambuf* const text = in_.rdbuf();
  using Traits = std::istream::traits_type;
  int c = text->sbumpc();
  if (Traits::eq_int_type(c, Traits::eof())) return false;
  ++number_;
  while (!Traits::eq_int_type(c, Traits::eof())) {
    ++bytes_;
    if (c == '\n') break;
    if (line.size() == most_) {
      return Error{ErrorCode::kTooLarge, {}, fmt::format("the line has more than {} bytes", most_)};
    }
    line += Traits::to_char_type(c);
    c = text->sbumpc();
  }
  if (!line.empty() && line.back() == '\r') line.pop_back();
  return true;
}

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

std::string rule_text(std::string_view every, std::string_view cron, std::string_view zone) {
  return every.empty() ? fmt::format("cron {} {}", cron, zone.empty() ? "UTC" : zone)
                       : fmt::format("every {}", every);
}

namespace {

Result<ExportedLine> read_schedule(const seeds::JsonJob& found) {
  ExportedLine line;
  line.schedule = found.text("schedule");
  if (line.schedule.empty()) return corrupt("a line has a schedule without a name");
  line.topic = found.text("topic");
  if (line.topic.empty()) return line;  // a damaged one, or a mark
  line.rule = rule_text(found.text("every"), found.text("cron"), found.text("zone"));
  if (const json::Slice* const progress = found.find("progress")) {
    const Result<seeds::JsonJob> parts = seeds::JsonJob::parse(progress->text);
    const json::Slice* const moving = parts ? parts->find("moving") : nullptr;
    line.is_moving = moving != nullptr && moving->is_true();
    if (parts) line.made = static_cast<uint64_t>(std::max<int64_t>(parts->number("made").value_or(0), 0));
  }
  Result<std::string> body = body_of(found);
  if (!body) return body.error();
  line.body = std::move(*body);
  return line;
}

}  // namespace

Result<ExportedLine> read_exported(std::string_view text) {
  const Result<seeds::JsonJob> found = seeds::JsonJob::parse(text);
  if (!found) return corrupt("a line is not a JSON object");
  if (found->find("schedule") != nullptr) return read_schedule(*found);
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
    return corrupt("a line has an unknown state");
  }
  Result<std::string> body = body_of(*found);
  if (!body) return body.error();
  line.body = std::move(*body);
  return line;
}

namespace {

/// How many jobs are looked up together.
constexpr size_t kMostKnown = 256;

}  // namespace

Ask one_by_one(AskAll ask_all) {
  return [ask_all = std::move(ask_all)](const Words& command) -> Result<resp::Value> {
    Result<std::vector<resp::Value>> replies = ask_all(std::span(&command, 1));
    if (!replies) return replies.error();
    if (replies->size() != 1) return unexpected_reply();
    if (replies->front().is_error()) return error_of_reply(replies->front().text);
    return std::move(replies->front());
  };
}

Result<Surroundings::Storage> open_storage(const Surroundings& world, const Surroundings::StorageName& name) {
  if (!world.open_storage)
    return Error{ErrorCode::kUnavailable, {}, "this program cannot open where jobs are stored"};
  Result<Surroundings::Storage> opened = world.open_storage(name);
  if (opened) return opened;
  Error error = opened.error();
  error.detail = fmt::format("{}: {}", name.option, error.detail);
  return error;
}

Result<AskAll> ask_where(const Session& session, const std::optional<std::string>& data,
                         Surroundings::Access access) {
  if (data) {
    Result<Surroundings::Storage> opened = open_storage(session.world, {*data, "--data", access});
    if (!opened) return opened.error();
    return AskAll(std::move(opened->ask));
  }
  return AskAll([&session](std::span<const Words> commands) { return session.ask_all(commands); });
}

Result<std::vector<bool>> are_there(const AskAll& ask_all, std::span<const Known> jobs) {
  std::vector<bool> there;
  std::vector<Words> commands;
  while (there.size() < jobs.size()) {
    const auto part = jobs.subspan(there.size(), std::min(kMostKnown, jobs.size() - there.size()));
    commands.clear();
    for (const Known& job : part) commands.push_back({"GET", std::string(job.topic), std::string(job.id)});
    const auto replies = ask_all(commands);
    if (!replies) return replies.error();
    if (replies->size() != part.size()) return unexpected_reply();
    for (size_t i = 0; i < part.size(); ++i) {
      const resp::Value& reply = (*replies)[i];
      if (reply.is_error()) return error_of_reply(reply.text);
      const resp::Value* const body = reply.find("body");
      there.push_back(body != nullptr && body->text == part[i].body);
    }
  }
  return there;
}

Words import_command(std::string_view on_conflict, Words lines) {
  Words command{"IMPORT"};
  if (on_conflict == "keep") command.emplace_back("KEEP");
  if (on_conflict == "replace") command.emplace_back("REPLACE");
  std::move(lines.begin(), lines.end(), std::back_inserter(command));
  return command;
}

Result<std::vector<resp::Value>> import_answers(resp::Value reply, size_t count) {
  if (reply.is_error()) return error_of_reply(reply.text);
  if (reply.items.size() != count) return unexpected_reply();
  return std::move(reply.items);
}

Result<std::vector<resp::Value>> import_lines(const Ask& ask, std::string_view on_conflict, Words lines) {
  const size_t count = lines.size();
  Result<resp::Value> reply = ask(import_command(on_conflict, std::move(lines)));
  if (!reply) return reply.error();
  return import_answers(std::move(*reply), count);
}

std::optional<Error> ImportCounts::add(const resp::Value& answer) {
  ++lines_;
  const auto* const outcome = std::find(kOutcomes.begin(), kOutcomes.end(), answer.text);
  if (outcome != kOutcomes.end() && !answer.is_error()) {
    ++counts_[static_cast<size_t>(outcome - kOutcomes.begin())];
    return std::nullopt;
  }
  Error error = error_of_reply(answer.text);
  if (failed_++ == 0) first_error_ = error.code;
  return error;
}

uint64_t ImportCounts::of(std::string_view outcome) const {
  const auto* const found = std::find(kOutcomes.begin(), kOutcomes.end(), outcome);
  return found == kOutcomes.end() ? 0 : counts_[static_cast<size_t>(found - kOutcomes.begin())];
}

std::string ImportCounts::text() const {
  std::string text;
  for (size_t i = 0; i < kOutcomes.size(); ++i)
    text += fmt::format("{} {}, ", grouped(static_cast<int64_t>(counts_[i])), kOutcomes[i]);
  return text + fmt::format("{} failed", grouped(static_cast<int64_t>(failed_)));
}

std::string ImportCounts::members() const {
  std::string text;
  for (size_t i = 0; i < kOutcomes.size(); ++i) text += fmt::format("\"{}\":{},", kOutcomes[i], counts_[i]);
  return text + fmt::format("\"failed\":{}", failed_);
}

}  // namespace delayq::cli
