#include "engine/journal/segment_files.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

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

}  // namespace delayq::journal
