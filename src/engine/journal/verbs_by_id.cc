// The verbs of producers and operators on jobs that are not running: cancel, reschedule,
// redrive, purge, trim.
#include <algorithm>

#include "engine/journal/canary.h"
#include "engine/journal/journal_engine.h"

namespace delayq::journal {

namespace {

/// How many items ahead the steps of a look-up are prefetched: the index, then the entry, then the entry's
/// neighbours in the wheel and in its topic's list.
constexpr size_t kIndexAhead = 24;
constexpr size_t kEntryAhead = 16;
constexpr size_t kNeighboursAhead = 8;

/// Finds the jobs of a batch one by one while the memory for later ones is being prefetched.
template <class RefOf>
class BatchFinder {
 public:
  BatchFinder(Store& store, size_t size, RefOf ref_of)
      : store_(store), keys_(size), topics_(size), ref_of_(ref_of) {
    for (size_t i = 0; i < std::min(kIndexAhead, size); ++i) start(i);
    for (size_t i = 0; i < std::min(kEntryAhead, size); ++i) fetch_entry(i);
    for (size_t i = 0; i < std::min(kNeighboursAhead, size); ++i) fetch_neighbours(i);
  }

  /// Call it for 0, 1, 2, ... in this order.
  Slot find(size_t i) {
    if (i + kIndexAhead < keys_.size()) start(i + kIndexAhead);
    if (i + kEntryAhead < keys_.size()) fetch_entry(i + kEntryAhead);
    if (i + kNeighboursAhead < keys_.size()) fetch_neighbours(i + kNeighboursAhead);
    return look_up(i);
  }

 private:
  void start(size_t i) {
    const JobRef ref = ref_of_(i);
    topics_[i] = store_.topics.find(ref.topic);
    keys_[i] = store_.ids.key_of(ref.id);
    store_.ids.prefetch(keys_[i]);
  }
  void fetch_entry(size_t i) { store_.ids.prefetch_entry(keys_[i]); }
  void fetch_neighbours(size_t i) {
    const Slot slot = look_up(i);
    if (slot != kNoSlot) store_.prefetch_neighbours(slot);
  }
  Slot look_up(size_t i) const {
    return topics_[i] == kNoTopic ? kNoSlot : store_.ids.find(keys_[i], topics_[i]);
  }

  Store& store_;
  std::vector<SlotKey> keys_;
  std::vector<TopicNumber> topics_;
  RefOf ref_of_;
};

}  // namespace

// ---- cancel

CancelOutcome JournalEngine::cancel_one(Slot slot) {
  switch (store_.jobs[slot].state()) {
    case JobState::kDelayed:
    case JobState::kReady:
      if (is_planted(Canary::kLostCancel)) {
        store_.erase(slot);
      } else {
        forget(slot);
      }
      return CancelOutcome::kCancelled;
    case JobState::kReserved:
      if (!store_.jobs[slot].cancel_requested) {
        store_.jobs[slot].cancel_requested = 1;
        write_state(slot);
      }
      return CancelOutcome::kReserved;
    case JobState::kDone:
      return CancelOutcome::kDone;
    case JobState::kDead:
      return CancelOutcome::kDead;
  }
  return CancelOutcome::kUnknown;
}

void JournalEngine::cancel(Moment now, std::span<const JobRef> jobs,
                           Reply<std::vector<CancelOutcome>> reply) {
  if (!begin(now, reply)) return;
  std::vector<CancelOutcome> outcomes(jobs.size());
  BatchFinder finder(store_, jobs.size(), [&](size_t i) { return jobs[i]; });
  for (size_t i = 0; i < jobs.size(); ++i) {
    const Slot slot = finder.find(i);
    outcomes[i] = slot == kNoSlot ? CancelOutcome::kUnknown : cancel_one(slot);
  }
  answer_when_durable(std::move(reply), std::move(outcomes));
}

void JournalEngine::cancel_group(Moment now, const GroupCancelRequest& request,
                                 Reply<GroupCancelAnswer> reply) {
  if (!begin(now, reply)) return;
  const bool is_for_all = covers_all(request.topics);
  const GroupTable::Page page =
      store_.groups.members(request.group, request.cursor, request.max, [&](const Entry& entry) {
        return is_live(entry.state()) && !entry.cancel_requested &&
               (is_for_all || covers(request.topics, store_.topics[entry.topic].name));
      });
  GroupCancelAnswer result;
  result.cursor = page.cursor;
  for (const Slot slot : page.members) {
    const TopicNumber topic = store_.jobs[slot].topic;
    if (cancel_one(slot) != CancelOutcome::kCancelled) {
      ++result.reserved;
      continue;
    }
    ++result.cancelled;
    ++result.cancelled_by_topic[store_.topics[topic].name];
  }
  answer_when_durable(std::move(reply), std::move(result));
}

// ---- reschedule, redrive, purge, trim

void JournalEngine::reschedule(Moment now, std::span<const RescheduleRequest> jobs,
                               Reply<std::vector<RescheduleOutcome>> reply) {
  if (!begin(now, reply)) return;
  std::vector<RescheduleOutcome> outcomes(jobs.size(), RescheduleOutcome::kUnknown);
  BatchFinder finder(store_, jobs.size(), [&](size_t i) { return jobs[i].job; });
  for (size_t i = 0; i < jobs.size(); ++i) {
    const Slot slot = finder.find(i);
    if (slot == kNoSlot) continue;
    const JobState state = store_.jobs[slot].state();
    if (!can(state, JobEvent::kReschedule)) {
      outcomes[i] = state == JobState::kReserved ? RescheduleOutcome::kReserved : RescheduleOutcome::kDone;
      continue;
    }
    StatePayload next = waiting_until(slot, jobs[i].due, now);
    if (state == JobState::kDead) next.attempts = 0;
    move(slot, next);
    outcomes[i] = RescheduleOutcome::kMoved;
  }
  answer_when_durable(std::move(reply), std::move(outcomes));
}

bool JournalEngine::revive(Slot slot, Moment now) {
  if (slot == kNoSlot || store_.jobs[slot].state() != JobState::kDead) return false;
  StatePayload next = waiting_until(slot, now, now);
  next.attempts = 0;
  move(slot, next);
  return true;
}

void JournalEngine::redrive(Moment now, std::string_view topic, std::span<const std::string_view> ids,
                            Reply<uint64_t> reply) {
  if (!begin(now, reply)) return;
  uint64_t revived = 0;
  for (const std::string_view id : ids) revived += revive(store_.find(topic, id), now);
  answer_when_durable(std::move(reply), revived);
}

void JournalEngine::redrive_oldest(Moment now, std::string_view topic, uint32_t max, Reply<uint64_t> reply) {
  if (!begin(now, reply)) return;
  uint64_t revived = 0;
  if (const TopicNumber number = store_.topics.find(topic); number != kNoTopic) {
    const Topic::Chain& dead = store_.topics[number].chain(JobState::kDead);
    while (revived < max && dead.first != kNoSlot) revived += revive(dead.first, now);
  }
  answer_when_durable(std::move(reply), revived);
}

void JournalEngine::purge(Moment now, std::string_view topic, JobState state, uint32_t max,
                          Reply<uint64_t> reply) {
  if (!begin(now, reply)) return;
  uint64_t purged = 0;
  if (const TopicNumber number = store_.topics.find(topic); number != kNoTopic) {
    const Topic::Chain& chain = store_.topics[number].chain(state);
    for (; purged < max && chain.first != kNoSlot; ++purged) forget(chain.first);
  }
  answer_when_durable(std::move(reply), purged);
}

void JournalEngine::trim(Moment now, const TrimRequest& request, Reply<TrimAnswer> reply) {
  if (!begin(now, reply)) return;
  TrimAnswer trimmed;
  if (const TopicNumber topic = store_.topics.find(request.topic); topic != kNoTopic) {
    const Topic::Chain& kept = store_.topics[topic].chain(request.state);
    uint32_t looked = 0;
    for (; looked < request.max && kept.count > request.count; ++looked, ++trimmed.forgotten)
      forget(kept.first);
    Slot slot = trimmed_up_to(topic, request);
    for (; looked < request.max && slot != kNoSlot; ++looked) {
      const Slot next = store_.jobs[slot].chain_next;
      if (next != kNoSlot) store_.jobs.prefetch(next);
      trimmed.forgotten += end_sooner(slot, request.time, now);
      slot = next;
    }
    if (slot != kNoSlot) trimmed.cursor = std::to_string(store_.topics.cursors.add(slot));
  }
  answer_when_durable(std::move(reply), std::move(trimmed));
}

/// If the cursor was dropped (many listings were open), the walk starts again.
Slot JournalEngine::trimmed_up_to(TopicNumber topic, const TrimRequest& request) {
  const Slot first = store_.topics[topic].chain(request.state).first;
  const auto cursor = ListCursors::parse(request.cursor);
  const auto at = cursor ? store_.topics.cursors.find(*cursor) : std::nullopt;
  if (!at) return first;
  store_.topics.cursors.remove(*cursor);
  const bool fits =
      *at == kNoSlot || (store_.jobs[*at].topic == topic && store_.jobs[*at].state() == request.state);
  return fits ? *at : first;
}

bool JournalEngine::end_sooner(Slot slot, Millis time, Moment now) {
  StatePayload next = store_.state_of(slot);
  const Moment ended = next.lease == 0 ? now : from_unix_ms(static_cast<int64_t>(next.lease));
  const Moment end = saturating_add(ended, time);
  if (end <= now) {
    forget(slot);
    return true;
  }
  if (end < store_.jobs[slot].until()) {
    next.until_ms = static_cast<int64_t>(to_stored_ms(end));
    move(slot, next);
  }
  return false;
}

}  // namespace delayq::journal
