#include "api/transfer/import_batch.h"

#include <deque>
#include <memory>

#include <fmt/format.h>

#include "api/transfer/line.h"
#include "core/limits.h"

namespace delayq::transfer {

namespace {

/// The results of one import, which come from several calls to the queue.
struct PendingImport {
  ImportResults results;
  size_t unanswered = 1;  ///< calls, and one for import_lines() itself
  std::optional<Error> refusal;
  Reply<ImportResults> reply;

  void answered() {
    if (--unanswered != 0) return;
    if (refusal) return reply(*refusal);
    reply(std::move(results));
  }
};

class Importer {
 public:
  Importer(Queue& queue, Moment now, OnConflict on_conflict, std::shared_ptr<PendingImport> pending)
      : queue_(queue), now_(now), on_conflict_(on_conflict), pending_(std::move(pending)) {}

  void add(size_t place, std::string_view text) {
    Result<Line> parsed = parse_line(text);
    if (!parsed.ok()) {
      pending_->results[place] = parsed.error();
      return;
    }
    if (parsed->settings) {
      flush();  // in the order of the lines
      return set(place, *parsed);
    }
    if (parsed->schedule) {
      flush();
      return set_schedule(place, *parsed);
    }
    Line& line = lines_.emplace_back(std::move(*parsed));
    line.item.on_conflict = on_conflict_;
    items_.push_back(line.item);
    places_.push_back(place);
  }

  void flush() {
    if (items_.empty()) return;
    ++pending_->unanswered;
    queue_.restore(now_, items_,
                   [pending = pending_, places = std::move(places_)](
                       const Result<std::vector<Result<RestoreReceipt>>>& receipts) {
                     for (size_t i = 0; i < places.size(); ++i) {
                       Result<RestoreOutcome>& result = pending->results[places[i]];
                       if (!receipts.ok()) {
                         result = receipts.error();
                       } else if (!(*receipts)[i].ok()) {
                         result = (*receipts)[i].error();
                       } else {
                         result = (*receipts)[i]->outcome;
                       }
                     }
                     pending->answered();
                   });
    items_.clear();
    places_.clear();
    lines_.clear();
  }

 private:
  void set(size_t place, Line& line) {
    ++pending_->unanswered;
    queue_.restore_settings(now_, line.topic, std::move(*line.settings), on_conflict_,
                            [pending = pending_, place](const Result<RestoreOutcome>& outcome) {
                              pending->results[place] = outcome;
                              pending->answered();
                            });
  }

  void set_schedule(size_t place, const Line& line) {
    ++pending_->unanswered;
    const auto reply = [pending = pending_, place](const Result<RestoreOutcome>& outcome) {
      pending->results[place] = outcome;
      pending->answered();
    };
    if (line.moving) return queue_.mark_moving(now_, line.schedule->name, *line.moving, reply);
    ScheduleProgress progress;
    progress.created = progress.decided = now_;
    queue_.restore_schedule(now_, *line.schedule, line.progress.value_or(progress), on_conflict_, reply);
  }

  Queue& queue_;
  Moment now_;
  OnConflict on_conflict_;
  std::shared_ptr<PendingImport> pending_;
  std::deque<Line> lines_;  ///< `items_` point into these
  std::vector<RestoreItem> items_;
  std::vector<size_t> places_;
};

}  // namespace

void import_lines(Queue& queue, Moment now, std::span<const std::string_view> lines, OnConflict on_conflict,
                  Reply<ImportResults> reply) {
  auto pending = std::make_shared<PendingImport>();
  if (lines.size() > Limits::kBatchJobs) {
    const Error error{
        ErrorCode::kTooLarge, "import",
        fmt::format("{} lines: at most {} are allowed at once", lines.size(), Limits::kBatchJobs)};
    lines = lines.first(0);
    pending->refusal = error;
  }
  pending->results.resize(lines.size(), RestoreOutcome::kDropped);
  pending->reply = std::move(reply);
  Importer importer(queue, now, on_conflict, pending);
  for (size_t i = 0; i < lines.size(); ++i) importer.add(i, lines[i]);
  importer.flush();
  pending->answered();
}

void ImportCounts::add(const Result<RestoreOutcome>& result) {
  if (!result.ok()) {
    ++failed;
    return;
  }
  switch (*result) {
    case RestoreOutcome::kCreated:
      ++created;
      break;
    case RestoreOutcome::kReplaced:
      ++replaced;
      break;
    case RestoreOutcome::kKept:
      ++kept;
      break;
    case RestoreOutcome::kDropped:
      ++dropped;
      break;
  }
}

}  // namespace delayq::transfer
