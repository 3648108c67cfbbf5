#pragma once

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/journal/journal_engine.h"
#include "tests/support/engine_driver.h"
#include "tests/support/stepped_io.h"
#include "tests/support/virtual_disk.h"

namespace delayq::support {

/// A journal engine on a virtual disk that can be stopped, killed and started again. Its segments are so
/// small that a few kilobytes cause rotation and compaction.
class JournalOnDisk {
 public:
  explicit JournalOnDisk(uint64_t seed = 1) : disk(seed) {
    options.segment_bytes = 16 << 10;
    options.disk_reserve = 0;
    options.seed = seed;
  }
  ~JournalOnDisk() { engine.reset(); }

  Result<bool> try_open(Moment now) {
    auto opened = journal::JournalEngine::open(disk, io, options, now);
    if (!opened.ok()) return opened.error();
    engine = std::move(*opened);
    if (!driver) {
      driver.emplace(*engine, [this] { return pump(); });
    } else {
      driver->attach(*engine);
    }
    driver->go_to(now);
    return true;
  }

  EngineDriver& open(Moment now = kStart) {
    if (const Result<bool> opened = try_open(now); !opened.ok())
      throw std::runtime_error(to_string(opened.error()));
    return *driver;
  }

  /// Runs one step of each lane. Returns whether there was one.
  bool pump() {
    const bool has_read = io.step(journal::Lane::kRead);
    const bool has_copied = io.step(journal::Lane::kCopy);
    return io.step(journal::Lane::kWrite) || has_read || has_copied;
  }

  /// Runs all background work: commits, compaction, removals.
  void settle() {
    for (int quiet = 0; quiet < 4;) {
      const bool busy = engine->poll(*driver) || !io.idle();
      while (io.step(journal::Lane::kRead) || io.step(journal::Lane::kWrite) ||
             io.step(journal::Lane::kCopy)) {
      }
      quiet = busy ? 0 : quiet + 1;
    }
  }

  void close() { engine.reset(); }
  /// Ends the engine without a clean close.
  void die(bool power_cut) {
    io.abandon();
    disk.stop();
    engine.reset();
    power_cut ? disk.power_cut() : disk.kill();
  }

  EngineDriver& restart(Moment now) {
    close();
    return open(now);
  }

  VirtualDisk disk;
  SteppedIo io;
  journal::JournalOptions options;
  std::unique_ptr<journal::JournalEngine> engine;
  std::optional<EngineDriver> driver;
};

}  // namespace delayq::support
