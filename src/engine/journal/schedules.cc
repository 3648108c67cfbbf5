// turn, get_schedule, list_schedules: schedules, and the jobs that they make.
#include <algorithm>

#include "engine/journal/canary.h"
#include "engine/journal/journal_engine.h"

namespace delayq::journal {

namespace {

bool is_redefined(const TurnRequest& request, const ScheduleBook::Entry& known) {
  return request.definition && *request.definition != known.definition();
}

/// What the records of a turn take at most.
size_t bytes_for(const TurnRequest& request) {
  size_t bytes = kRecordHeaderSize + sizeof(SchedulePayload) + request.name.size() +
                 std::max(request.progress.size(), request.progress_if_skipped.size()) +
                 request.definition.value_or("").size() + 3 * Segments::kGoneRecordSize;
  if (!request.job) return bytes;
  const NewJob& job = *request.job;
  return bytes + kRecordHeaderSize + sizeof(JobPayload) + job.topic.size() + job.id.size() +
         job.group.size() + job.options.size() + job.body.size();
}

}  // namespace

void JournalEngine::turn(Moment now, std::span<const TurnRequest> requests,
                         Reply<std::vector<TurnAnswer>> reply) {
  if (!begin(now, reply)) return;
  // A schedule can be paused, changed and removed for as long as anything can be written.
  const bool adds = std::any_of(requests.begin(), requests.end(), [](const TurnRequest& request) {
    return request.job || (request.expected == 0 && request.revision != 0);
  });
  if (adds) {
    if (auto error = refuse_push()) return answer(std::move(reply), Result<std::vector<TurnAnswer>>(*error));
  }
  std::vector<TurnAnswer> answers;
  answers.reserve(requests.size());
  for (const TurnRequest& request : requests) answers.push_back(turn_one(request, now));
  answer_when_durable(std::move(reply), std::move(answers));
}

TurnAnswer JournalEngine::turn_one(const TurnRequest& request, Moment now) {
  ScheduleBook::Entry* entry = store_.schedules.find(request.name);
  if ((entry == nullptr ? 0 : entry->revision()) != request.expected) return {TurnOutcome::kChanged};
  TurnAnswer turned;
  Slot previous =
      request.job && request.previous ? store_.find(request.previous->topic, request.previous->id) : kNoSlot;
  if (previous != kNoSlot && !is_live(store_.jobs[previous].state())) previous = kNoSlot;
  if (previous != kNoSlot && request.overlap == Overlap::kSkip) turned.outcome = TurnOutcome::kSkipped;
  const bool pushes = request.job && turned.outcome != TurnOutcome::kSkipped;

  // More than one record: all of them, or none, after a crash.
  const bool is_group =
      (pushes || (entry != nullptr && is_redefined(request, *entry))) && !is_planted(Canary::kSplitTurn);
  if (is_group) log_.begin_group(bytes_for(request));
  if (pushes) {
    turned.has_replaced = previous != kNoSlot && request.overlap == Overlap::kReplace &&
                          store_.jobs[previous].state() != JobState::kReserved;
    if (turned.has_replaced) forget(previous);
    turned.pushed = push_one(*request.job, store_.ids.key_of(request.job->id), now).outcome;
  }
  const bool is_lost = pushes && is_planted(Canary::kUnwrittenTurn);
  if (request.revision == 0) {
    if (entry != nullptr) remove_schedule(*entry);
  } else if (entry == nullptr || is_redefined(request, *entry)) {
    write_schedule(request, turned.outcome);
  } else {
    write_turned(*entry, request, turned.outcome, is_lost);
  }
  if (is_group) log_.end_group();
  return turned;
}

void JournalEngine::remove_schedule(ScheduleBook::Entry& entry) {
  const ScheduleMark mark = entry.mark();
  store_.schedules.erase(entry);
  write_gone(mark.number, mark.definition.segment);
}

/// A definition that is replaced is gone like a replaced job: with its number and its segment.
void JournalEngine::write_schedule(const TurnRequest& request, TurnOutcome outcome) {
  ScheduleView view{};
  view.name = request.name;
  view.progress = outcome == TurnOutcome::kSkipped ? request.progress_if_skipped : request.progress;
  view.definition = request.definition.value_or("");
  view.fixed.revision = request.revision;
  view.fixed.next_ms = to_unix_ms(request.next);
  const Location location = log_.append(kHeadStream, RecordType::kSchedule, payload_size(view),
                                        [&](std::span<std::byte> payload, Lsn lsn) {
                                          view.fixed.number = lsn;
                                          write_payload(payload, view);
                                        });
  const ScheduleMark before = store_.schedules.define(view, store_.schedules.key_of(request.name), location);
  if (before.number != 0) write_gone(before.number, before.definition.segment);
}

void JournalEngine::write_turned(ScheduleBook::Entry& entry, const TurnRequest& request, TurnOutcome outcome,
                                 bool is_lost) {
  TurnedView view{};
  view.progress = outcome == TurnOutcome::kSkipped ? request.progress_if_skipped : request.progress;
  view.fixed = {entry.mark().number, request.revision, to_unix_ms(request.next)};
  Location location = entry.mark().turned;
  if (!is_lost) {
    location = log_.append(kHeadStream, RecordType::kTurned, payload_size(view),
                           [&](std::span<std::byte> payload, Lsn) { write_payload(payload, view); });
  }
  store_.schedules.turn(entry, view, location);
}

void JournalEngine::get_schedule(Moment now, std::string_view name,
                                 Reply<std::optional<StoredSchedule>> reply) {
  using Answer = std::optional<StoredSchedule>;
  if (!failure_) make_due(now);
  const ScheduleBook::Entry* entry = store_.schedules.find(name);
  answer(std::move(reply), Result<Answer>(entry == nullptr ? Answer{} : Answer{entry->stored()}));
}

void JournalEngine::list_schedules(Moment now, const ScheduleListRequest& request,
                                   Reply<SchedulePage> reply) {
  if (!failure_) make_due(now);
  answer(std::move(reply), Result<SchedulePage>(store_.schedules.page(request)));
}

}  // namespace delayq::journal
