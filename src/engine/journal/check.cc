#include "engine/journal/check.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/journal/recovery.h"
#include "engine/journal/segments.h"

namespace delayq::journal {

namespace {

/// A record that was read, and its bytes.
struct Kept {
  RecordView record;
  Location location;
};

/// Reads one segment: adds records to `records` and problems to `report`. `least_size` is the
/// size in the manifest.
Status read_segment(const SegmentFile& segment, const std::vector<std::byte>& bytes, uint64_t least_size,
                    std::vector<Kept>& records, CheckReport& report) {
  SegmentScanner scanner(bytes, segment.header, segment.has_successor);
  uint64_t found = 0;
  for (;;) {
    while (const auto record = scanner.next()) {
      ++found;
      records.push_back({*record,
                         {segment.number, static_cast<uint32_t>(scanner.record_offset()),
                          static_cast<uint32_t>(record->size())}});
    }
    if (scanner.end() != SegmentScanner::End::kDamaged) break;
    const uint64_t average =
        found == 0 ? 256 : std::max<uint64_t>(kRecordHeaderSize, scanner.offset() / found);
    const uint64_t offset = scanner.offset();
    const uint64_t skipped = scanner.skip_damage();
    report.damage.push_back({segment.name, offset, skipped, "a record fails its checksum",
                             std::max<uint64_t>(1, (skipped + average / 2) / average)});
  }
  if (scanner.offset() < least_size) {
    const uint64_t there = std::min<uint64_t>(least_size, bytes.size());
    report.damage.push_back({segment.name, scanner.offset(), there - scanner.offset(),
                             fmt::format("its records end there, and had been synced up to {}", least_size),
                             (least_size - scanner.offset()) / 256 + 1});
  } else if (scanner.end() == SegmentScanner::End::kTorn)
    report.torn_bytes += bytes.size() - scanner.offset();
  report.records += found;
  return {};
}

/// Rebuilds the jobs from all records that can be read, to count them.
void count_jobs(const std::vector<SegmentFile>& segments, std::vector<Kept>& records, CheckReport& report) {
  std::stable_sort(records.begin(), records.end(),
                   [](const Kept& a, const Kept& b) { return a.record.lsn < b.record.lsn; });
  Store store(SipKey{1, 2});
  for (const SegmentFile& segment : segments) {
    if (segment.kind == SegmentFile::Kind::kGood) store.segments.add(segment.header);
  }
  Replay replay(store);
  for (const Kept& kept : records) {
    if (replay.add(kept.record, kept.location)) continue;
    report.damage.push_back({segment_name(kept.location.segment), kept.location.offset, kept.location.size,
                             "a record of unknown shape", 1});
  }
  replay.flush();
  report.jobs = store.topics.totals();
  report.topics = store.topics.size();
  report.schedules = store.schedules.size();
  report.live_bytes = store.segments.live_bytes();
}

/// Compares the segments with the manifest and returns it. Adds problems to `report`.
Result<Manifest> inspect_files(Disk& disk, std::vector<SegmentFile>& segments, CheckReport& report) {
  Result<std::optional<Manifest>> manifest = Manifest::read(disk);
  if (!manifest.ok() && manifest.error().code != ErrorCode::kCorrupt) return manifest.error();
  if (!manifest.ok()) {
    report.damage.push_back({std::string(Manifest::kName), 0, 0, manifest.error().detail, 0});
    return Manifest{};
  }
  for (const ChainProblem& problem : compare(*manifest, segments))
    report.damage.push_back({problem.file, 0, 0, problem.what, 0});
  return manifest->value_or(Manifest{});
}

Result<CheckReport> inspect(Disk& disk, std::vector<SegmentFile>& segments, Manifest& manifest) {
  Result<std::vector<SegmentFile>> found = find_segments(disk);
  if (!found.ok()) return found.error();
  segments = std::move(*found);
  CheckReport report;
  Result<Manifest> known = inspect_files(disk, segments, report);
  if (!known.ok()) return known.error();
  manifest = std::move(*known);
  std::vector<std::vector<std::byte>> contents;
  std::vector<Kept> records;
  for (const SegmentFile& segment : segments) {
    ++report.segments;
    report.bytes += segment.size;
    if (segment.kind == SegmentFile::Kind::kUnfinished || segment.kind == SegmentFile::Kind::kLeftover) {
      ++report.unfinished_segments;
      continue;
    }
    if (segment.kind == SegmentFile::Kind::kStranger) continue;
    if (segment.kind == SegmentFile::Kind::kForeign) {
      return Error{ErrorCode::kUnavailable, "journal.check",
                   fmt::format("{}/{} has format version {}; this program reads version {}", disk.name(),
                               segment.name, segment.header.version, kFormatVersion)};
    }
    if (segment.kind == SegmentFile::Kind::kDamaged) {
      report.damage.push_back({segment.name, 0, segment.size, header_problem(segment), segment.size / 256});
      continue;
    }
    Result<std::vector<std::byte>> bytes = read_whole(segment);
    if (!bytes.ok()) return bytes.error();
    contents.push_back(std::move(*bytes));
    const auto entry = manifest.segments.find(segment.number);
    const uint64_t least_size = entry == manifest.segments.end() ? 0 : entry->second.least_size;
    if (Status status = read_segment(segment, contents.back(), least_size, records, report); !status.ok())
      return status.error();
  }
  count_jobs(segments, records, report);
  return report;
}

/// Writes one kHole record over the whole range. Its number is that of its neighbour, so that
/// numbers never decrease.
Status make_hole(const SegmentFile& segment, const Damage& damage) {
  Result<std::vector<std::byte>> bytes = read_whole(segment);
  if (!bytes.ok()) return bytes.error();
  SegmentScanner scanner(*bytes, segment.header, segment.has_successor);
  Lsn before = segment.header.first_lsn - 1;
  while (scanner.offset() < damage.offset) {
    const auto record = scanner.next();
    if (!record) break;
    before = record->lsn;
  }
  const std::span<std::byte> hole = std::span(*bytes).subspan(damage.offset, damage.bytes);
  // A range at the end of the file is cut off. Elsewhere a record must fit exactly into the range.
  if (damage.offset + damage.bytes == bytes->size()) {
    if (Status status = segment.file->truncate(damage.offset); !status.ok()) return status;
    return segment.file->sync();
  }
  if (hole.size() < kRecordHeaderSize || hole.size() - kRecordHeaderSize > kMaxPayload) {
    return Error{
        ErrorCode::kCorrupt, "journal.repair",
        fmt::format("{}: {} bytes at {} cannot be made a hole", segment.name, hole.size(), damage.offset)};
  }
  seal_record(hole, segment.header.nonce, RecordType::kHole, before + 1);
  if (Status status = segment.file->write(damage.offset, hole); !status.ok()) return status;
  return segment.file->sync();
}

Status give_up(Disk& disk, const SegmentFile& segment, const Damage& damage) {
  const bool is_put_aside =
      segment.kind == SegmentFile::Kind::kDamaged || segment.kind == SegmentFile::Kind::kStranger;
  if (is_put_aside) return disk.rename(segment.name, segment.name + ".damaged");
  return damage.bytes == 0 ? Status{} : make_hole(segment, damage);
}

/// Lists the remaining segments with their present sizes.
Status write_new_manifest(Disk& disk, const Manifest& old, const std::vector<SegmentFile>& segments) {
  Manifest manifest;
  manifest.directory = old.directory;
  manifest.epoch = old.epoch;
  manifest.removed = old.removed;
  for (const SegmentFile& segment : segments) {
    if (segment.kind != SegmentFile::Kind::kGood) continue;
    if (manifest.directory == 0) manifest.directory = segment.header.directory;
    manifest.epoch = std::max(manifest.epoch, segment.header.epoch);
    manifest.highest = std::max(manifest.highest, segment.number);
    manifest.segments[segment.number] = {segment.header.nonce, kSegmentHeaderSize};
  }
  if (manifest.directory != 0) return manifest.write(disk);
  // All segments are from before there were manifests: the next start writes one.
  static_cast<void>(disk.remove(Manifest::kName));
  return disk.sync_directory();
}

}  // namespace

Result<CheckReport> check(Disk& disk) {
  Result<std::unique_ptr<Disk::Lock>> lock = disk.lock();
  if (!lock.ok()) return lock.error();
  std::vector<SegmentFile> segments;
  Manifest manifest;
  return inspect(disk, segments, manifest);
}

Result<CheckReport> repair(Disk& disk) {
  Result<std::unique_ptr<Disk::Lock>> lock = disk.lock();
  if (!lock.ok()) return lock.error();
  std::vector<SegmentFile> segments;
  Manifest manifest;
  Result<CheckReport> report = inspect(disk, segments, manifest);
  if (!report.ok() || report->is_clean()) return report;
  for (const Damage& damage : report->damage) {
    const auto segment = std::find_if(segments.begin(), segments.end(),
                                      [&](const SegmentFile& file) { return file.name == damage.segment; });
    if (segment == segments.end()) continue;  // missing, or the manifest itself
    if (Status status = give_up(disk, *segment, damage); !status.ok()) return status.error();
  }
  if (Status status = disk.sync_directory(); !status.ok()) return status.error();
  if (Status status = write_new_manifest(disk, manifest, segments); !status.ok()) return status.error();
  return report;
}

std::string to_string(const CheckReport& report) {
  std::string text = fmt::format(
      "{} segments, {} bytes, {} records; jobs: {} delayed, {} reserved, {} done, {} dead in {} topics; "
      "{} schedules\n",
      report.segments, report.bytes, report.records, report.jobs[0] + report.jobs[1], report.jobs[2],
      report.jobs[3], report.jobs[4], report.topics, report.schedules);
  if (report.torn_bytes != 0) {
    text += fmt::format("{} bytes of an unfinished commit at the end (never acknowledged, no loss)\n",
                        report.torn_bytes);
  }
  for (const Damage& damage : report.damage) {
    text += fmt::format("DAMAGE {} offset {}: {} bytes, {}; about {} records\n", damage.segment,
                        damage.offset, damage.bytes, damage.what, damage.records_estimate);
  }
  text += report.is_clean() ? "no damage\n" : fmt::format("{} damaged places\n", report.damage.size());
  return text;
}

}  // namespace delayq::journal
