#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.h"
#include "core/time.h"

namespace delayq::cli {

/// What the state of a job comes to when it moves elsewhere. Time alone moves a waiting one from delayed to
/// ready, and one that runs is ready where it is restored.
enum class Kind : uint8_t { kWaiting, kDone, kDead };
inline constexpr size_t kKinds = 3;

/// A line as `export` writes it, as far as it is looked at on the way.
struct ExportedLine {
  std::string topic;
  std::string id;  ///< empty: the line has settings
  Kind kind = Kind::kWaiting;
  bool is_running = false;
  std::string body;
  Moment kept_until = kNever;  ///< of a done or dead one
};

/// kCorrupt for what is no such line.
Result<ExportedLine> read_exported(std::string_view text);

}  // namespace delayq::cli
