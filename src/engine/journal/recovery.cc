#include "engine/journal/recovery.h"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include "core/text.h"
#include "engine/journal/canary.h"
#include "engine/journal/segments.h"

namespace delayq::journal {

bool Replay::add(const RecordView& record, const Location& location) {
  ++records_;
  highest_lsn_ = std::max(highest_lsn_, record.lsn);
  if (record.type == RecordType::kMark || record.type == RecordType::kHole) return true;
  if (record.type == RecordType::kGroup) return add_group(record, location);
  Waiting& waiting = window_[waiting_];
  waiting = Waiting{record, location, {}, {}, 0};
  if (!parse(waiting)) return false;
  if (++waiting_ == kWindow) flush();
  return true;
}

bool Replay::add_group(const RecordView& group, const Location& location) {
  std::array<GroupedRecord, kMostInGroup> room;
  const uint32_t nonce = store_.segments.find(location.segment)->header.nonce;
  const std::span<const GroupedRecord> records = read_group(group, nonce, room);
  for (const auto& [record, offset] : records) {
    const auto size = static_cast<uint32_t>(record.size());
    if (!add(record, {location.segment, location.offset + offset, size})) return false;
  }
  return !records.empty();
}

bool Replay::parse(Waiting& waiting) {
  switch (waiting.record.type) {
    case RecordType::kJob: {
      const auto job = parse_job(waiting.record.payload);
      if (!job) return false;
      waiting.job = *job;
      waiting.id_key = store_.ids.key_of(job->id);
      waiting.seq = job->fixed.state.seq;
      store_.ids.prefetch(waiting.id_key);
      break;
    }
    case RecordType::kState: {
      const auto state = parse_plain<StatePayload>(waiting.record.payload);
      if (!state || static_cast<size_t>(state->state) >= kJobStateCount) return false;
      waiting.seq = state->seq;
      break;
    }
    case RecordType::kOutcome: {
      const auto outcome = parse_outcome(waiting.record.payload);
      if (!outcome) return false;
      waiting.seq = outcome->state.seq;
      break;
    }
    case RecordType::kGone: {
      const auto gone = parse_plain<GonePayload>(waiting.record.payload);
      if (!gone) return false;
      waiting.seq = gone->seq;
      break;
    }
    case RecordType::kSettings:
      return parse_settings(waiting.record.payload).has_value();
    case RecordType::kSchedule: {
      const auto schedule = parse_schedule(waiting.record.payload);
      if (!schedule) return false;
      waiting.seq = schedule->fixed.number;
      waiting.id_key = store_.schedules.key_of(schedule->name);
      store_.schedules.prefetch(waiting.id_key);
      store_.schedules.prefetch(waiting.seq);
      break;
    }
    case RecordType::kTurned: {
      const auto turned = parse_turned(waiting.record.payload);
      if (!turned) return false;
      waiting.seq = turned->fixed.number;
      store_.schedules.prefetch(waiting.seq);
      break;
    }
    default:
      return false;
  }
  if (waiting.seq == 0 || waiting.seq > kMaxLsn) return false;
  store_.prefetch_number(waiting.seq);
  return true;
}

void Replay::flush() {
  for (size_t i = 0; i < waiting_; ++i) {
    if (window_[i].seq == 0) continue;
    store_.prefetch_numbered_entry(window_[i].seq);
    if (window_[i].record.type == RecordType::kTurned) store_.schedules.prefetch_entry(window_[i].seq);
  }
  for (size_t i = 0; i < waiting_; ++i) apply(window_[i]);
  waiting_ = 0;
}

void Replay::finish() {
  for (const auto& [seq, segment] : replaced_) clean_first(segment);
  replaced_.clear();
}

void Replay::apply(const Waiting& waiting) {
  if (waiting.record.type == RecordType::kJob) return apply_job(waiting);
  if (waiting.record.type == RecordType::kSettings) return apply_settings(waiting);
  if (waiting.record.type == RecordType::kGone) return apply_gone(waiting);
  if (waiting.record.type == RecordType::kSchedule) return apply_schedule(waiting);
  if (waiting.record.type == RecordType::kTurned) return apply_turned(waiting);
  // If the job is not known, it was removed, or its copied job record, which is later than
  // this state, follows.
  const Slot slot = store_.find_number(waiting.seq);
  if (waiting.record.type == RecordType::kOutcome) {
    if (slot == kNoSlot) {  // removed, or its job record was copied after this record
      early_outcomes_[waiting.seq] = waiting.location;
      return;
    }
    store_.change(slot, parse_outcome(waiting.record.payload)->state);
    store_.set_outcome_record(slot, waiting.location, true);
  } else if (slot != kNoSlot) {
    store_.change(slot, *parse_plain<StatePayload>(waiting.record.payload));
    store_.set_state_record(slot, waiting.location);
  }
}

void Replay::apply_job(const Waiting& waiting) {
  const JobView& job = waiting.job;
  if (const Slot known = store_.find_number(waiting.seq); known != kNoSlot) {  // copied by compaction
    const Entry& entry = store_.jobs[known];
    // A copy has the id and the topic of the original; anything else was not written by this program.
    if (entry.key_low != waiting.id_key.low || entry.key_high != waiting.id_key.high) return;
    if (store_.topics[entry.topic].name != job.topic) return;
    if (const uint32_t before = store_.jobs[known].location.segment; before != waiting.location.segment) {
      clean_first(before);
    }
    store_.change(known, job.fixed.state);
    store_.set_job_record(known, waiting.location);
    return;
  }
  const TopicNumber topic = topic_of(job.topic);
  if (const Slot old = store_.ids.find(waiting.id_key, topic); old != kNoSlot) {
    replaced_[store_.jobs[old].seq] = store_.jobs[old].location.segment;
    store_.erase(old);
  }
  const Slot slot = store_.insert({waiting.id_key, topic, job.fixed.state, job.fixed.priority,
                                   !job.options.empty(), job.group, waiting.location, job.fixed.lease_ms});
  if (early_outcomes_.empty()) return;
  if (const auto outcome = early_outcomes_.find(waiting.seq); outcome != early_outcomes_.end()) {
    store_.set_outcome_record(slot, outcome->second, false);
    early_outcomes_.erase(outcome);
  }
}

void Replay::apply_gone(const Waiting& waiting) {
  const uint32_t named = parse_plain<GonePayload>(waiting.record.payload)->segment;
  store_.segments.keep_gone(waiting.location, named);
  if (const Slot slot = store_.find_number(waiting.seq); slot != kNoSlot) {
    // The kGone record names a copy that did not reach the disk.
    if (const uint32_t actual = store_.jobs[slot].location.segment; actual != named) clean_first(actual);
    store_.erase(slot);
  } else if (ScheduleBook::Entry* schedule = store_.schedules.find_number(waiting.seq)) {
    if (const uint32_t actual = schedule->mark().definition.segment; actual != named) clean_first(actual);
    store_.schedules.erase(*schedule);
  } else if (const auto replaced = replaced_.find(waiting.seq); replaced != replaced_.end()) {
    if (replaced->second != named) clean_first(replaced->second);
    replaced_.erase(replaced);
  }
}

void Replay::apply_settings(const Waiting& waiting) {
  const auto view = parse_settings(waiting.record.payload);
  Topic& topic = store_.topics[topic_of(view->topic)];
  store_.segments.release(topic.settings_record);
  topic.settings = view->settings;
  topic.settings_record = view->settings.empty() ? Location{} : waiting.location;
  store_.segments.keep(topic.settings_record);
  if (view->settings.empty()) store_.segments.find(waiting.location.segment)->unsets = true;
}

/// As for jobs: a record whose number is known is a copy, and a name that is in use gets a new definition.
void Replay::apply_schedule(const Waiting& waiting) {
  const auto view = parse_schedule(waiting.record.payload);
  const ScheduleBook::Entry* known = store_.schedules.find_number(waiting.seq);
  if (known != nullptr && known->name() != view->name) return;  // we have written no such record
  const ScheduleMark before = store_.schedules.define(*view, waiting.id_key, waiting.location);
  if (before.number == 0) return;
  if (before.number != waiting.seq) {
    replaced_[before.number] = before.definition.segment;
  } else if (before.definition.segment != waiting.location.segment) {
    clean_first(before.definition.segment);
  }
}

/// Of a schedule that is not there: it is gone, or the copy of its definition, which has a later state, comes
/// later.
void Replay::apply_turned(const Waiting& waiting) {
  ScheduleBook::Entry* entry = store_.schedules.find_number(waiting.seq);
  if (entry == nullptr) return;
  store_.schedules.turn(*entry, *parse_turned(waiting.record.payload), waiting.location);
}

/// Records of one topic come in runs, so the last topic is cached.
TopicNumber Replay::topic_of(std::string_view name) {
  if (last_topic_ == kNoTopic || store_.topics[last_topic_].name != name) {
    last_topic_ = store_.topics.find_or_add(name);
  }
  return last_topic_;
}

namespace {

Error damage(const Disk& disk, const SegmentFile& segment, uint64_t offset, std::string_view what) {
  return {
      ErrorCode::kCorrupt, "journal.open",
      fmt::format(
          "{0}/{1} is damaged at offset {2}: {3}. Nothing was changed. `delayq check {4}` shows the extent, "
          "and `delayq check {4} --repair` tells what it would drop and asks before it drops anything",
          disk.name(), segment.name, offset, what, shell_word(disk.name()))};
}

Error wrong_file(const Disk& disk, const ChainProblem& problem) {
  return {
      ErrorCode::kCorrupt, "journal.open",
      fmt::format("{0}/{1}: {2}. Nothing was changed. Put back what belongs there, from a whole copy of the "
                  "directory. `delayq check {3}` shows all that is wrong, and `delayq check {3} --repair` "
                  "goes on without what is lost",
                  disk.name(), problem.file, problem.what, shell_word(disk.name()))};
}

/// Reads the segments of one stream as one sequence of records.
class StreamReader {
 public:
  StreamReader(Disk& disk, Store& store, Recovered& recovered)
      : disk_(disk), store_(store), recovered_(recovered) {}

  /// `least_size` is the size in the manifest.
  void add(SegmentFile segment, uint64_t least_size) {
    segments_.push_back(std::move(segment));
    least_sizes_.push_back(least_size);
  }

  /// Moves to the next record. Returns false if there is none or status() is an error.
  bool next(Replay& replay) {
    for (;;) {
      if (scanner_) {
        record_ = scanner_->next();
        if (record_) return true;
        replay.flush();  // the window's records point into the segment that is about to be freed
        if (!(status_ = close_segment()).ok()) return false;
      }
      if (at_ == segments_.size()) return false;
      if (!(status_ = open_segment()).ok()) return false;
    }
  }

  const RecordView& record() const { return *record_; }
  bool has_record() const { return record_.has_value(); }
  const Status& status() const { return status_; }
  Location location() const {
    return {segments_[at_].number, static_cast<uint32_t>(scanner_->record_offset()),
            static_cast<uint32_t>(record_->size())};
  }
  Error nonsense() const {
    return damage(disk_, segments_[at_], scanner_->record_offset(), "a record of unknown shape");
  }

  /// Called when everything has been read without error: cuts off torn ends, and makes sure that the
  /// records read are on disk. A killed process may have left a commit in the page cache only. And after a
  /// failed sync the system may treat pages as clean that never reached the disk, so they are written
  /// again before the sync.
  Status settle() {
    for (const SegmentFile& segment : segments_) {
      Segment& known = *store_.segments.find(segment.number);
      if (segment.has_successor && known.size == segment.size) continue;
      if (Status status = segment.file->truncate(known.size); !status.ok()) return status;
      if (Status status = write_again(segment, known); !status.ok()) return status;
      if (Status status = segment.file->sync(); !status.ok()) return status;
      // The head stream continues in a new segment, whose header has the size of its predecessor.
      if (segment.has_successor || segment.header.stream == kHeadStream) continue;
      if (Status status = prove(segment, known, recovered_.next_lsn++); !status.ok()) return status;
      store_.segments.set_occupied(known, known.size);
    }
    return {};
  }

 private:
  Status open_segment() {
    const SegmentFile& segment = segments_[at_];
    Result<std::vector<std::byte>> bytes = read_whole(segment);
    if (!bytes.ok()) return bytes.error();
    bytes_ = std::move(*bytes);
    scanner_.emplace(bytes_, segment.header, segment.has_successor);
    return {};
  }

  Status close_segment() {
    const SegmentFile& segment = segments_[at_];
    if (scanner_->end() == SegmentScanner::End::kDamaged) {
      return damage(disk_, segment, scanner_->offset(),
                    "a record fails its checksum, and what follows had been synced");
    }
    if (scanner_->offset() < least_sizes_[at_]) {
      return damage(disk_, segment, scanner_->offset(),
                    fmt::format("its records end there, and had been synced up to {}", least_sizes_[at_]));
    }
    if (scanner_->end() == SegmentScanner::End::kTorn)
      recovered_.cut_bytes += segment.size - scanner_->offset();
    Segment& known = *store_.segments.find(segment.number);
    known.size = scanner_->offset();
    known.durable = segment.has_successor ? known.size : std::min(known.size, scanner_->proven_durable());
    store_.segments.set_occupied(known, known.size);
    scanner_.reset();
    ++at_;
    return {};
  }

  /// Writes a mark after the last record: a bad record before it is damage from now on.
  static Status prove(const SegmentFile& segment, Segment& known, Lsn lsn) {
    std::array<std::byte, kRecordHeaderSize + sizeof(MarkPayload)> record{};
    const MarkPayload mark{known.size, known.size};
    std::memcpy(record.data() + kRecordHeaderSize, &mark, sizeof mark);
    seal_record(record, segment.header.nonce, RecordType::kMark, lsn);
    if (Status status = segment.file->write(known.size, record); !status.ok()) return status;
    known.size += record.size();
    known.durable = known.size;
    return segment.file->sync();
  }

  static Status write_again(const SegmentFile& segment, Segment& known) {
    std::vector<std::byte> bytes(known.size - known.durable);
    const Result<size_t> got = segment.file->read(known.durable, bytes);
    if (!got.ok()) return got.error();
    if (Status status = segment.file->write(known.durable, std::span(bytes).first(*got)); !status.ok())
      return status;
    known.durable = known.size;
    return {};
  }

  Disk& disk_;
  Store& store_;
  Recovered& recovered_;
  std::vector<SegmentFile> segments_;
  std::vector<uint64_t> least_sizes_;
  size_t at_ = 0;
  std::vector<std::byte> bytes_;
  std::optional<SegmentScanner> scanner_;
  std::optional<RecordView> record_;
  Status status_;
};

/// Merges the streams by record number.
Status replay_all(std::vector<StreamReader>& streams, Replay& replay) {
  for (StreamReader& stream : streams) {
    stream.next(replay);
    if (!stream.status().ok()) return stream.status();
  }
  for (;;) {
    StreamReader* first = nullptr;
    Lsn limit = UINT64_MAX;  // where the next stream continues
    for (StreamReader& stream : streams) {
      if (!stream.has_record()) continue;
      if (first == nullptr || stream.record().lsn < first->record().lsn) {
        if (first != nullptr) limit = std::min(limit, first->record().lsn);
        first = &stream;
      } else {
        limit = std::min(limit, stream.record().lsn);
      }
    }
    if (first == nullptr) break;
    do {
      if (!replay.add(first->record(), first->location())) return first->nonsense();
    } while (first->next(replay) && first->record().lsn < limit);
    if (!first->status().ok()) return first->status();
  }
  replay.flush();
  replay.finish();
  return {};
}

Status judge(const Disk& disk, const SegmentFile& segment) {
  if (segment.kind == SegmentFile::Kind::kDamaged) return damage(disk, segment, 0, header_problem(segment));
  if (segment.kind == SegmentFile::Kind::kForeign) {
    return Error{ErrorCode::kUnavailable, "journal.open",
                 fmt::format("{}/{} has format version {}; this program reads version {}", disk.name(),
                             segment.name, segment.header.version, kFormatVersion)};
  }
  return {};
}

/// Reads the manifest and compares the segments with it.
Result<Manifest> check_files(Disk& disk, std::vector<SegmentFile>& files) {
  Result<std::optional<Manifest>> manifest = Manifest::read(disk);
  if (!manifest.ok() && manifest.error().code == ErrorCode::kCorrupt)
    return wrong_file(disk,
                      {std::string(Manifest::kName), "damaged at offset 0, " + manifest.error().detail});
  if (!manifest.ok()) return manifest.error();
  for (const SegmentFile& file : files) {
    if (Status status = judge(disk, file); !status.ok()) return status.error();
  }
  const std::vector<ChainProblem> problems = compare(*manifest, files);
  if (!problems.empty() && !is_planted(Canary::kUncheckedFiles)) return wrong_file(disk, problems.front());
  return manifest->value_or(Manifest{});
}

/// Makes the manifest of the directory as it is now.
Manifest manifest_of(Segments& segments, uint64_t directory, uint32_t epoch) {
  Manifest manifest;
  manifest.directory = directory;
  manifest.epoch = epoch;
  manifest.highest = segments.highest_number();
  for (const auto& [number, segment] : segments)
    manifest.segments[number] = {segment->header.nonce, segment->size};
  return manifest;
}

}  // namespace

Result<Recovered> recover(Disk& disk, Store& store, uint64_t directory) {
  Result<std::vector<SegmentFile>> found = find_segments(disk);
  if (!found.ok()) return found.error();
  const Result<Manifest> known = check_files(disk, *found);
  if (!known.ok()) return known.error();
  Recovered recovered;
  // An interrupted opening may have used this epoch without leaving a segment.
  recovered.epoch = std::max(recovered.epoch, known->epoch + 1);
  std::vector<std::string> unfinished;
  std::vector<StreamReader> streams(kStreamCount, StreamReader(disk, store, recovered));
  for (SegmentFile& file : *found) {
    if (file.kind != SegmentFile::Kind::kGood) {
      unfinished.push_back(file.name);
      continue;
    }
    Segment& segment = store.segments.add(file.header);
    segment.file = file.file;
    segment.is_open = false;
    recovered.epoch = std::max(recovered.epoch, file.header.epoch + 1);
    recovered.next_lsn = std::max(recovered.next_lsn, file.header.first_lsn);
    const uint16_t stream = file.header.stream;
    const auto entry = known->segments.find(file.number);
    const uint64_t least_size = entry == known->segments.end() ? 0 : entry->second.least_size;
    streams[stream].add(std::move(file), least_size);
  }
  {
    Replay replay(store);
    if (Status status = replay_all(streams, replay); !status.ok()) return status.error();
    recovered.next_lsn = std::max(recovered.next_lsn, replay.highest_lsn() + 1);
    recovered.records = replay.records();
  }
  for (StreamReader& stream : streams) {
    if (Status status = stream.settle(); !status.ok()) return status.error();
  }
  for (const std::string& name : unfinished) {
    if (Status status = disk.remove(name); !status.ok()) return status.error();
  }
  if (Status status = disk.sync_directory(); !status.ok()) return status.error();
  recovered.manifest =
      manifest_of(store.segments, known->directory != 0 ? known->directory : directory, recovered.epoch);
  if (Status status = recovered.manifest.write(disk); !status.ok()) return status.error();
  return recovered;
}

}  // namespace delayq::journal
