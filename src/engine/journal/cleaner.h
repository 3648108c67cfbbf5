#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "engine/journal/disk.h"
#include "engine/journal/log.h"
#include "engine/journal/store.h"

namespace delayq::journal {

/// Compaction: frees disk space. Chooses the segment with the smallest needed share, copies the needed
/// records to other segments, grouped by the distance of their due day (so that records that expire together
/// are stored together), and removes the segment.
///
/// Compacts one segment at a time and reads it in portions on the read lane. A copy of a job has the job's
/// current state, so it is committed only after the log records that led to this state are durable. The
/// segment is removed only when the copies are durable, and with them every log record that made something in
/// the segment unneeded.
class Cleaner {
 public:
  struct Options {
    uint64_t slack_bytes = 96u << 20;      ///< unneeded bytes that are always tolerated
    uint64_t low_slack_bytes = 40u << 20;  ///< the same when disk space is low
    uint64_t low_disk = 0;                 ///< disk space is low below this many free bytes
  };

  Cleaner(Store& store, Log& log, Io& io, Disk& disk, Manifest& manifest, Options options)
      : store_(store), log_(log), io_(io), disk_(disk), manifest_(manifest), options_(options) {}

  /// Does the next step, if there is any. Called after every poll of the engine.
  void step(Moment now);

  /// An error if a removal failed: the engine must stop writing.
  const Status& status() const { return status_; }
  uint64_t cleaned_segments() const { return cleaned_; }
  /// How many bytes were copied.
  uint64_t copied_bytes() const { return copied_; }

 private:
  enum class Phase : uint8_t { kIdle, kReady, kReading, kSettling, kRemoving };

  bool is_worth_it() const;
  void choose();
  void read_portion();
  void take_portion();
  void give_up();
  void settle();
  void remove();
  void commit_survivors();
  /// Copies a record if it is still needed.
  void carry_over(const RecordView& record, const Location& location);
  void carry_job(const RecordView& record, const Location& location);
  void carry_state(const RecordView& record, const Location& location);
  void carry_outcome(const RecordView& record, const Location& location);
  void carry_gone(const RecordView& record);
  void carry_settings(const RecordView& record, const Location& location);
  void carry_group(const RecordView& record, const Location& location);
  void carry_schedule(const RecordView& record, const Location& location);
  void carry_turned(const RecordView& record, const Location& location);
  uint16_t stream_for(const Entry& entry) const;
  uint16_t stream_until(Moment end) const;
  Location copy(uint16_t stream, const RecordView& record);
  Location copy_with_state(RecordType type, Slot slot, std::string_view text);

  Store& store_;
  Log& log_;
  Io& io_;
  Disk& disk_;
  Manifest& manifest_;  ///< used by the write lane
  Options options_;
  Phase phase_ = Phase::kIdle;
  Moment now_{};
  uint32_t victim_ = 0;
  uint64_t offset_ = 0;
  uint64_t appended_before_ = 0;
  Lsn end_lsn_ = 0;
  Lsn survivors_after_ = 0;
  struct Portion {
    std::vector<std::byte> bytes;
    bool is_read = false;
  };
  std::shared_ptr<Portion> portion_;
  uint64_t portion_size_ = 0;
  Status status_;
  uint64_t cleaned_ = 0;
  uint64_t copied_ = 0;
};

}  // namespace delayq::journal
