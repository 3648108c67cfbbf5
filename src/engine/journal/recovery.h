#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <absl/container/flat_hash_map.h>

#include "core/result.h"
#include "engine/journal/disk.h"
#include "engine/journal/manifest.h"
#include "engine/journal/store.h"

namespace delayq::journal {

/// Applies records, in the order of their numbers, to a Store that is recovering.
///
/// Records wait in a small window while the memory that they will touch comes into the cache; that, not the
/// parsing, is what replaying millions of jobs would otherwise wait for.
class Replay {
 public:
  explicit Replay(Store& store) : store_(store) {}

  /// The record's bytes must stay valid until flush(). False: its checksum is right but it makes no sense.
  [[nodiscard]] bool add(const RecordView& record, const Location& location);
  void flush();
  /// No more records. REQUIRES: flushed.
  void finish();

  Lsn highest_lsn() const { return highest_lsn_; }
  uint64_t records() const { return records_; }

 private:
  struct Waiting {
    RecordView record;
    Location location;
    JobView job;     ///< for kJob
    SlotKey id_key;  ///< for kJob
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
  /// The record of a job in `segment` may lack a kGone record that names the segment: cleaning had copied it
  /// to another one, or a crash came between the job that replaced it and its kGone record.
  void clean_first(uint32_t segment) { store_.segments.set_half_cleaned(segment); }
  TopicNumber topic_of(std::string_view name);

  Store& store_;
  std::array<Waiting, kWindow> window_;
  size_t waiting_ = 0;
  absl::flat_hash_map<uint64_t, Location> early_outcomes_;  ///< of jobs whose record comes later, if at all
  TopicNumber last_topic_ = kNoTopic;
  /// Where jobs were whose id was pushed again, and schedules that were defined again, by number; until their
  /// kGone record comes, right behind (unless a crash tore it off).
  absl::flat_hash_map<uint64_t, uint32_t> replaced_;
  Lsn highest_lsn_ = 0;
  uint64_t records_ = 0;
};

struct Recovered {
  Lsn next_lsn = 1;
  uint32_t epoch = 1;    ///< of this opening
  uint64_t records = 0;  ///< replayed
  uint64_t cut_bytes =
      0;  ///< of commits that were under way when the power went, and that nobody was answered for
  Manifest manifest;  ///< as it is on the disk now, for this opening
};

/// Reads all segments of the directory into `store` and makes the directory ready to be appended to: a torn
/// end is cut off, a segment whose creation was not finished is removed.
///
/// Damage in what had been synced is an error (kCorrupt) that names segment and offset, and changes nothing.
/// So is a segment that is missing or does not belong to the directory. `directory` is what the directory is
/// called in its manifest, unless it has one: a random number.
Result<Recovered> recover(Disk& disk, Store& store, uint64_t directory);

}  // namespace delayq::journal
