#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "kafka/consumer.h"

namespace delayq::intake {

/// Which records of a partition are done. They end in any order; the position, which is what may be
/// committed, is that of the first that is not done. Offsets may have gaps, as compaction makes them.
class Progress {
 public:
  /// A record was read. Returns its place, for done(). REQUIRES: offsets grow.
  uint64_t begin(int64_t offset) {
    open_.push_back({offset, false});
    next_offset_ = offset + 1;
    return first_place_ + open_.size() - 1;
  }
  /// REQUIRES: begin() returned this place, and it is not done yet.
  void done(uint64_t place) {
    open_[place - first_place_].is_done = true;
    while (!open_.empty() && open_.front().is_done) {
      open_.pop_front();
      ++first_place_;
    }
  }
  /// The offset of the first record that is not done. Nullopt: nothing was read.
  std::optional<int64_t> first_open() const {
    return open_.empty() ? next_offset_ : std::optional(open_.front().offset);
  }
  /// What may be committed; nullopt: nothing yet.
  std::optional<int64_t> position() const { return first_place_ == 0 ? std::nullopt : first_open(); }
  /// Whether a record with this offset, or a later one, was read before.
  bool has_begun(int64_t offset) const { return next_offset_ && offset < *next_offset_; }

 private:
  struct Entry {
    int64_t offset;
    bool is_done;
  };
  std::deque<Entry> open_;  ///< from the first that is not done
  uint64_t first_place_ = 0;
  std::optional<int64_t> next_offset_;
};

/// A partition that is assigned to this server.
struct Partition {
  kafka::PartitionId id;
  Progress progress;
  std::optional<int64_t> committed{};  ///< the last position that was given to commit
  uint32_t under_way = 0;              ///< records that are being pushed or written to the dead-letter topic
  uint32_t stuck = 0;                  ///< records that could not be written to the dead-letter topic yet
  bool is_paused = false;              ///< because of these
  bool is_gone = false;                ///< revoked or lost: what is left of its records does not matter
};
using PartitionPtr = std::shared_ptr<Partition>;

/// A record that was read, until it is done.
struct TakenRecord {
  kafka::InputRecord record;
  PartitionPtr partition;
  uint64_t place = 0;   ///< in the partition's progress
  uint64_t number = 0;  ///< among all records that were read
  size_t bytes = 0;
};

}  // namespace delayq::intake
