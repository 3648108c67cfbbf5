#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <absl/container/flat_hash_map.h>

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
    uint64_t seq;    ///< for records about a job
  };
  static constexpr size_t kWindow = 64;

  bool parse(Waiting& waiting);
  void apply(const Waiting& waiting);
  void apply_job(const Waiting& waiting);
  void apply_gone(const Waiting& waiting);
  void apply_settings(const Waiting& waiting);
  /// The record of a job in `segment` may lack a kGone record that names the segment: cleaning had copied it
  /// to another one, or a crash came between the job that replaced it and its kGone record.
  void clean_first(uint32_t segment) { store_.segments.set_half_cleaned(segment); }
  TopicNumber topic_of(std::string_view name);

  Store& store_;
  std::array<Waiting, kWindow> window_;
  size_t waiting_ = 0;
  absl::flat_hash_map<uint64_t, Location> early_outcomes_;  ///< of jobs whose record comes later, if at all
  TopicNumber last_topic_ = kNoTopic;
  /// Where jobs were whose id was pushed again, by number; until their kGone record comes, right behind
  /// (unless a crash tore it off).
  absl::flat_hash_map<uint64_t, uint32_t> replaced_;
  Lsn highest_lsn_ = 0;
  uint64_t records_ = 0;
};

}  // namespace delayq::journal
