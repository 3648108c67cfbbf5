#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "cli/migration.h"
#include "cli/terminal.h"
#include "core/limits.h"
#include "json/writer.h"

namespace delayq::cli {

namespace {

/// The line that marks a schedule, or removes the mark.
std::string mark_line(const std::string& name, bool moving) {
  std::string text;
  json::Writer json(text);
  json.begin_object().key("schedule").text(name).key("moving").boolean(moving).end_object();
  return text;
}

std::string text_of(const resp::Value& map, std::string_view name) {
  const resp::Value* const found = map.find(name);
  return found == nullptr ? std::string() : found->text;
}

}  // namespace

namespace {

/// Calls visit(schedule) with each schedule of a place, as far as the place tells.
template <class Visit>
void visit_schedules(const Ask& ask, Visit visit) {
  std::string after;
  do {
    Words command{"SCHEDULE", "LIST", "COUNT", std::to_string(Limits::kPageJobs)};
    if (!after.empty()) append_option(command, "AFTER", after);
    const Result<resp::Value> page = ask(command);
    if (!page || page->items.size() != 2) return;
    for (const resp::Value& schedule : page->items[1].items) visit(schedule);
    after = page->items[0].text;
  } while (!after.empty());
}

uint64_t made_by(const resp::Value& schedule) {
  const resp::Value* const made = schedule.find("occurrences_made");
  return made == nullptr ? 0 : static_cast<uint64_t>(std::max<int64_t>(made->integer, 0));
}

}  // namespace

ScheduleCount count_schedules(const Ask& ask) {
  ScheduleCount all;
  visit_schedules(ask, [&](const resp::Value& schedule) {
    if (++all.count == 1) all.topic = text_of(schedule, "topic");
  });
  return all;
}

void ScheduleMigration::begin() {
  made_.clear();
  visit_schedules(to_.ask,
                  [&](const resp::Value& schedule) { made_[text_of(schedule, "name")] = made_by(schedule); });
}

std::map<std::string, MadeMeanwhile> ScheduleMigration::made_meanwhile() const {
  std::map<std::string, MadeMeanwhile> topics;
  visit_schedules(to_.ask, [&](const resp::Value& schedule) {
    const auto before = made_.find(text_of(schedule, "name"));
    const uint64_t had = before == made_.end() ? 0 : before->second;
    const uint64_t has = made_by(schedule);
    if (has <= had) return;
    MadeMeanwhile& topic = topics[text_of(schedule, "topic")];
    topic.made += has - had;
    if (text_of(schedule, "overlap") == "replace") topic.replacing += has - had;
  });
  return topics;
}

Result<bool> ScheduleMigration::mark(const std::vector<resp::Value>& page) {
  if (!removes_) return false;
  Words marks;
  for (const resp::Value& item : page) {
    const Result<ExportedLine> line = read_exported(item.text);
    if (!line) return in_place(from_, line.error());
    const bool is_damaged = line->topic.empty();
    if (!line->schedule.empty() && !line->is_moving && !is_damaged)
      marks.push_back(mark_line(line->schedule, true));
  }
  if (marks.empty()) return false;
  const auto answers = import_lines(from_.ask, "replace", std::move(marks));
  if (!answers) return in_place(from_, answers.error());
  for (const resp::Value& answer : *answers) {
    if (!answer.is_error()) continue;
    const Error error = error_of_reply(answer.text);
    // One that was removed meanwhile is not on the page when it is read again.
    if (error.code != ErrorCode::kNotFound) return in_place(from_, error);
  }
  return true;
}

Status ScheduleMigration::take(const std::vector<resp::Value>& page) {
  Batch batch;
  for (const resp::Value& item : page) {
    Result<ExportedLine> line = read_exported(item.text);
    if (!line) return in_place(from_, line.error());
    if (line->schedule.empty()) continue;
    if (removes_ && !line->is_moving && !line->topic.empty()) {
      ++ledger_.late;
      continue;
    }
    batch.bytes += item.text.size();
    batch.texts.push_back(item.text);
    batch.lines.push_back(std::move(*line));
    if (batch.bytes < kMostImportBytes && batch.texts.size() < kMostImportLines) continue;
    if (Status status = store(std::exchange(batch, {})); !status) return status;
  }
  return batch.lines.empty() ? Status{} : store(std::move(batch));
}

Status ScheduleMigration::store(Batch batch) {
  const auto answers = import_lines(to_.ask, "keep", batch.texts);
  if (!answers) return in_place(to_, answers.error());
  std::vector<std::string> safe;
  std::vector<std::string> refused;
  for (size_t i = 0; i < batch.lines.size(); ++i) {
    const ExportedLine& line = batch.lines[i];
    const resp::Value& answer = (*answers)[i];
    if (const std::optional<Error> error = lines_.add(answer)) {
      if (failed_) failed_(batch.texts[i], *error);
      ++ledger_.failed;
      if (!line.topic.empty()) refused.push_back(line.schedule);
      continue;
    }
    const Result<bool> same = answer.text == "kept" ? is_there(line) : Result<bool>(true);
    if (!same) return in_place(to_, same.error());
    if (*same) {
      uint64_t& made = made_[line.schedule];
      made = std::max(made, line.made);
    }
    ++(answer.text == "created" ? ledger_.created : *same ? ledger_.there : ledger_.others);
    (*same ? safe : refused).push_back(line.schedule);
  }
  if (!removes_) return {};
  if (Status status = unmark(refused); !status) return status;
  return remove(safe);
}

Result<bool> ScheduleMigration::is_there(const ExportedLine& line) const {
  const Result<resp::Value> found = to_.ask({"SCHEDULE", "GET", line.schedule});
  if (!found) return found.error();
  return text_of(*found, "topic") == line.topic && text_of(*found, "body") == line.body &&
         rule_text(text_of(*found, "every"), text_of(*found, "cron"), text_of(*found, "zone")) == line.rule;
}

Status ScheduleMigration::unmark(const std::vector<std::string>& names) {
  if (names.empty()) return {};
  Words marks;
  for (const std::string& name : names) marks.push_back(mark_line(name, false));
  const auto answers = import_lines(from_.ask, "replace", std::move(marks));
  return answers ? Status{} : Status{in_place(from_, answers.error())};
}

Status ScheduleMigration::remove(const std::vector<std::string>& names) {
  std::vector<Words> commands;
  for (const std::string& name : names) commands.push_back({"SCHEDULE", "DEL", name});
  if (commands.empty()) return {};
  const auto replies = from_.ask_all(commands);
  if (!replies) return in_place(from_, replies.error());
  for (const resp::Value& reply : *replies) {
    if (!reply.is_error()) {
      ++ledger_.removed;
    } else if (const Error error = error_of_reply(reply.text); error.code != ErrorCode::kNotFound) {
      return in_place(from_, error);
    }
  }
  return {};
}

std::vector<std::string> ScheduleMigration::differences() const {
  std::vector<std::string> told;
  if (ledger_.failed > 0)
    told.push_back(
        fmt::format("schedules: {} were not stored and stay in the source", grouped_count(ledger_.failed)));
  if (ledger_.others > 0)
    told.push_back(
        fmt::format("schedules: {} have names that are other schedules' in the target: they were left where "
                    "they are",
                    grouped_count(ledger_.others)));
  if (ledger_.late > 0)
    told.push_back(fmt::format("schedules: {} were set in the source meanwhile: the same command brings them",
                               grouped_count(ledger_.late)));
  return told;
}

}  // namespace delayq::cli
