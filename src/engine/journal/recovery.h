#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <absl/container/flat_hash_map.h>

#include "core/result.h"
#include "engine/journal/disk.h"
#include "engine/journal/segments.h"
#include "engine/journal/store.h"

namespace delayq::journal {

/// Applies records, in the order of their numbers, to a Store that is recovering.
///
/// Records wait in a small window while the memory that they will access is prefetched. Without this,
/// replaying millions of jobs would spend most of its time on cache misses, not on parsing.
class Replay {
 public:
  explicit Replay(Store& store) : store_(store) {}

  /// The record's bytes must stay valid until flush(). Returns false if the record is malformed although
  /// its checksum is right.
  [[nodiscard]] bool add(const RecordView& record, const Location& location);
  void flush();
  /// Call after the last record. REQUIRES: flushed.
  void finish();

  Lsn highest_lsn() const { return highest_lsn_; }
  uint64_t records() const { return records_; }

 private:
  struct Waiting {
    RecordView record;
    Location location;
    JobView job;     ///< for kJob
    SlotKey id_key;  ///< for kJob: of the id; for kSchedule: of the name
    uint64_t seq;    ///< for records about a job or a schedule
  };
  static constexpr size_t kWindow = 64;

  bool add_group(const RecordView& group, const Location& location);
  bool parse(Waiting& waiting);
  void apply(const Waiting& waiting);
  void apply_job(const Waiting& waiting);
  void apply_gone(const Waiting& waiting);
  void apply_settings(const Waiting& waiting);
  void apply_schedule(const Waiting& waiting);
  void apply_turned(const Waiting& waiting);
  /// Marks `segment` to be compacted first. A record of a removed job in it may have no kGone record that
  /// names the segment: compaction had copied the job to another segment, or a crash came between the record
  /// of the job that replaced it and the kGone record.
  void clean_first(uint32_t segment) { store_.segments.set_half_cleaned(segment); }
  TopicNumber topic_of(std::string_view name);

  Store& store_;
  std::array<Waiting, kWindow> window_;
  size_t waiting_ = 0;
  /// of jobs whose job record comes later, or never
  absl::flat_hash_map<uint64_t, Location> early_outcomes_;
  TopicNumber last_topic_ = kNoTopic;
  /// Segments of jobs whose id was pushed again, and of schedules that were defined again, by number. The
  /// kGone record follows directly and removes the entry, unless a crash tore it off.
  absl::flat_hash_map<uint64_t, uint32_t> replaced_;
  Lsn highest_lsn_ = 0;
  uint64_t records_ = 0;
};

struct Recovered {
  Lsn next_lsn = 1;
  uint32_t epoch = 1;    ///< number of this opening
  uint64_t records = 0;  ///< replayed
  /// Bytes of commits that were in progress at a power loss and were never replied to.
  uint64_t cut_bytes = 0;
  Manifest manifest;  ///< as it is now on disk, for this opening
};

/// Reads all segments of the directory into `store` and prepares the directory for appending: cuts off a torn
/// end, and removes a segment whose creation was not finished.
///
/// Damage in synced bytes is an error (kCorrupt) that names segment and offset; nothing is changed then. The
/// same holds for a segment that is missing or does not belong to the directory. `directory` is a random
/// number that identifies the directory in a new manifest; it is ignored if there is a manifest.
Result<Recovered> recover(Disk& disk, Store& store, uint64_t directory);

}  // namespace delayq::journal
