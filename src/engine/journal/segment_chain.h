#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/journal/manifest.h"
#include "engine/journal/segment_files.h"

namespace delayq::journal {

/// One thing that is wrong with the files of a directory.
struct ChainProblem {
  std::string file;
  std::string what;
};

/// Compares the segments with the manifest. Those that do not count get another kind than kGood: kLeftover
/// when their removal had begun, kStranger when they do not belong to the directory. Returns what is wrong; a
/// segment whose header is not readable is not told again.
///
/// Without a manifest, segments count as they are if they were written before there were manifests. The same
/// holds when an older program, which knows nothing of it, used the directory after the manifest was written.
std::vector<ChainProblem> compare(const std::optional<Manifest>& manifest, std::vector<SegmentFile>& files);

}  // namespace delayq::journal
