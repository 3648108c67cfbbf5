#include "engine/journal/manifest.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "core/crc32c.h"

namespace delayq::journal {

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
