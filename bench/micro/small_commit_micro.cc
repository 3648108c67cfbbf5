// What a commit of a few jobs costs, written as the journal does and in the two plain ways: behind the end of
// the file, and into room that is allocated but was never written.
#include <vector>

#include <benchmark/benchmark.h>

#include "bench/micro/harness.h"
#include "engine/journal/posix_disk.h"

namespace delayq::bench {
namespace {

constexpr size_t kCommitBytes = 6'000;
constexpr uint64_t kFileBytes = uint64_t{256} << 20;  ///< never written full: no room is met twice

enum class Room { kAppended, kUnwritten, kJournal };

void small_commit(benchmark::State& state, Room room) {
  const TempDirectory directory;
  const std::unique_ptr<journal::Disk> disk = std::move(*journal::PosixDisk::open(directory.path()));
  const std::shared_ptr<journal::File> file = *disk->create("segment");
  // A file that is opened knows nothing of its room, so its writes are plain.
  const std::shared_ptr<journal::File> plain = *disk->open("segment");
  if (room != Room::kAppended && !file->allocate(kFileBytes).ok()) state.SkipWithError("no room");
  journal::File& target = room == Room::kJournal ? *file : *plain;
  const std::vector<std::byte> bytes(kCommitBytes, std::byte{'x'});
  uint64_t offset = 0;
  for (auto _ : state) {
    if (!target.write(offset, bytes).ok() || !target.sync().ok())
      return state.SkipWithError("the disk failed");
    offset = (offset + kCommitBytes) % (kFileBytes - kCommitBytes);
  }
}

BENCHMARK_CAPTURE(small_commit, appended, Room::kAppended)->UseRealTime()->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(small_commit, unwritten_room, Room::kUnwritten)
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(small_commit, journal, Room::kJournal)->UseRealTime()->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace delayq::bench
