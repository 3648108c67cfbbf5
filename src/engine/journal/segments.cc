#include "engine/journal/segments.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "core/crc32c.h"

namespace delayq::journal {

namespace {

Result<SegmentFile> look_at(Disk& disk, const std::string& name, uint32_t number) {
  SegmentFile segment;
  segment.name = name;
  segment.number = number;
  Result<std::shared_ptr<File>> file = disk.open(name);
  if (!file.ok()) return file.error();
  segment.file = *file;
  const Result<uint64_t> size = segment.file->size();
  if (!size.ok()) return size.error();
  segment.size = *size;

  std::array<std::byte, kSegmentHeaderSize> bytes{};
  const Result<size_t> got = segment.file->read(0, bytes);
  if (!got.ok()) return got.error();
  const bool is_blank =
      std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte == std::byte{0}; });
  const auto header = SegmentHeader::decode(bytes);
  if (*got < kSegmentHeaderSize || is_blank) {
    segment.kind = SegmentFile::Kind::kUnfinished;
  } else if (!header || header->number != number || header->stream >= kStreamCount) {
    segment.kind = SegmentFile::Kind::kDamaged;
  } else if (header->version != kFormatVersion) {
    segment.kind = SegmentFile::Kind::kForeign;
  }
  if (header) segment.header = *header;
  return segment;
}

}  // namespace

Result<std::vector<SegmentFile>> find_segments(Disk& disk) {
  const Result<std::vector<std::string>> names = disk.list();
  if (!names.ok()) return names.error();
  std::vector<SegmentFile> segments;
  for (const std::string& name : *names) {
    const auto number = parse_segment_name(name);
    if (!number) continue;
    Result<SegmentFile> segment = look_at(disk, name, *number);
    if (!segment.ok()) return segment.error();
    segments.push_back(std::move(*segment));
  }
  std::sort(segments.begin(), segments.end(),
            [](const auto& a, const auto& b) { return a.number < b.number; });
  std::array<bool, kStreamCount> seen{};
  for (auto segment = segments.rbegin(); segment != segments.rend(); ++segment) {
    if (segment->kind != SegmentFile::Kind::kGood) continue;
    segment->has_successor = seen[segment->header.stream];
    seen[segment->header.stream] = true;
  }
  return segments;
}

std::string header_problem(const SegmentFile& segment) {
  if (segment.header.number == 0 || segment.header.number == segment.number)
    return "its header is not readable";
  return fmt::format("its header says that it is {}", segment_name(segment.header.number));
}

Result<std::vector<std::byte>> read_whole(const SegmentFile& segment) {
  std::vector<std::byte> bytes(segment.size);
  const Result<size_t> got = segment.file->read(0, bytes);
  if (!got.ok()) return got.error();
  bytes.resize(*got);
  return bytes;
}

SegmentScanner::SegmentScanner(std::span<const std::byte> file, const SegmentHeader& header,
                               bool has_successor)
    : file_(file), nonce_(header.nonce), has_successor_(has_successor), last_lsn_(header.first_lsn - 1) {}

std::optional<RecordView> SegmentScanner::next() {
  if (end_ != End::kNone) return std::nullopt;
  const auto record = read_record(file_.subspan(offset_), nonce_);
  // Numbers always increase within a segment: a record that breaks this is a leftover, even
  // with a valid checksum.
  if (!record || !follows(*record)) {
    stop();
    return std::nullopt;
  }
  if (record->type != RecordType::kHole) last_lsn_ = record->lsn;
  record_offset_ = offset_;
  offset_ += record->size();
  if (record->type == RecordType::kMark) {
    if (const auto mark = parse_plain<MarkPayload>(record->payload)) {
      proven_durable_ = std::max(proven_durable_, mark->durable);
    }
  }
  return record;
}

void SegmentScanner::stop() {
  if (has_successor_) {
    end_ = offset_ == file_.size() ? End::kClean : End::kDamaged;
  } else if (only_zeros_follow()) {
    end_ = End::kClean;
  } else {
    end_ = was_durable(offset_) ? End::kDamaged : End::kTorn;
  }
}

uint64_t SegmentScanner::skip_damage() {
  const uint64_t from = offset_;
  for (uint64_t at = from + 1; at + kRecordHeaderSize <= file_.size(); ++at) {
    const auto record = read_record(file_.subspan(at), nonce_);
    if (!record || !follows(*record)) continue;
    offset_ = at;
    end_ = End::kNone;
    return at - from;
  }
  offset_ = file_.size();
  end_ = End::kClean;
  return offset_ - from;
}

bool SegmentScanner::only_zeros_follow() const {
  return std::all_of(file_.begin() + static_cast<ptrdiff_t>(offset_), file_.end(),
                     [](std::byte byte) { return byte == std::byte{0}; });
}

/// Looks for a later mark that covers the offset. A mark contains its own offset, so a body that looks like a
/// mark does not count.
bool SegmentScanner::was_durable(uint64_t offset) const {
  constexpr size_t kMarkSize = kRecordHeaderSize + sizeof(MarkPayload);
  for (uint64_t at = offset; at + kMarkSize <= file_.size(); ++at) {
    RecordHeader header;
    std::memcpy(&header, file_.data() + at, sizeof header);
    if (header.size != sizeof(MarkPayload) || header.type() != RecordType::kMark) continue;
    const auto record = read_record(file_.subspan(at, kMarkSize), nonce_);
    if (!record) continue;
    const auto mark = parse_plain<MarkPayload>(record->payload);
    if (mark && mark->offset == at && mark->durable > offset) return true;
  }
  return false;
}

Segment& Segments::add(const SegmentHeader& header) {
  auto segment = std::make_unique<Segment>();
  segment->header = header;
  return *all_.emplace(header.number, std::move(segment)).first->second;
}

Segment* Segments::find(uint32_t number) {
  if (last_found_ != nullptr && last_found_->header.number == number) return last_found_;
  const auto found = all_.find(number);
  if (found == all_.end()) return nullptr;
  return last_found_ = found->second.get();
}

void Segments::keep(const Location& location) {
  if (location.segment == 0) return;
  Segment* segment = find(location.segment);
  assert(segment != nullptr);
  segment->live_bytes += location.size;
  live_bytes_ += location.size;
}

void Segments::release(const Location& location) {
  if (location.segment == 0) return;
  Segment* segment = find(location.segment);
  assert(segment != nullptr && segment->live_bytes >= location.size);
  segment->live_bytes -= location.size;
  live_bytes_ -= location.size;
}

void Segments::keep_gone(const Location& location, uint32_t segment) {
  if (segment == location.segment || find(segment) == nullptr) return;
  Segment& holder = *find(location.segment);
  ++holder.gone_by_segment[segment];
  holder.gone_bytes += kGoneRecordSize;
  gone_bytes_ += kGoneRecordSize;
}

void Segments::remove(uint32_t number) {
  const auto found = all_.find(number);
  if (found == all_.end()) return;
  assert(found->second->live_bytes == 0);
  occupied_bytes_ -= found->second->occupied;
  half_cleaned_ -= found->second->is_half_cleaned ? 1 : 0;
  gone_bytes_ -= found->second->gone_bytes;
  all_.erase(found);
  last_found_ = nullptr;
  for (auto& [other_number, other] : all_) {
    const auto gone = other->gone_by_segment.find(number);
    if (gone == other->gone_by_segment.end()) continue;
    const uint64_t bytes = gone->second * kGoneRecordSize;
    other->gone_bytes -= bytes;
    gone_bytes_ -= bytes;
    other->gone_by_segment.erase(gone);
  }
}

Segment* Segments::emptiest(uint64_t open_waste) {
  Segment* best = nullptr;
  for (auto& [number, segment] : all_) {
    if (segment->is_damaged || segment->size == 0) continue;
    if (segment->is_open &&
        (segment->header.stream == kHeadStream || segment->size < segment->needed_bytes() + open_waste)) {
      continue;
    }
    // Compares needed/size without division.
    if (best == nullptr || segment->needed_bytes() * best->size < best->needed_bytes() * segment->size) {
      best = segment.get();
    }
  }
  return best;
}

Segment* Segments::half_cleaned() {
  if (half_cleaned_ == 0) return nullptr;
  for (auto& [number, segment] : all_) {
    if (segment->is_half_cleaned) return segment.get();
  }
  return nullptr;
}

void Segments::set_half_cleaned(uint32_t number) {
  Segment& segment = *find(number);
  if (!segment.is_half_cleaned) ++half_cleaned_;
  segment.is_half_cleaned = true;
}

const Segment* Segments::oldest_head() const {
  for (const auto& [number, segment] : all_) {
    if (segment->header.stream == kHeadStream) return segment.get();
  }
  return nullptr;
}

void Segments::set_occupied(Segment& segment, uint64_t bytes) {
  occupied_bytes_ += bytes - segment.occupied;
  segment.occupied = bytes;
}

namespace {

constexpr std::string_view kNewName = "manifest.new";
constexpr std::array<char, 8> kMagic{'D', 'L', 'Y', 'Q', 'M', 'A', 'N', '\n'};
constexpr uint32_t kVersion = 1;

/// The file consists of this head, the segments, the pending numbers, and a CRC-32C of all of them.
struct Head {
  std::array<char, 8> magic;
  uint32_t version;
  uint32_t epoch;
  uint64_t directory;
  uint32_t highest;
  uint32_t removed;
  uint32_t removed_nonce;
  uint32_t segments;
  uint32_t pending;
  uint32_t zero;
};
static_assert(sizeof(Head) == 48);

struct Row {
  uint32_t number;
  uint32_t nonce;
  uint64_t least_size;
};
static_assert(sizeof(Row) == 16);

template <class Plain>
void append_plain(std::vector<std::byte>& bytes, const Plain& plain) {
  const size_t at = bytes.size();
  bytes.resize(at + sizeof plain);
  std::memcpy(bytes.data() + at, &plain, sizeof plain);
}

template <class Plain>
Plain take_plain(std::span<const std::byte>& bytes) {
  Plain plain;
  std::memcpy(&plain, bytes.data(), sizeof plain);
  bytes = bytes.subspan(sizeof plain);
  return plain;
}

}  // namespace

std::vector<std::byte> Manifest::encode() const {
  std::vector<std::byte> bytes;
  append_plain(bytes, Head{kMagic, kVersion, epoch, directory, highest, removed.number, removed.nonce,
                           static_cast<uint32_t>(segments.size()), static_cast<uint32_t>(pending.size()), 0});
  for (const auto& [number, known] : segments)
    append_plain(bytes, Row{number, known.nonce, known.least_size});
  for (const uint32_t number : pending) append_plain(bytes, number);
  append_plain(bytes, crc32c(0, bytes.data(), bytes.size()));
  return bytes;
}

std::optional<Manifest> Manifest::decode(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(Head) + sizeof(uint32_t)) return std::nullopt;
  std::span<const std::byte> crc = bytes.last(sizeof(uint32_t));
  bytes = bytes.first(bytes.size() - sizeof(uint32_t));
  if (take_plain<uint32_t>(crc) != crc32c(0, bytes.data(), bytes.size())) return std::nullopt;
  const Head head = take_plain<Head>(bytes);
  if (head.magic != kMagic || head.version != kVersion) return std::nullopt;
  if (bytes.size() != uint64_t{head.segments} * sizeof(Row) + uint64_t{head.pending} * sizeof(uint32_t))
    return std::nullopt;
  Manifest manifest;
  manifest.directory = head.directory;
  manifest.epoch = head.epoch;
  manifest.highest = head.highest;
  manifest.removed = {head.removed, head.removed_nonce};
  for (uint32_t i = 0; i < head.segments; ++i) {
    const Row row = take_plain<Row>(bytes);
    manifest.segments[row.number] = {row.nonce, row.least_size};
  }
  for (uint32_t i = 0; i < head.pending; ++i) manifest.pending.insert(take_plain<uint32_t>(bytes));
  return manifest;
}

Result<std::optional<Manifest>> Manifest::read(Disk& disk) {
  const Result<std::vector<std::string>> names = disk.list();
  if (!names.ok()) return names.error();
  if (std::find(names->begin(), names->end(), kName) == names->end()) return std::optional<Manifest>();
  const Result<std::shared_ptr<File>> file = disk.open(kName);
  if (!file.ok()) return file.error();
  const Result<uint64_t> size = (*file)->size();
  if (!size.ok()) return size.error();
  std::vector<std::byte> bytes(*size);
  const Result<size_t> got = (*file)->read(0, bytes);
  if (!got.ok()) return got.error();
  std::optional<Manifest> manifest = decode(std::span(bytes).first(*got));
  if (manifest) return manifest;
  return Error{ErrorCode::kCorrupt, "journal.open", "it fails its checksum"};
}

Status Manifest::write(Disk& disk) const {
  const std::vector<std::byte> bytes = encode();
  Result<std::shared_ptr<File>> file = disk.open(kNewName);
  if (!file.ok()) file = disk.create(kNewName);
  if (!file.ok()) return file.error();
  if (Status status = (*file)->write(0, bytes); !status.ok()) return status;
  if (Status status = (*file)->truncate(bytes.size()); !status.ok()) return status;
  if (Status status = (*file)->sync(); !status.ok()) return status;
  if (Status status = disk.rename(kNewName, kName); !status.ok()) return status;
  return disk.sync_directory();
}

/// Also reserves space for the next manifest: without it, no segment could be removed from a full disk.
Status Manifest::write_and_reserve(Disk& disk) const {
  constexpr uint64_t kLeast = 4096;
  if (Status status = write(disk); !status.ok()) return status;
  if (const Result<std::shared_ptr<File>> file = disk.create(kNewName); file.ok())
    static_cast<void>((*file)->allocate(std::max<uint64_t>(2 * encode().size(), kLeast)));
  return {};
}

Status Manifest::name(Disk& disk, const SegmentHeader& header) {
  for (uint32_t number = highest + 1; number < header.number; ++number) pending.insert(number);
  pending.erase(header.number);
  highest = std::max(highest, header.number);
  segments[header.number] = {header.nonce, kSegmentHeaderSize};
  if (const auto previous = segments.find(header.previous); previous != segments.end())
    previous->second.least_size = header.previous_size;
  return write_and_reserve(disk);
}

Status Manifest::take_off(Disk& disk, uint32_t number) {
  const auto found = segments.find(number);
  if (found == segments.end()) return {};
  removed = {number, found->second.nonce};
  segments.erase(found);
  return write_and_reserve(disk);
}

namespace {

using Kind = SegmentFile::Kind;

bool is_named(const Manifest& manifest, const SegmentFile& file) {
  return manifest.segments.contains(file.number);
}

/// An older program begins a segment whenever it opens the directory, and never removes that segment.
bool was_used_by_an_older_program(const Manifest& manifest, const std::vector<SegmentFile>& files) {
  return std::any_of(files.begin(), files.end(), [&](const SegmentFile& file) {
    return file.kind == Kind::kGood && file.header.directory == 0 && file.header.epoch >= manifest.epoch &&
           !is_named(manifest, file);
  });
}

/// Returns what is wrong with a listed segment, or an empty text.
std::string_view judge_named(const Manifest::Known& known, const SegmentFile& file) {
  if (file.kind == Kind::kUnfinished) return "its header is gone";
  if (file.kind == Kind::kGood && file.header.nonce != known.nonce)
    return "it is not the segment that the manifest names, but another one of the same number";
  return {};
}

/// A new segment is not listed for a short time, at most one of the head stream and one of the survivors. No
/// change in it has been replied to.
bool is_being_begun(const Manifest& manifest, const SegmentFile& file, std::array<bool, 2>& seen) {
  if (file.header.epoch != manifest.epoch) return false;
  if (file.number <= manifest.highest && !manifest.pending.contains(file.number)) return false;
  bool& is_second = seen[file.header.stream == kHeadStream ? 0 : 1];
  return !std::exchange(is_second, true);
}

}  // namespace

std::vector<ChainProblem> compare(const std::optional<Manifest>& manifest, std::vector<SegmentFile>& files) {
  std::vector<ChainProblem> problems;
  if (!manifest) {
    const bool had_one = std::any_of(files.begin(), files.end(), [](const SegmentFile& file) {
      return file.kind == Kind::kGood && file.header.directory != 0;
    });
    if (had_one) problems.push_back({std::string(Manifest::kName), "it is missing"});
    return problems;
  }
  if (was_used_by_an_older_program(*manifest, files)) return problems;
  for (const auto& [number, known] : manifest->segments) {
    const auto file = std::find_if(files.begin(), files.end(), [number = number](const SegmentFile& each) {
      return each.number == number;
    });
    if (file == files.end()) {
      problems.push_back({segment_name(number), "it is missing"});
    } else if (const std::string_view what = judge_named(known, *file); !what.empty()) {
      file->kind = Kind::kStranger;
      problems.push_back({file->name, std::string(what)});
    }
  }
  std::array<bool, 2> seen{};
  for (SegmentFile& file : files) {
    if (file.kind != Kind::kGood || is_named(*manifest, file)) continue;
    const Manifest::Removed identity{file.number, file.header.nonce};
    if (manifest->removed == identity) {
      file.kind = Kind::kLeftover;
    } else if (file.header.directory != manifest->directory) {
      file.kind = Kind::kStranger;
      problems.push_back({file.name, "it was written in another data directory"});
    } else if (!is_being_begun(*manifest, file, seen)) {
      file.kind = Kind::kStranger;
      problems.push_back({file.name, "it is not one of the segments that the manifest names"});
    }
  }
  return problems;
}

}  // namespace delayq::journal
