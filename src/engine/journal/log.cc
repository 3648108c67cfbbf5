#include "engine/journal/log.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

namespace delayq::journal {

namespace {

constexpr size_t kMarkSize = kRecordHeaderSize + sizeof(MarkPayload);

}  // namespace

Log::Log(Disk& disk, Io& io, Segments& segments, Manifest& manifest, LogOptions options, uint64_t random_seed)
    : disk_(disk),
      io_(io),
      segments_(segments),
      manifest_(manifest),
      options_(options),
      random_(random_seed) {}

void Log::start(Lsn next_lsn, uint32_t epoch, Moment now) {
  next_lsn_ = next_lsn;
  head_end_lsn_ = durable_lsn_ = written_lsn_ = next_lsn;
  epoch_ = epoch;
  directory_ = manifest_.directory;
  now_ = now;
  next_segment_ = segments_.highest_number() + 1;
}

Log::Chunk& Log::chunk_for(uint16_t stream_number, size_t size) {
  Stream& stream = streams_[stream_number];
  if (stream.segment == 0) return begin_segment(stream_number, size);
  Segment& segment = *segments_.find(stream.segment);
  const size_t mark = stream.open.empty() ? kMarkSize : 0;
  const bool is_grouped = group_lsn_ != 0 && stream_number == kHeadStream;
  if (segment.size + mark + size > options_.segment_bytes && !is_grouped)
    return begin_segment(stream_number, size);
  Chunk& chunk = stream.open.empty() ? begin_chunk(stream_number) : *stream.open.back();
  segment.size += size;
  if (stream_number != kHeadStream) segments_.set_occupied(segment, segment.size);
  return chunk;
}

Log::Chunk& Log::begin_segment(uint16_t stream_number, size_t size) {
  Stream& stream = streams_[stream_number];
  SegmentHeader header;
  header.stream = stream_number;
  header.nonce = static_cast<uint32_t>(random_.next());
  header.number = next_segment_++;
  header.epoch = epoch_;
  header.first_lsn = next_lsn_;
  header.created_ms = to_unix_ms(now_);
  header.directory = directory_;
  if (stream.segment != 0) {
    header.previous = stream.segment;
    header.previous_size = segments_.find(stream.segment)->size;
    close_segment(stream);
  }
  Segment& segment = segments_.add(header);
  stream.segment = header.number;
  segment.size = kSegmentHeaderSize + kMarkSize + size;

  auto chunk = fresh_chunk();
  chunk->segment = header.number;
  chunk->nonce = header.nonce;
  chunk->is_new = true;
  // Only segments of the head stream are allocated in advance: it is always in use, the others come and go.
  chunk->allocate = stream_number == kHeadStream ? std::max(options_.segment_bytes, segment.size) : 0;
  segments_.set_occupied(segment, std::max(chunk->allocate, segment.size));
  header.encode(chunk->bytes.extend(kSegmentHeaderSize).first<kSegmentHeaderSize>());
  chunk->bytes.extend(kMarkSize);
  chunk->mark_lsn = next_lsn_++;
  stream.open.push_back(std::move(chunk));
  return *stream.open.back();
}

void Log::begin_group(size_t most) {
  assert(group_lsn_ == 0);
  // The place for all of it is looked for at once, and given back but for the header's.
  Chunk& chunk = chunk_for(kHeadStream, kRecordHeaderSize + most);
  segments_.find(chunk.segment)->size -= most;
  group_at_ = chunk.bytes.size();
  chunk.bytes.extend(kRecordHeaderSize);
  appended_bytes_ += kRecordHeaderSize;
  group_lsn_ = next_lsn_++;
}

void Log::end_group() {
  assert(group_lsn_ != 0);
  Chunk& chunk = *streams_[kHeadStream].open.back();
  seal_record(chunk.bytes.all().subspan(group_at_), chunk.nonce, RecordType::kGroup, group_lsn_);
  head_end_lsn_ = next_lsn_;
  group_lsn_ = 0;
}

/// Marks the chunk that ends the segment, or an empty one if all chunks of it are already being written.
void Log::close_segment(Stream& stream) {
  if (stream.open.empty()) {
    stream.open.push_back(fresh_chunk());
    stream.open.back()->segment = stream.segment;
    stream.open.back()->offset = segments_.find(stream.segment)->size;
  }
  stream.open.back()->is_last = true;
  stream.segment = 0;
}

void Log::retire(const Segment& segment) {
  assert(segment.header.stream != kHeadStream);
  Stream& stream = streams_[segment.header.stream];
  if (stream.segment != segment.header.number) return;
  prove(segment.header.stream);
  close_segment(stream);
}

Log::Chunk& Log::begin_chunk(uint16_t stream_number) {
  Stream& stream = streams_[stream_number];
  Segment& segment = *segments_.find(stream.segment);
  auto chunk = fresh_chunk();
  chunk->segment = stream.segment;
  chunk->nonce = segment.header.nonce;
  chunk->offset = segment.size;
  chunk->bytes.extend(kMarkSize);
  chunk->mark_lsn = next_lsn_++;
  segment.size += kMarkSize;
  stream.open.push_back(std::move(chunk));
  return *stream.open.back();
}

std::unique_ptr<Log::Chunk> Log::fresh_chunk() {
  if (spare_.empty()) return std::make_unique<Chunk>();
  auto chunk = std::move(spare_.back());
  spare_.pop_back();
  ByteBuffer bytes = std::move(chunk->bytes);
  *chunk = Chunk{};
  chunk->bytes = std::move(bytes);
  return chunk;
}

/// Called last, when it is known what the previous commit made durable.
void Log::seal_mark(Chunk& chunk) const {
  if (chunk.bytes.size() == 0) return;
  const std::span<std::byte> record = chunk.bytes.all().subspan(chunk.mark_place(), kMarkSize);
  const MarkPayload mark{chunk.offset + chunk.mark_place(), segments_.find(chunk.segment)->durable};
  std::memcpy(record.data() + kRecordHeaderSize, &mark, sizeof mark);
  seal_record(record, chunk.nonce, RecordType::kMark, chunk.mark_lsn);
}

std::shared_ptr<Log::Commit> Log::collect(uint16_t first_stream, uint16_t last_stream, bool sync) {
  auto commit = std::make_shared<Commit>();
  commit->sync = sync;
  commit->end_lsn = next_lsn_;
  for (uint16_t stream = first_stream; stream <= last_stream; ++stream) {
    for (auto& chunk : streams_[stream].open) {
      seal_mark(*chunk);
      chunk->file = segments_.find(chunk->segment)->file;
      commit->bytes += chunk->bytes.size();
      commit->records += chunk->records;
      commit->chunks.push_back(std::move(chunk));
    }
    streams_[stream].open.clear();
  }
  return commit;
}

bool Log::head_needs_sync() const {
  const Stream& head = streams_[kHeadStream];
  if (!head.open.empty()) return true;
  const Segment* segment = segments_.find(head.segment);
  return segment != nullptr && segment->durable < segment->size;
}

bool Log::commit_head(bool sync, Done done) {
  assert(group_lsn_ == 0);
  if (head_busy_) return false;
  if (streams_[kHeadStream].open.empty()) {
    if (!sync || !head_needs_sync()) return false;
    begin_chunk(kHeadStream);
  }
  begin(collect(kHeadStream, kHeadStream, sync), head_busy_, std::move(done));
  return true;
}

bool Log::commit_survivors(Done done) {
  if (survivors_busy_) return false;
  auto commit = collect(kHeadStream + 1, kStreamCount - 1, true);
  if (commit->chunks.empty()) return false;
  begin(std::move(commit), survivors_busy_, std::move(done));
  return true;
}

void Log::begin(std::shared_ptr<Commit> commit, bool& busy, Done done) {
  busy = true;
  commit->busy = &busy;
  commit->done = std::move(done);
  unsynced_bytes_ += commit->bytes;
  under_way_.push_back(commit);
  run(std::move(commit));
}

void Log::run(std::shared_ptr<Commit> commit) {
  Commit* const work = commit.get();
  io_.run(
      Lane::kWrite,
      [this, work] {
        const std::chrono::microseconds began = io_.clock();
        work->status = write_commit(*work);
        work->took = io_.clock() - began;
      },
      [this, commit = std::move(commit)] {
        if (commit->lacks_room) {
          disk_free_ = 0;
          waiting_for_room_.push_back(commit);
          return;
        }
        *commit->busy = false;
        finish(*commit);
        commit->done(commit->status);
      });
}

void Log::retry() {
  for (std::shared_ptr<Commit>& commit : std::exchange(waiting_for_room_, {})) run(std::move(commit));
}

void Log::finish(Commit& commit) {
  unsynced_bytes_ -= commit.bytes;
  if (!commit.status.ok()) return;  // it stays in memory, because its records cannot be read from disk
  std::erase_if(under_way_, [&](const auto& other) { return other.get() == &commit; });
  disk_free_ = commit.disk_free;
  written_bytes_ += commit.bytes;
  const bool is_head = segments_.find(commit.chunks.front()->segment)->header.stream == kHeadStream;
  if (is_head) {
    written_lsn_ = commit.end_lsn;
    commit_micros_.record(static_cast<uint64_t>(commit.took.count()));
    commit_records_.record(commit.records);
  }
  if (is_head && commit.sync) durable_lsn_ = commit.end_lsn;
  for (auto& chunk : commit.chunks) {
    Segment& segment = *segments_.find(chunk->segment);
    segment.file = chunk->file;
    segment.is_proven = chunk->bytes.size() <= chunk->mark_place() + kMarkSize;
    if (commit.sync || chunk->is_last) segment.durable = chunk->end();
    if (chunk->is_last) {
      segment.is_open = false;
      segments_.set_occupied(segment, segment.size);
    }
    chunk->bytes.clear();
    chunk->file.reset();  // the disk space of a removed segment is freed only when it is closed
    spare_.push_back(std::move(chunk));
  }
}

Status Log::write_commit(Commit& commit) {
  commit.lacks_room = false;
  for (auto& chunk : commit.chunks) {
    if (Status status = write_chunk(commit, *chunk); !status.ok()) return status;
  }
  const Result<uint64_t> free_bytes = disk_.free_bytes();
  commit.disk_free = free_bytes.ok() ? *free_bytes : UINT64_MAX;
  return {};
}

/// Bytes that were not synced can be written again to the same place. After a failed sync nothing is
/// known about the bytes.
Status Log::write_chunk(Commit& commit, Chunk& chunk) {
  const auto without_room = [&commit](const Error& error) {
    commit.lacks_room = error.code == ErrorCode::kDiskFull;
    return error;
  };
  if (chunk.is_new && chunk.file == nullptr) {
    Result<std::shared_ptr<File>> file = disk_.create(segment_name(chunk.segment));
    if (!file.ok()) return without_room(file.error());
    chunk.file = *file;
    // A disk that is too full to allocate in advance may still have space for this write.
    if (chunk.allocate != 0) {
      if (Status status = chunk.file->allocate(chunk.allocate);
          !status.ok() && status.error().code != ErrorCode::kDiskFull)
        return status;
    }
  }
  if (chunk.bytes.size() != 0) {
    const Status status = chunk.file->write(chunk.offset, chunk.bytes.all());
    if (!status.ok()) return without_room(status.error());
  }
  if (chunk.is_last) {
    if (Status status = chunk.file->truncate(chunk.end()); !status.ok()) return status;
  }
  if (commit.sync || chunk.is_last) {
    if (Status status = chunk.file->sync(); !status.ok()) return status;
  }
  if (!chunk.is_new) return {};
  if (Status status = disk_.sync_directory(); !status.ok()) return status;
  const auto header = SegmentHeader::decode(chunk.bytes.all().first<kSegmentHeaderSize>());
  const Status named = manifest_.name(disk_, *header);
  return named.ok() ? named : Status(without_room(named.error()));
}

std::span<const std::byte> Log::find_buffered(const Location& location) const {
  const auto look = [&](const Chunk& chunk) -> std::span<const std::byte> {
    if (chunk.segment != location.segment || location.offset < chunk.offset) return {};
    if (location.offset + uint64_t{location.size} > chunk.end()) return {};
    return chunk.bytes.all().subspan(location.offset - chunk.offset, location.size);
  };
  for (const Stream& stream : streams_) {
    for (const auto& chunk : stream.open) {
      if (const auto found = look(*chunk); !found.empty()) return found;
    }
  }
  for (const auto& commit : under_way_) {
    for (const auto& chunk : commit->chunks) {
      if (const auto found = look(*chunk); !found.empty()) return found;
    }
  }
  return {};
}

bool Log::prove(uint16_t number) {
  const Stream& stream = streams_[number];
  if (stream.segment == 0 || !stream.open.empty() || segments_.find(stream.segment)->is_proven) return false;
  begin_chunk(number);
  return true;
}

bool Log::prove_survivors() {
  bool any = false;
  for (uint16_t stream = kHeadStream + 1; stream < kStreamCount; ++stream) any |= prove(stream);
  return any;
}

bool Log::has_survivors() const {
  return std::any_of(streams_.begin() + kHeadStream + 1, streams_.end(),
                     [](const Stream& stream) { return !stream.open.empty(); });
}

uint64_t Log::survivor_bytes() const {
  uint64_t bytes = 0;
  for (uint16_t stream = kHeadStream + 1; stream < kStreamCount; ++stream) {
    for (const auto& chunk : streams_[stream].open) bytes += chunk->bytes.size();
  }
  return bytes;
}

uint64_t Log::open_bytes() const {
  uint64_t bytes = 0;
  for (const Stream& stream : streams_) {
    for (const auto& chunk : stream.open) bytes += chunk->bytes.size();
  }
  return bytes;
}

namespace {

/// Reading a small gap together with its neighbours is cheaper than a second call.
constexpr uint64_t kLargestGap = 1024;
constexpr uint64_t kLargestRange = 256 * 1024;

std::span<std::byte> as_bytes(std::span<char> chars) { return std::as_writable_bytes(chars); }

}  // namespace

void RecordReader::read(const std::vector<Location>& wanted, Then then) {
  auto request = std::make_unique<Request>();
  request->then = std::move(then);
  plan(wanted, *request);
  bool all_there = true;
  for (Range& range : request->ranges) {
    range.is_read = range.file->read_cached(range.offset, range.bytes);
    all_there &= range.is_read;
  }
  if (all_there) {
    finish(*request);
    return;
  }
  Request* waiting = request.get();
  io_.run(
      Lane::kRead,
      [waiting] {
        for (Range& range : waiting->ranges) {
          if (range.is_read) continue;
          const Result<size_t> got = range.file->read(range.offset, range.bytes);
          if (!got.ok()) range.status = got.error();
          range.is_read = got.ok() && *got == range.bytes.size();
        }
      },
      [request = std::move(request)] { finish(*request); });
}

void RecordReader::plan(const std::vector<Location>& wanted, Request& request) {
  request.pieces.resize(wanted.size());
  std::vector<uint32_t> order;
  order.reserve(wanted.size());
  for (uint32_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i].segment == 0) continue;
    const Segment* segment = segments_.find(wanted[i].segment);
    if (segment == nullptr) continue;
    Piece& piece = request.pieces[i];
    piece.nonce = segment->header.nonce;
    if (const auto buffered = log_.find_buffered(wanted[i]); !buffered.empty()) {
      const std::string_view copy = request.storage.copy(as_text(buffered));
      piece.bytes = std::as_bytes(std::span{copy});
    } else if (segment->file != nullptr) {
      order.push_back(i);
    }
  }
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return std::pair{wanted[a].segment, wanted[a].offset} < std::pair{wanted[b].segment, wanted[b].offset};
  });
  for (size_t first = 0; first < order.size();) {
    const Location& start = wanted[order[first]];
    uint64_t end = start.offset + uint64_t{start.size};
    size_t last = first + 1;
    for (; last < order.size(); ++last) {
      const Location& next = wanted[order[last]];
      if (next.segment != start.segment || next.offset > end + kLargestGap) break;
      const uint64_t next_end = std::max(end, next.offset + uint64_t{next.size});
      if (next_end - start.offset > kLargestRange) break;
      end = next_end;
    }
    const auto number = static_cast<uint32_t>(request.ranges.size());
    const std::span<std::byte> bytes = as_bytes(request.storage.allocate(end - start.offset));
    request.ranges.push_back({segments_.find(start.segment)->file, start.offset, bytes, false, {}});
    for (; first < last; ++first) {
      const Location& location = wanted[order[first]];
      Piece& piece = request.pieces[order[first]];
      piece.bytes = bytes.subspan(location.offset - start.offset, location.size);
      piece.range = number;
    }
  }
}

void RecordReader::finish(Request& request) {
  Found found;
  for (const Range& range : request.ranges) {
    if (range.status.ok()) continue;
    found.status = Error{ErrorCode::kUnavailable, "journal.read", range.status.error().detail};
    return request.then(std::move(found));
  }
  found.records.reserve(request.pieces.size());
  for (const Piece& piece : request.pieces) {
    const bool is_there = piece.range == UINT32_MAX || request.ranges[piece.range].is_read;
    found.records.push_back(is_there ? read_record(piece.bytes, piece.nonce) : std::nullopt);
  }
  found.storage = std::move(request.storage);
  request.then(std::move(found));
}

}  // namespace delayq::journal
