#pragma once

#include <cstdint>
#include <string_view>

#include "engine/journal/format.h"
#include "engine/journal/job_table.h"
#include "engine/journal/schedule_book.h"
#include "engine/journal/segments.h"
#include "engine/journal/timing_wheel.h"
#include "engine/journal/topic_table.h"
#include "engine/requests.h"

namespace delayq::journal {

/// Everything that the engine keeps in RAM. Jobs are added and removed only here, so all indexes stay
/// consistent. Knows nothing of files, replies or rules. Both the verbs (JournalEngine) and the replay
/// (Replay) work on it.
///
/// During recovery, jobs are only in the lists of their topics, not in the wheel or the hand-over order;
/// go_live() adds them there.
class Store {
 public:
  explicit Store(SipKey secret)
      : ids(jobs, secret), topics(jobs), groups(jobs), wheel(jobs, bins), schedules(segments, secret) {}

  struct NewEntry {
    SlotKey key;
    TopicNumber topic;
    StatePayload state;
    uint32_t priority;
    bool has_options;
    std::string_view group;
    Location location;
    uint32_t lease_ms = 0;  ///< see JobPayload
  };

  /// REQUIRES: no job has that id in that topic.
  Slot insert(const NewEntry& entry);
  /// Removes the job from all indexes and releases its records.
  void erase(Slot slot);
  /// Replaces the changeable part of the job. `next.seq` is ignored.
  void change(Slot slot, const StatePayload& next);
  /// Returns the changeable part of the job.
  StatePayload state_of(Slot slot) const;

  /// Registers a new record of the job: of its state, or (for a job record) of the whole job.
  void set_job_record(Slot slot, const Location& location);
  void set_state_record(Slot slot, const Location& location);
  /// A record with an outcome also has a state. `is_state` is false if a later record has a later state.
  void set_outcome_record(Slot slot, const Location& location, bool is_state);

  /// Ends recovery: jobs due at `now` become ready, the others start to wait.
  void go_live(Moment now);

  Slot find(std::string_view topic, std::string_view id) const;
  /// For the topic, or for all topics (kNoTopic).
  Forecast forecast(TopicNumber topic, const ForecastRequest& request) const;
  /// Prefetches what change() and erase() will access besides the entry itself.
  void prefetch_neighbours(Slot slot) const {
    const Entry& entry = jobs[slot];
    wheel.prefetch_neighbours(slot);
    if (entry.chain_previous != kNoSlot) jobs.prefetch(entry.chain_previous);
    if (entry.chain_next != kNoSlot) jobs.prefetch(entry.chain_next);
  }

  /// Finds a job by number. Outside recovery this works only for jobs with a lease or with records besides
  /// their job record: other jobs are never looked up by number, so they need no entry in this index.
  Slot find_number(uint64_t seq) const {
    return numbers_.find(number_key(seq), [&](Slot slot) { return jobs[slot].seq == seq; });
  }
  /// For a batch of find_number(): call prefetch_number() for the whole batch, then prefetch_numbered_entry()
  /// for the whole batch.
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
  void enter(Slot slot, uint64_t lease);
  void leave(Slot slot);
  /// Adds the job to the wheel, unless it is ready: a ready job does not wait for a time.
  void wait(Slot slot);
  void set_records(Slot slot, const Location& state, const Location& outcome);
  void release_records(const Extra& extra);
  /// Gives the topic forecast bins of its own when it has many delayed jobs, and removes
  /// them when it has few.
  void keep_bins(TopicNumber topic);
  /// Updates `numbers_` to match the job's extra; frees an extra that is no longer needed.
  void track(Slot slot);

  SlotMap numbers_;
  bool is_live_ = false;
};

}  // namespace delayq::journal
