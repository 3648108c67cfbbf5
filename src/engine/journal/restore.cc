// restore: jobs come back as they were.
#include <tuple>

#include "engine/journal/journal_engine.h"

namespace delayq::journal {

void JournalEngine::restore(Moment now, std::span<const RestoreRequest> jobs,
                            Reply<std::vector<PushAnswer>> reply) {
  if (!begin(now, reply)) return;
  if (auto error = refuse_push()) return answer(std::move(reply), Result<std::vector<PushAnswer>>(*error));
  std::vector<PushAnswer> answers;
  answers.reserve(jobs.size());
  for (const RestoreRequest& request : jobs) answers.push_back(restore_one(request, now));
  answer_when_durable(std::move(reply), std::move(answers));
}

/// One step on disk, too: an outcome goes before the job's record. Torn off between the two, it is the
/// outcome of a job that never was.
PushAnswer JournalEngine::restore_one(const RestoreRequest& request, Moment now) {
  const Job& job = request.job;
  const TopicNumber topic = store_.topics.find_or_add(job.topic);
  const SlotKey key = store_.ids.key_of(job.id);
  PushAnswer answer;
  uint64_t old_seq = 0;
  uint32_t old_segment = 0;
  if (const Slot old = store_.ids.find(key, topic); old != kNoSlot) {
    const Entry& entry = store_.jobs[old];
    if (request.on_conflict != OnConflict::kReplace) {
      const bool keeps = request.on_conflict == OnConflict::kKeep;
      return {keeps ? PushOutcome::kKept : PushOutcome::kConflict, entry.state(), entry.due()};
    }
    answer.outcome = PushOutcome::kReplaced;
    std::tie(old_seq, old_segment) = make_way(old);
  }
  const JobState waiting = job.due <= now ? JobState::kReady : JobState::kDelayed;
  answer.state = is_live(job.state) ? waiting : job.state;
  answer.due = job.due;
  StatePayload state{};
  state.due_ms = static_cast<int64_t>(to_stored_ms(job.due));
  state.until_ms = is_live(job.state) ? 0 : static_cast<int64_t>(to_stored_ms(job.until));
  state.attempts = job.attempts;
  state.state = answer.state;
  state.flags = job.outlet == Outlet::kCallback ? kHasCallback : 0;
  const Location outcome = job.outcome.empty() ? Location{} : write_first_outcome(state, job.outcome);
  NewJob record;
  record.topic = job.topic;
  record.id = job.id;
  record.group = job.group;
  record.body = job.body;
  record.options = job.options;
  record.priority = job.priority;
  const Location location = write_job(record, state, job.pushed);
  const Slot slot =
      store_.insert({key, topic, state, job.priority, !job.options.empty(), job.group, location});
  if (outcome.segment != 0) store_.set_outcome_record(slot, outcome, false);
  if (old_seq != 0) write_gone(old_seq, old_segment);
  if (answer.state == JobState::kReady) announce(slot);
  if (is_live(answer.state)) return answer;
  const Topic::Chain& kept = store_.topics[topic].chain(answer.state);
  while (kept.count > request.keep_count) forget(kept.first);
  return answer;
}

Location JournalEngine::write_first_outcome(StatePayload& state, std::string_view outcome) {
  return log_.append(kHeadStream, RecordType::kOutcome, sizeof state + outcome.size(),
                     [&](std::span<std::byte> payload, Lsn lsn) {
                       state.seq = lsn;
                       std::memcpy(payload.data(), &state, sizeof state);
                       std::memcpy(payload.data() + sizeof state, outcome.data(), outcome.size());
                     });
}

}  // namespace delayq::journal
