#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <absl/functional/any_invocable.h>

#include "core/arena.h"
#include "engine/journal/disk.h"
#include "engine/journal/log.h"
#include "engine/journal/segments.h"

namespace delayq::journal {

/// Reads records from memory, from the page cache, or from the disk, in this order. The engine
/// never waits for the disk.
class RecordReader {
 public:
  RecordReader(Io& io, const Log& log, Segments& segments) : io_(io), log_(log), segments_(segments) {}

  /// The records in the order of the request; nullopt where a record is damaged or no Location was given
  /// (segment 0). The views point into the arena. If the disk could not be read, `status` is an error and
  /// there are no records; unlike damage, this may be temporary.
  struct Found {
    std::vector<std::optional<RecordView>> records;
    Arena storage;
    Status status;
  };
  using Then = absl::AnyInvocable<void(Found)>;

  /// Calls `then` before it returns if nothing has to be read from disk, otherwise from Io::poll().
  void read(const std::vector<Location>& wanted, Then then);

 private:
  /// Neighbouring records of one segment that are read together.
  struct Range {
    std::shared_ptr<File> file;
    uint64_t offset = 0;
    std::span<std::byte> bytes;
    bool is_read = false;
    Status status;
  };
  /// Where a requested record will be found.
  struct Piece {
    std::span<const std::byte> bytes;
    uint32_t nonce = 0;
    uint32_t range = UINT32_MAX;  ///< UINT32_MAX: no range, `bytes` has the record
  };
  struct Request {
    std::vector<Piece> pieces;
    std::vector<Range> ranges;
    Arena storage;
    Then then;
  };

  void plan(const std::vector<Location>& wanted, Request& request);
  static void finish(Request& request);

  Io& io_;
  const Log& log_;
  Segments& segments_;
};

}  // namespace delayq::journal
