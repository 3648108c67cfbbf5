#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace delayq {

/// The systems whose configuration files can be read.
enum class SeedForm : uint8_t { kGoDelayQueue, kCallback, kDelayQ };
inline constexpr size_t kSeedFormCount = 3;

/// As its users call it.
std::string_view name_of(SeedForm form);

/// One key of their files, and what becomes of it here.
struct SeedKey {
  /// How a value is to be read.
  enum class Kind : uint8_t {
    kText,
    kNumber,     ///< a whole number up to `most`
    kTries,      ///< the same from 1
    kSeconds,    ///< the same, of seconds
    kMillis,     ///< the same, of milliseconds
    kLevel,      ///< of a log, as the loggers of Go call them
    kLogFolder,  ///< of the log's file
    kLogName,    ///< in that folder
    kRedisHost,  ///< with its port, or without
    kRedisPort,  ///< where it is said apart
  };

  std::string_view name;  ///< "redis.host", also for host below [redis]
  uint8_t forms = 0;      ///< bits, by SeedForm
  Kind kind = Kind::kText;
  std::string_view to{};    ///< our key; empty: it is not taken over,
  std::string_view note{};  ///< and this is why
  uint32_t most = 0;        ///< of a number; 0: whatever their programs can keep

  bool is_of(SeedForm form) const { return (forms >> static_cast<unsigned>(form) & 1) != 0; }
};

/// All of them.
std::span<const SeedKey> seed_keys();

/// The row of a key, or null.
const SeedKey* find_seed_key(SeedForm form, std::string_view name);

}  // namespace delayq
