#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <absl/functional/any_invocable.h>

#include "core/arena.h"
#include "core/histogram.h"
#include "core/random.h"
#include "core/time.h"
#include "engine/journal/disk.h"
#include "engine/journal/segments.h"

namespace delayq::journal {

/// A growing buffer that is not zeroed first. The records of a commit are built in it.
class ByteBuffer {
 public:
  /// Adds `size` bytes at the end and returns them. Valid until the next call.
  std::span<std::byte> extend(size_t size) {
    if (size > capacity_ - size_) grow(size_ + size);
    const std::span<std::byte> room{bytes_.get() + size_, size};
    size_ += size;
    return room;
  }

  size_t size() const { return size_; }
  std::span<std::byte> all() { return {bytes_.get(), size_}; }
  std::span<const std::byte> all() const { return {bytes_.get(), size_}; }

  /// Makes the buffer empty. Frees the memory of an unusually large buffer.
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

/// Appends records to the streams and commits them. The place of a record on disk is known when it is
/// appended; until its commit is written, the record is read from memory.
///
/// The head stream and the survivor streams together have at most one commit in progress each; records
/// appended meanwhile go to the next one. A commit writes and syncs its chunks in order, so a segment is
/// durable before the next segment of its stream begins.
class Log {
 public:
  using Done = absl::AnyInvocable<void(const Status&)>;

  /// The write lane adds new segments to `manifest`, which must be complete when start() is called.
  Log(Disk& disk, Io& io, Segments& segments, Manifest& manifest, LogOptions options, uint64_t random_seed);

  /// Sets where to continue after recovery. REQUIRES: nothing has been appended yet.
  void start(Lsn next_lsn, uint32_t epoch, Moment now);
  /// Sets the time that is written into new segments.
  void set_time(Moment now) { now_ = now; }

  /// Appends a record. fill(payload, lsn) writes its payload in place.
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

  /// Commits the records of the head stream, unless a commit is in progress. `done` is called when
  /// they are durable (or only written, if `sync` is false) or when the commit has failed. Returns
  /// whether a commit was started.
  bool commit_head(bool sync, Done done);
  /// The same for all other streams together.
  bool commit_survivors(Done done);
  /// Whether a commit with `sync` would make anything durable that is not durable yet.
  bool head_needs_sync() const;
  /// Closes a survivor segment with the next commit, so that it can be compacted. Its stream
  /// continues in a new segment.
  void retire(const Segment& segment);
  /// Begins the log's first segment, so that the new epoch is durable with the first commit.
  void begin_head() { begin_segment(kHeadStream, 0); }

  /// After a commit failed for lack of disk space: tries it again. That commit and all later
  /// ones wait for this call.
  void retry();
  bool lacks_room() const { return !waiting_for_room_.empty(); }

  bool head_is_committing() const { return head_busy_; }
  bool survivors_are_committing() const { return survivors_busy_; }
  bool head_is_empty() const { return streams_[kHeadStream].open.empty(); }
  bool has_survivors() const;  ///< records that are not in a commit yet
  /// The next commit of the streams then writes a mark that all their earlier records are durable.
  /// Without it, a damaged record at the end would look like a torn commit. Returns whether there
  /// was anything to mark.
  bool prove_head() { return prove(kHeadStream); }
  bool prove_survivors();
  uint64_t survivor_bytes() const;

  /// Returns the bytes of the record if they are still in memory, otherwise an empty span.
  std::span<const std::byte> find_buffered(const Location& location) const;

  /// The directory number that is written into the header of every new segment.
  uint64_t directory() const { return directory_; }
  uint32_t epoch() const { return epoch_; }
  Lsn next_lsn() const { return next_lsn_; }
  /// The LSN after the last record of the head stream.
  Lsn head_end_lsn() const { return head_end_lsn_; }
  /// Every record of the head stream below this LSN is synced (or at least written, for a
  /// commit without sync).
  Lsn durable_lsn() const { return durable_lsn_; }
  Lsn written_lsn() const { return written_lsn_; }
  uint64_t unsynced_bytes() const { return unsynced_bytes_ + open_bytes(); }
  uint64_t appended_bytes() const { return appended_bytes_; }
  /// Bytes written by commits of all streams, and statistics of the commits of the head stream.
  uint64_t written_bytes() const { return written_bytes_; }
  const Histogram<28>& commit_micros() const { return commit_micros_; }
  const Histogram<20>& commit_records() const { return commit_records_; }
  /// As of the last commit.
  uint64_t disk_free() const { return disk_free_; }
  void set_disk_free(uint64_t bytes) { disk_free_ = bytes; }

 private:
  /// Consecutive bytes of one segment that are written together.
  struct Chunk {
    uint32_t segment = 0;
    uint32_t nonce = 0;
    uint64_t offset = 0;
    uint64_t allocate = 0;  ///< for a new segment: reserve this much
    Lsn mark_lsn = 0;
    uint32_t records = 0;  ///< without the mark
    bool is_new = false;
    bool is_last = false;  ///< the segment ends here
    std::shared_ptr<File> file;
    ByteBuffer bytes;

    uint64_t end() const { return offset + bytes.size(); }
    /// The position of the mark: after the header of a new segment, otherwise at the start.
    size_t mark_place() const { return is_new ? kSegmentHeaderSize : 0; }
  };

  struct Stream {
    uint32_t segment = 0;  ///< 0: none yet
    std::vector<std::unique_ptr<Chunk>> open;
  };

  struct Commit {
    std::vector<std::unique_ptr<Chunk>> chunks;
    bool sync = true;
    Lsn end_lsn = 0;  ///< all records of these streams below this LSN are in this commit or an earlier one
    uint64_t bytes = 0;
    uint64_t records = 0;
    std::chrono::microseconds took{};
    Status status;
    bool lacks_room = false;  ///< it failed for lack of space, before any sync: it can be retried
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
  Manifest& manifest_;  ///< used by the write lane
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
  std::vector<std::unique_ptr<Chunk>> spare_;  ///< chunks whose buffers can be reused
  bool head_busy_ = false;
  bool survivors_busy_ = false;
  uint64_t appended_bytes_ = 0;
  uint64_t written_bytes_ = 0;
  Histogram<28> commit_micros_;
  Histogram<20> commit_records_;
  uint64_t unsynced_bytes_ = 0;
  uint64_t disk_free_ = UINT64_MAX;
};

/// Reads records from memory, from the page cache, or from the disk, in this order. The engine
/// never waits for the disk.
class RecordReader {
 public:
  RecordReader(Io& io, const Log& log, Segments& segments) : io_(io), log_(log), segments_(segments) {}

  /// The records in the order of the request; nullopt where a record is damaged or no Location was given
  /// (segment 0). The views point into the arena. If the disk could not be read, `status` is an error and
  /// there are no records; unlike damage, this may be temporary.
  struct Found {
    std::vector<std::optional<RecordView>> records;
    Arena storage;
    Status status;
  };
  using Then = absl::AnyInvocable<void(Found)>;

  /// Calls `then` before it returns if nothing has to be read from disk, otherwise from Io::poll().
  void read(const std::vector<Location>& wanted, Then then);

 private:
  /// Neighbouring records of one segment that are read together.
  struct Range {
    std::shared_ptr<File> file;
    uint64_t offset = 0;
    std::span<std::byte> bytes;
    bool is_read = false;
    Status status;
  };
  /// Where a requested record will be found.
  struct Piece {
    std::span<const std::byte> bytes;
    uint32_t nonce = 0;
    uint32_t range = UINT32_MAX;  ///< UINT32_MAX: no range, `bytes` has the record
  };
  struct Request {
    std::vector<Piece> pieces;
    std::vector<Range> ranges;
    Arena storage;
    Then then;
  };

  void plan(const std::vector<Location>& wanted, Request& request);
  static void finish(Request& request);

  Io& io_;
  const Log& log_;
  Segments& segments_;
};

}  // namespace delayq::journal
