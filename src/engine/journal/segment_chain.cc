#include "engine/journal/segment_chain.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace delayq::journal {

namespace {

using Kind = SegmentFile::Kind;

bool is_named(const Manifest& manifest, const SegmentFile& file) {
  return manifest.segments.contains(file.number);
}

/// An older program begins a segment whenever it opens the directory, and that one is never removed by it.
bool was_used_by_an_older_program(const Manifest& manifest, const std::vector<SegmentFile>& files) {
  return std::any_of(files.begin(), files.end(), [&](const SegmentFile& file) {
    return file.kind == Kind::kGood && file.header.directory == 0 && file.header.epoch >= manifest.epoch &&
           !is_named(manifest, file);
  });
}

/// What is wrong with a segment that the manifest names; empty: nothing.
std::string_view judge_named(const Manifest::Known& known, const SegmentFile& file) {
  if (file.kind == Kind::kUnfinished) return "its header is gone";
  if (file.kind == Kind::kGood && file.header.nonce != known.nonce)
    return "it is not the segment that the manifest names, but another one of the same number";
  return {};
}

/// A segment is unnamed for a moment when it has been begun, so there is at most one of the log and one of
/// the survivors: nothing in it was answered.
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
