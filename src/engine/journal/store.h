#pragma once

#include <cstdint>
#include <string_view>

#include "core/random.h"
#include "engine/journal/format.h"
#include "engine/journal/id_index.h"
#include "engine/journal/job_table.h"
#include "engine/journal/schedule_book.h"
#include "engine/journal/segments.h"
#include "engine/journal/timing_wheel.h"
#include "engine/journal/topic_table.h"
#include "engine/requests.h"

namespace delayq::journal {

/// Everything the engine keeps in RAM, with its indexes in step: a job is entered and left in one place. It
/// knows nothing of files, replies or rules; the verbs (JournalEngine) and the replay (Recovery) both work on
/// it.
///
/// While recovering, jobs wait in their topics' lists only, without wheel and hand-over order; go_live() adds
/// those.
class Store {
 public:
  explicit Store(SipKey secret)
      : ids(jobs, secret), topics(jobs), groups(jobs), wheel(jobs, bins), schedules(segments) {}

  struct NewEntry {
    SlotKey key;
    TopicNumber topic;
    StatePayload state;
    uint32_t priority;
    bool has_options;
    std::string_view group;
    Location location;
  };

  /// REQUIRES: no job has that id in that topic.
  Slot insert(const NewEntry& entry);
  /// Takes the job out of everything. Its records are not needed any more.
  void erase(Slot slot);
  /// Replaces the changeable part of the job. `next.seq` is not looked at.
  void change(Slot slot, const StatePayload& next);
  /// The changeable part of the job as it is.
  StatePayload state_of(Slot slot) const;

  /// The job's state or outcome is in a new record, or (for a job record) all of it is.
  void set_job_record(Slot slot, const Location& location);
  void set_state_record(Slot slot, const Location& location);
  /// A record with an outcome has the state too; `is_state` false: a later record has a later state.
  void set_outcome_record(Slot slot, const Location& location, bool is_state);

  /// Ends recovery: what is due at `now` becomes ready, the rest starts waiting.
  void go_live(Moment now);

  Slot find(std::string_view topic, std::string_view id) const;
  /// Of the topic, or of all (kNoTopic).
  Forecast forecast(TopicNumber topic, const ForecastRequest& request) const;
  /// Brings what change() and erase() will touch beside the entry itself into the cache.
  void prefetch_neighbours(Slot slot) const {
    const Entry& entry = jobs[slot];
    wheel.prefetch_neighbours(slot);
    if (entry.chain_previous != kNoSlot) jobs.prefetch(entry.chain_previous);
    if (entry.chain_next != kNoSlot) jobs.prefetch(entry.chain_next);
  }

  /// By number. Finds only jobs that have a lease or records beside their job record (all, while recovering):
  /// the others are never asked for that way, and need not pay for it.
  Slot find_number(uint64_t seq) const {
    return numbers_.find(number_key(seq), [&](Slot slot) { return jobs[slot].seq == seq; });
  }
  /// For a batch of find_number(): first the one for all, then the other for all.
  void prefetch_number(uint64_t seq) const { numbers_.prefetch(number_key(seq)); }
  void prefetch_numbered_entry(uint64_t seq) const {
    if (const Slot slot = numbers_.peek(number_key(seq)); slot != kNoSlot) jobs.prefetch(slot);
  }

  uint64_t memory_bytes() const;

  JobTable jobs;
  IdIndex ids;
  TopicTable topics;
  GroupTable groups;
  ForecastBins bins;
  TimingWheel wheel;
  Segments segments;
  ScheduleBook schedules;

 private:
  static SlotKey number_key(uint64_t seq) {
    const uint64_t mixed = mix64(seq);
    return {mixed, static_cast<uint32_t>(mixed >> 32)};
  }

  void enter(Slot slot, uint64_t lease);
  void leave(Slot slot);
  /// In the wheel, that is; a ready job does not wait for a time.
  void wait(Slot slot);
  void set_records(Slot slot, const Location& state, const Location& outcome);
  void release_records(const Extra& extra);
  /// Keeps bins for the forecast of topics that have many jobs.
  void keep_bins(TopicNumber topic);
  /// Brings `numbers_` and the job's extra in line with what the extra says.
  void track(Slot slot);

  SlotMap numbers_;
  bool is_live_ = false;
};

}  // namespace delayq::journal
