#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/histogram.h"
#include "core/random.h"
#include "core/time.h"
#include "engine/journal/disk.h"
#include "engine/journal/manifest.h"
#include "engine/journal/segments.h"

namespace delayq::journal {

/// Growing bytes that are not zeroed first: a commit's records are built in one.
class ByteBuffer {
 public:
  /// Room for `size` more bytes at the end. Valid until the next call.
  std::span<std::byte> extend(size_t size) {
    if (size > capacity_ - size_) grow(size_ + size);
    const std::span<std::byte> room{bytes_.get() + size_, size};
    size_ += size;
    return room;
  }

  size_t size() const { return size_; }
  std::span<std::byte> all() { return {bytes_.get(), size_}; }
  std::span<const std::byte> all() const { return {bytes_.get(), size_}; }

  /// Empty again. A buffer that was unusually large gives its memory back.
  void clear() {
    size_ = 0;
    if (capacity_ > kKeep) {
      bytes_.reset();
      capacity_ = 0;
    }
  }

 private:
  static constexpr size_t kFirst = 4096;
  static constexpr size_t kKeep = 4u << 20;

  void grow(size_t needed) {
    size_t capacity = capacity_ == 0 ? kFirst : capacity_;
    while (capacity < needed) capacity *= 2;
    auto larger = std::make_unique_for_overwrite<std::byte[]>(capacity);
    if (size_ != 0) std::memcpy(larger.get(), bytes_.get(), size_);
    bytes_ = std::move(larger);
    capacity_ = capacity;
  }

  std::unique_ptr<std::byte[]> bytes_;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

struct LogOptions {
  uint64_t segment_bytes = 32u << 20;
};

/// Appends records to the streams and commits them. A record's place on disk is known when it is appended;
/// until its commit is written, it is read from memory.
///
/// Each stream has at most one commit under way; what is appended meanwhile goes with the next one. A commit
/// writes and syncs its chunks in order, so a segment is durable before the next one of its stream is begun.
class Log {
 public:
  using Done = absl::AnyInvocable<void(const Status&)>;

  /// `manifest` is told of new segments by the write lane; it is complete when start() is called.
  Log(Disk& disk, Io& io, Segments& segments, Manifest& manifest, LogOptions options, uint64_t random_seed);

  /// Where to go on after recovery. REQUIRES: nothing was appended yet.
  void start(Lsn next_lsn, uint32_t epoch, Moment now);
  /// The time that new segments are stamped with.
  void set_time(Moment now) { now_ = now; }

  /// Appends a record: fill(payload, lsn) writes its payload in place.
  template <class Fill>
  Location append(uint16_t stream, RecordType type, size_t payload_size, Fill&& fill) {
    const size_t size = kRecordHeaderSize + payload_size;
    Chunk& chunk = chunk_for(stream, size);
    const Location location{chunk.segment, static_cast<uint32_t>(chunk.offset + chunk.bytes.size()),
                            static_cast<uint32_t>(size)};
    const std::span<std::byte> record = chunk.bytes.extend(size);
    const Lsn lsn = next_lsn_++;
    if (stream == kHeadStream) head_end_lsn_ = next_lsn_;
    fill(record.subspan(kRecordHeaderSize), lsn);
    seal_record(record, chunk.nonce, type, lsn);
    ++chunk.records;
    appended_bytes_ += size;
    return location;
  }

  /// What is appended to the head stream until end_group() becomes one record: a reader gets all of it or
  /// nothing. `most`: at least what these records will take. The disk is not read or written in between.
  void begin_group(size_t most);
  void end_group();

  /// Begins a commit of what the head stream has, unless one is under way. `done` is called when it is
  /// durable (or only written, when `sync` is false), or has failed. Answers whether it began one.
  bool commit_head(bool sync, Done done);
  /// The same for all other streams together.
  bool commit_survivors(Done done);
  /// Whether a commit with `sync` would make anything durable that is not.
  bool head_needs_sync() const;
  /// Closes a survivors' segment with the next commit, so that it can be cleaned; its stream goes on in a new
  /// one.
  void retire(const Segment& segment);
  /// Begins the log's first segment, so that the new epoch is durable with the first commit.
  void begin_head() { begin_segment(kHeadStream, 0); }

  /// A commit found no room on the disk. It waits, with everything behind it, until this is called and there
  /// is.
  void retry();
  bool lacks_room() const { return !waiting_for_room_.empty(); }

  bool head_is_committing() const { return head_busy_; }
  bool survivors_are_committing() const { return survivors_busy_; }
  bool head_is_empty() const { return streams_[kHeadStream].open.empty(); }
  bool has_survivors() const;  ///< that no commit has taken along yet
  /// Lets the next commit of the streams say, by a mark of its own, that what they have is durable. Until
  /// then a bad record at their end would pass for a torn one. Answers whether there was anything to say.
  bool prove_head() { return prove(kHeadStream); }
  bool prove_survivors();
  uint64_t survivor_bytes() const;

  /// The record's bytes when they are still in memory, else empty.
  std::span<const std::byte> find_buffered(const Location& location) const;

  /// As in the header of every segment that is begun.
  uint64_t directory() const { return directory_; }
  uint32_t epoch() const { return epoch_; }
  Lsn next_lsn() const { return next_lsn_; }
  /// Behind the last record of the head stream.
  Lsn head_end_lsn() const { return head_end_lsn_; }
  /// Every record of the head stream below this is synced, or at least written.
  Lsn durable_lsn() const { return durable_lsn_; }
  Lsn written_lsn() const { return written_lsn_; }
  uint64_t unsynced_bytes() const { return unsynced_bytes_ + open_bytes(); }
  uint64_t appended_bytes() const { return appended_bytes_; }
  /// What commits of all streams have put on the disk, and figures of those of the head stream.
  uint64_t written_bytes() const { return written_bytes_; }
  const Histogram<28>& commit_micros() const { return commit_micros_; }
  const Histogram<20>& commit_records() const { return commit_records_; }
  /// As of the last commit.
  uint64_t disk_free() const { return disk_free_; }
  void set_disk_free(uint64_t bytes) { disk_free_ = bytes; }

 private:
  /// Consecutive bytes for one segment, written together.
  struct Chunk {
    uint32_t segment = 0;
    uint32_t nonce = 0;
    uint64_t offset = 0;
    uint64_t allocate = 0;  ///< for a new segment: reserve this much
    Lsn mark_lsn = 0;
    uint32_t records = 0;  ///< that were appended, so without the mark
    bool is_new = false;
    bool is_last = false;  ///< the segment ends here
    std::shared_ptr<File> file;
    ByteBuffer bytes;

    uint64_t end() const { return offset + bytes.size(); }
    /// Behind a new segment's header, otherwise at the start.
    size_t mark_place() const { return is_new ? kSegmentHeaderSize : 0; }
  };

  struct Stream {
    uint32_t segment = 0;  ///< 0: none yet
    std::vector<std::unique_ptr<Chunk>> open;
  };

  struct Commit {
    std::vector<std::unique_ptr<Chunk>> chunks;
    bool sync = true;
    Lsn end_lsn = 0;  ///< every record of these streams below this is in the commit or in an earlier one
    uint64_t bytes = 0;
    uint64_t records = 0;
    std::chrono::microseconds took{};
    Status status;
    bool lacks_room = false;  ///< that is why it failed, before anything was synced: it can be tried again
    uint64_t disk_free = 0;
    Done done;
    bool* busy = nullptr;
  };

  Chunk& chunk_for(uint16_t stream, size_t size);
  Chunk& begin_segment(uint16_t stream, size_t size);
  Chunk& begin_chunk(uint16_t stream);
  void close_segment(Stream& stream);
  bool prove(uint16_t stream);
  std::unique_ptr<Chunk> fresh_chunk();
  void seal_mark(Chunk& chunk) const;
  std::shared_ptr<Commit> collect(uint16_t first_stream, uint16_t last_stream, bool sync);
  void begin(std::shared_ptr<Commit> commit, bool& busy, Done done);
  void run(std::shared_ptr<Commit> commit);
  void finish(Commit& commit);
  uint64_t open_bytes() const;
  Status write_commit(Commit& commit);
  Status write_chunk(Commit& commit, Chunk& chunk);

  Disk& disk_;
  Io& io_;
  Segments& segments_;
  Manifest& manifest_;  ///< the write lane's
  uint64_t directory_ = 0;
  LogOptions options_;
  Random random_;
  Moment now_{};
  uint32_t epoch_ = 0;
  uint32_t next_segment_ = 1;
  Lsn next_lsn_ = 1;
  Lsn head_end_lsn_ = 1;
  Lsn durable_lsn_ = 1;
  Lsn written_lsn_ = 1;
  std::array<Stream, kStreamCount> streams_;
  Lsn group_lsn_ = 0;    ///< 0: no group is open
  size_t group_at_ = 0;  ///< where it begins in the head stream's last chunk
  std::vector<std::shared_ptr<Commit>> under_way_;
  std::vector<std::shared_ptr<Commit>> waiting_for_room_;
  std::vector<std::unique_ptr<Chunk>> spare_;  ///< chunks whose buffers are used again
  bool head_busy_ = false;
  bool survivors_busy_ = false;
  uint64_t appended_bytes_ = 0;
  uint64_t written_bytes_ = 0;
  Histogram<28> commit_micros_;
  Histogram<20> commit_records_;
  uint64_t unsynced_bytes_ = 0;
  uint64_t disk_free_ = UINT64_MAX;
};

}  // namespace delayq::journal
