#pragma once

#include <memory>
#include <string>

#include "core/result.h"
#include "engine/engine.h"
#include "engine/journal/journal_engine.h"

namespace delayq {

enum class EngineKind : uint8_t { kJournal, kMemory };

struct StorageOptions {
  EngineKind engine = EngineKind::kJournal;
  std::string directory = "data";  ///< the journal's
  std::string backups;             ///< empty: "backups" beside the directory
  journal::JournalOptions journal;
};

/// An engine with what it stands on.
class Storage {
 public:
  static Result<std::unique_ptr<Storage>> open(const StorageOptions& options, Moment now);
  virtual ~Storage() = default;

  virtual Engine& engine() = 0;
  /// For the start-up line: "journal in data, 12 jobs".
  virtual std::string describe() = 0;
};

}  // namespace delayq
