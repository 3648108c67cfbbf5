#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "engine/journal/disk.h"
#include "engine/journal/log.h"
#include "engine/journal/store.h"

namespace delayq::journal {

/// Gives disk space back: takes the segment of which least is needed, writes that part again, grouped by how
/// far away its due day is (so that what dies together lies together), and removes the segment.
///
/// One segment at a time, read in portions on the read lane. What is written again follows the log: a copy
/// has the job's present state, so it waits until the records that made that state are durable. The segment
/// goes only when the copies are durable, and so is every record of the log that made something in it
/// unneeded.
class Cleaner {
 public:
  struct Options {
    uint64_t slack_bytes = 96u << 20;      ///< unneeded bytes that are always tolerated,
    uint64_t low_slack_bytes = 40u << 20;  ///< and how many when the disk is running out of room
    uint64_t low_disk = 0;                 ///< it is, below this
  };

  Cleaner(Store& store, Log& log, Io& io, Disk& disk, Manifest& manifest, Options options)
      : store_(store), log_(log), io_(io), disk_(disk), manifest_(manifest), options_(options) {}

  /// Does the next bit, if there is anything to do. Called after every poll of the engine.
  void step(Moment now);

  /// Set when a removal failed: the engine must stop writing.
  const Status& status() const { return status_; }
  uint64_t cleaned_segments() const { return cleaned_; }
  /// What was written again.
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
  /// Writes a record again when it is still needed.
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
  Manifest& manifest_;  ///< the write lane's
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
